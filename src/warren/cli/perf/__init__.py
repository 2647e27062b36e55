"""The load tool `warren perf`: measures any AMQP 0-9-1 broker, and the cost of the tool itself."""
