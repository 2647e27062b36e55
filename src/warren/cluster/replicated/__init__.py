"""Quorum queues as every node of a cluster has them: in front of their leader, which may change."""
