"""Operator commands: query and change a running broker over its HTTP API."""
