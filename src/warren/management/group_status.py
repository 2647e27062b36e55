"""The groups of quorum queues as one node knows them: who leads, and where its own replica is."""

from collections.abc import Callable, Mapping
from typing import Protocol

from warren.metadata.cluster_members import ClusterMembers
from warren.metadata.records import QueueRecord
from warren.queues.replication_status import ReplicationStatus
from warren.session.vhost_services import VhostServices


class GroupStatus(Protocol):
    """Port of the groups of quorum queues, by the records of the queues."""

    def leader_of(self, record: QueueRecord) -> int | None:
        """The node that leads; None while none is known."""

    def own_replica(self, vhost: str, record: QueueRecord) -> ReplicationStatus | None:
        """The replica on this node; None if there is none, or the virtual host is down here."""

    async def transfer(self, vhost: str, record: QueueRecord, node: int) -> bool:
        """Have another node with a replica lead, from whichever node; return whether it does."""


class HomeGroups:
    """Groups whose only running replica is that on the home of the queue, which leads."""

    def __init__(
        self,
        members: ClusterMembers,
        vhost_services: Mapping[str, VhostServices],
        is_own: Callable[[int], bool],
    ) -> None:
        """`is_own` is true for the number of this node."""
        self._members = members
        self._vhost_services = vhost_services
        self._is_own = is_own

    def leader_of(self, record: QueueRecord) -> int | None:
        """The home, if it is up."""
        is_up = self._is_own(record.home) or self._members.run_of(record.home) is not None
        return record.home if is_up else None

    def own_replica(self, vhost: str, record: QueueRecord) -> ReplicationStatus | None:
        """The replica of a queue whose home is this node."""
        services = self._vhost_services.get(vhost)
        if services is None or not self._is_own(record.home):
            return None
        live = services.vhost.queues.get(record.name)
        return None if live is None else live.replication_status()

    async def transfer(self, vhost: str, record: QueueRecord, node: int) -> bool:
        """Return whether the node leads already: no other one can."""
        return self.leader_of(record) == node
