"""Objects of the broker as RabbitMQ shows them: one file per kind; the objects know no JSON."""
