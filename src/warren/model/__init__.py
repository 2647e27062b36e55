"""Basic types of the broker: messages, names, arguments, counters."""
