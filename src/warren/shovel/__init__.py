"""Shovels: each moves messages from a queue or an exchange of a broker to another broker."""
