"""The metadata: users, vhosts, permissions, policies and topology, as a deterministic machine."""
