"""Sessions of the stream protocol: connections, publishers and subscriptions."""
