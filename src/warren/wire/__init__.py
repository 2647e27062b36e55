"""Bytes to values and back: frames, methods, properties and field tables."""
