"""One client of the stream protocol: its connection, its publishers, its subscriptions."""
