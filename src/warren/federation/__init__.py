"""Federated exchanges and queues: which links exist by policy, and what each declares and forwards."""
