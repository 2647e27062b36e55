"""One broker process: configuration, boot and shutdown."""
