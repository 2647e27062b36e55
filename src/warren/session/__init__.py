"""One client: its connection, its channels, what it publishes and what it consumes."""
