"""A queue of this node to which another node publishes, by the number of its record."""

from collections.abc import Callable

from warren.cluster.publish_answers import PublishAnswers
from warren.cluster.replicated.replicated_queue import ReplicatedQueue
from warren.cluster.replicated.served_nodes import ServedNodes
from warren.cluster.replicated.served_queue import ServedQueue, ServingChannel
from warren.errors import HomeDown, NotFound
from warren.metadata.machine import Metadata
from warren.queues.capabilities import local_queue
from warren.queues.local import LocalQueue
from warren.vhost.vhost import VirtualHost


class AddressedQueue:
    """One queue that another node has named, and the answers that it gets for its publishes."""

    __slots__ = ("_changed", "_index", "answers", "is_gone", "name", "number", "queue", "served")

    def __init__(
        self, number: int, name: str, index: int, changed: Callable[["AddressedQueue"], None]
    ) -> None:
        """Metadata up to `index` say whether it exists; `changed` is called when there may be answers."""
        self.number = number
        self.name = name
        self._index = index
        # None if it is not here.
        self.queue: LocalQueue | None = None
        # True if it was deleted: what is published to it counts as routed, as RabbitMQ has it.
        self.is_gone = False
        self._changed = changed
        self.answers = PublishAnswers(lambda: changed(self))
        # What the other node does with it, if it is a quorum queue; it has no other queue here then.
        self.served: ServedQueue | None = None

    def find(self, vhost: VirtualHost, metadata: Metadata) -> bool:
        """Look for the queue; False if metadata that are not applied yet may have it."""
        declared = metadata.vhost(vhost.name)
        record = None if declared is None else declared.topology.queues.get(self.name)
        if record is not None and record.number == self.number:
            live = vhost.queues.get(self.name)
            self.queue = None if isinstance(live, ReplicatedQueue) else local_queue(live)
            return True
        self.queue = None
        self.is_gone = metadata.index >= self._index
        return self.is_gone

    def serve(self, channel: ServingChannel) -> ServedQueue:
        """Serve it as a quorum queue, which it is."""
        if self.served is None:
            self.served = ServedQueue(self, channel)
            self.queue = None
        return self.served

    def front(self, vhost: VirtualHost, metadata: Metadata) -> ServedNodes | None:
        """Those that use the queue, which is a quorum queue; None if it is not here yet, or gone."""
        if self.is_gone or not self.find(vhost, metadata) or self.is_gone:
            return None
        live = vhost.queues.get(self.name)
        return live.served_nodes if isinstance(live, ReplicatedQueue) else None

    def new_answers(self) -> PublishAnswers:
        """Answer what is published from now on, and nothing that was published before."""
        self.answers = PublishAnswers(lambda: self._changed(self))
        return self.answers

    def live(self, vhost: VirtualHost, metadata: Metadata) -> LocalQueue:
        """The queue. NotFound if it was deleted or could not be started; HomeDown if it may come later."""
        if self.served is not None:
            return self.served.leader()
        if self.queue is None and not self.is_gone and not self.find(vhost, metadata):
            raise HomeDown(f"queue '{self.name}' in vhost '{vhost.name}' is not known here yet")
        queue = self.queue
        if queue is None or queue.is_deleted:
            raise NotFound(f"no queue '{self.name}' in vhost '{vhost.name}'")
        return queue
