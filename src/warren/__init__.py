"""Warren: a message broker that RabbitMQ's applications can switch to unchanged."""

__version__ = "0.1.0"
