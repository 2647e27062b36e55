"""Queues: ready messages, consumers and deliveries."""
