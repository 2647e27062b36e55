"""Durable storage of messages and streams."""
