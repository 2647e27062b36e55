"""A blocking connection to any AMQP broker, for programs that read, write or load one."""
