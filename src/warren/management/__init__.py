"""The HTTP API: what RabbitMQ's tools and monitoring ask a node."""
