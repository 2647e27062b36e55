"""Who leads each quorum queue, as far as this node knows."""

from collections.abc import Callable
from typing import Protocol

from warren.cluster.groups.group_leaders import GroupLeader, GroupLeaders, LeaderListener
from warren.metadata.machine import Metadata
from warren.metadata.records import QueueRecord


class QueueLeaders(Protocol):
    """Port: knows which node leads a queue, and is told of those that this node leads."""

    def leader_of(self, record: QueueRecord) -> int:
        """The node that leads the queue of `record`; 0 if that is not known."""

    def listen(self, number: int, changed: Callable[[], None]) -> None:
        """Call `changed` when another node leads queue `number`, or none."""

    def forget(self, vhost: str, record: QueueRecord) -> None:
        """The queue of `record` in `vhost` was deleted, or its virtual host has ended here."""

    def opened(self, number: int, term: int) -> None:
        """This node leads queue `number` in `term`."""

    def resigned(self, number: int, term: int) -> None:
        """This node does not lead queue `number` any more, which it has led in `term`."""


class KnownLeaders:
    """The leaders that all nodes tell, and the homes of queues with one member: implements `QueueLeaders`."""

    def __init__(self, leaders: GroupLeaders, metadata: Metadata) -> None:
        self._leaders = leaders
        self._metadata = metadata
        self._listeners: dict[int, LeaderListener] = {}

    def leader_of(self, record: QueueRecord) -> int:
        """The node that leads the queue of `record`; 0 if that is not known.

        A home leads a queue that has no other member, whether it is there or not.
        """
        if not record.members:
            return record.home
        node = self._leaders.leader(record.number).node
        return node if node in self._metadata.members.by_id else 0

    def listen(self, number: int, changed: Callable[[], None]) -> None:
        """Call `changed` when another node leads queue `number`, or none."""

        def listener(_: int, leader: GroupLeader) -> None:
            changed()

        self._listeners[number] = listener
        self._leaders.listen(number, listener)

    def forget(self, vhost: str, record: QueueRecord) -> None:
        """The queue of `record` in `vhost` was deleted, or its virtual host has ended here.

        What the nodes have told stays for the next run of the virtual host, since they do not repeat it.
        """
        number = record.number
        listener = self._listeners.pop(number, None)
        if listener is not None:
            self._leaders.ignore(number, listener)
        if not self._exists(vhost, record):
            self._leaders.forget(number)

    def opened(self, number: int, term: int) -> None:
        """This node leads queue `number` in `term`."""
        self._leaders.opened(number, term)

    def resigned(self, number: int, term: int) -> None:
        """This node does not lead queue `number` any more, which it has led in `term`."""
        self._leaders.resigned(number, term)

    def _exists(self, vhost: str, record: QueueRecord) -> bool:
        """True if the metadata have the queue of `record`, and not another one with its name."""
        found = self._metadata.vhost(vhost)
        queue = None if found is None else found.topology.queues.get(record.name)
        return queue is not None and queue.number == record.number
