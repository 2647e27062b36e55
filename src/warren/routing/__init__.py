"""Routing: exchanges, bindings and the destinations of a message."""
