"""Durable metadata: the log of the broker's definitions."""
