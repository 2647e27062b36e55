"""AMQP in the role of the client, without I/O: connections, channels, publishing, consuming, URIs."""
