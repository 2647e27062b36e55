"""Reports about clients: the connection log, the event exchange and the audit log."""
