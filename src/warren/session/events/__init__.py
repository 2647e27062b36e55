"""What the broker reports of its clients: the connection log, the event exchange and the audit log."""
