"""JSON views of the broker's objects in RabbitMQ's form, one module per kind."""
