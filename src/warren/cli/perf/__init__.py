"""The load tool: it measures any broker that speaks AMQP 0-9-1, and its own cost beside it."""
