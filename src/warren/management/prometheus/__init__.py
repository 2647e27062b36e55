"""Metrics for Prometheus, with RabbitMQ's names."""
