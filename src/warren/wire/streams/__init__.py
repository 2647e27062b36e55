"""Encoding and decoding of the stream protocol: frames, commands, publishes and deliveries."""
