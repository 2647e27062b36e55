"""The groups of quorum queues as a node of a cluster knows them: implements port `GroupStatus`."""

from collections.abc import Callable, Mapping

from warren.cluster.replicated.queue_leaders import QueueLeaders
from warren.cluster.replicated.replicated_queue import ReplicatedQueue
from warren.metadata.cluster_members import ClusterMembers
from warren.metadata.records import QueueRecord
from warren.queues.replication_status import ReplicationStatus
from warren.queues.vhost_queue import VhostQueue
from warren.session.vhost_services import VhostServices


class ReplicatedGroups:
    """Groups whose replicas may be on several nodes."""

    def __init__(
        self,
        members: ClusterMembers,
        vhost_services: Mapping[str, VhostServices],
        leaders: QueueLeaders,
        is_own: Callable[[int], bool],
    ) -> None:
        """`is_own` is true for the number of this node."""
        self._members = members
        self._vhost_services = vhost_services
        self._leaders = leaders
        self._is_own = is_own

    def leader_of(self, record: QueueRecord) -> int | None:
        """The node that leads, as far as this one has heard, if it is up; None while none is known."""
        node = self._leaders.leader_of(record)
        is_up = self._is_own(node) or self._members.run_of(node) is not None
        return node if node and is_up else None

    def own_replica(self, vhost: str, record: QueueRecord) -> ReplicationStatus | None:
        """The replica on this node; None if there is none, or the virtual host is down here."""
        queue = self._queue(vhost, record)
        return None if queue is None else queue.replication_status()

    async def transfer(self, vhost: str, record: QueueRecord, node: int) -> bool:
        """Have another node with a replica lead; return whether it does.

        A node without a replica cannot ask for that: False.
        """
        queue = self._queue(vhost, record)
        if not isinstance(queue, ReplicatedQueue):
            return self.leader_of(record) == node
        return await queue.transfer(node)

    def _queue(self, vhost: str, record: QueueRecord) -> VhostQueue | None:
        services = self._vhost_services.get(vhost)
        return None if services is None else services.vhost.queues.get(record.name)
