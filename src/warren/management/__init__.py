"""The HTTP API that RabbitMQ's tools and monitoring systems use to manage a node."""
