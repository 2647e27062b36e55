"""Where a message goes."""
