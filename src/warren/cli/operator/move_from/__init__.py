"""`warren move-from`: a move from a running RabbitMQ in steps that can be shown first and undone."""
