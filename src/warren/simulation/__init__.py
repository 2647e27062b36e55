"""A whole broker in one thread: simulated disks, clock, network and clients, driven by a seed."""
