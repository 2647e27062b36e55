"""The network side of AMQP: listeners, TLS, reading and writing of sockets."""
