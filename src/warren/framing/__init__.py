"""What both ends of an AMQP connection share: the output of a connection, and heartbeats."""
