"""Traffic between the replicas of groups, such as those of quorum queues, over the links of the nodes."""
