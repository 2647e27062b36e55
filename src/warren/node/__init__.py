"""One broker: configuration, boot and stop."""
