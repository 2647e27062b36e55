"""The operator's commands: what a running Warren has, and changing it, over its HTTP API."""
