"""Replicated state: the Raft consensus algorithm."""
