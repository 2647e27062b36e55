"""Every bound of connections to other brokers, each with its reason. Sizes are in bytes."""

# The time to open a connection to another broker, as RabbitMQ's Erlang client allows.
CLIENT_HANDSHAKE_MS = 60_000
# The time to wait for connection.close-ok, as RabbitMQ's shovels and federation links do.
CLIENT_CLOSING_MS = 10_000
