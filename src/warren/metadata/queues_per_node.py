"""The numbers of queues and of replicas on each node, so that a choice of nodes walks over no queues."""

from collections import defaultdict

from warren.metadata.records import QueueRecord


class QueuesPerNode:
    """The numbers of all virtual hosts together."""

    __slots__ = ("homes", "replicas")

    def __init__(self) -> None:
        # The number of queues whose home a node is.
        self.homes: defaultdict[int, int] = defaultdict(int)
        # The number of replicas of quorum queues that a node has.
        self.replicas: defaultdict[int, int] = defaultdict(int)

    def add(self, queue: QueueRecord) -> None:
        """Count `queue`."""
        self.homes[queue.home] += 1
        if queue.arguments and queue.is_quorum:
            for node, _ in queue.replicas:
                self.replicas[node] += 1

    def remove(self, queue: QueueRecord) -> None:
        """Count `queue` no longer."""
        self.homes[queue.home] -= 1
        if queue.arguments and queue.is_quorum:
            for node, _ in queue.replicas:
                self.replicas[node] -= 1
