"""Encoding and decoding of frames, methods, properties and field tables."""
