"""The vocabulary of all that follows: messages, names, arguments, counters."""
