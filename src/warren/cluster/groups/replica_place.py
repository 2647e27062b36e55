"""One replica on this node, the nodes of the others, and whether its group sleeps."""

from collections.abc import Mapping

from warren.cluster.groups.group_replica import GroupReplica


class ReplicaPlace:
    """A replica that takes part in the traffic between nodes."""

    __slots__ = ("campaign_in", "idle_ticks", "is_awake", "nodes", "number", "quiet", "replica", "slept")

    def __init__(self, replica: GroupReplica, nodes: Mapping[int, int]) -> None:
        self.replica = replica
        # That of the group.
        self.number = replica.number
        # Number of a replica -> number of its node, by the record of the queue.
        self.nodes = nodes
        # True while it is ticked.
        self.is_awake = True
        # Ticks since something has happened, as the leader counts them, and its term and commit index then.
        self.idle_ticks = 0
        self.quiet = (0, 0)
        # Ticks until it campaigns if nobody else does, since the leader has ended; 0 if it has not.
        self.campaign_in = 0
        # The term and the leader with which it sleeps.
        self.slept = (0, 0)

    @property
    def leads(self) -> bool:
        """True if this replica leads, as far as it knows."""
        return self.replica.leader == self.replica.replica

    @property
    def leader_node(self) -> int:
        """The node of the leader; 0 if none is known."""
        return self.nodes.get(self.replica.leader, 0)

    def rank(self) -> int:
        """The place of this replica among those that may follow a leader that has ended.

        It rotates with the number of the group, so that the groups of one node are led by several nodes then.
        """
        node = self.leader_node
        others = sorted(replica for replica, at in self.nodes.items() if at != node)
        if self.replica.replica not in others:
            return 0
        return (others.index(self.replica.replica) - self.number) % len(others)

    def concerns(self, node: int) -> bool:
        """True if another replica of the group is on `node`."""
        return node in self.nodes.values()
