"""Makes the Raft groups of quorum queues have the members that the metadata say, where they are led."""
