"""AMQP 0-9-1 sessions: connections, channels, publishing and consuming."""
