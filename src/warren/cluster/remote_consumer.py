"""A consumer of another node, as its queue here sees it."""

from warren.model.message import Message, body_size_of
from warren.queues.local import LocalQueue
from warren.queues.queue import Consumer, Delivery


class RemoteDeliveries:
    """Port: sends what consumers of another node get."""

    __slots__ = ()

    def can_deliver(self) -> bool:
        """False while the other node cannot take more."""
        raise NotImplementedError

    def deliver(self, consumer: "RemoteConsumer", delivery: Delivery) -> None:
        """Send `delivery`, which will be settled."""
        raise NotImplementedError

    def deliver_message(self, consumer: "RemoteConsumer", message: Message, attempts: int) -> None:
        """Send `message`, which will not be settled."""
        raise NotImplementedError

    def cancelled(self, consumer: "RemoteConsumer") -> None:
        """The queue has cancelled `consumer`."""
        raise NotImplementedError


class RemoteConsumer(Consumer):
    """A consumer of another node: the limits of its client, and what its node grants."""

    __slots__ = (
        "_deliveries", "byte_count", "bytes_to", "count", "id", "messages_to", "prefetch", "queue",
        "unsettled",
    )  # fmt: skip

    def __init__(
        self, deliveries: RemoteDeliveries, id: int, queue: LocalQueue, tag: str, *, no_ack: bool,
        is_exclusive: bool, priority: int,
    ) -> None:  # fmt: skip
        super().__init__(tag, no_ack=no_ack, is_exclusive=is_exclusive, priority=priority)
        self._deliveries = deliveries
        self.id = id
        self.queue = queue
        # The limit of unacknowledged deliveries (0: no limit), and their current number.
        self.prefetch = 0
        self.unsettled = 0
        # Messages and bytes of their bodies that were sent, and the totals that were granted.
        self.count = 0
        self.byte_count = 0
        self.messages_to = 0
        self.bytes_to = 0

    def serves(self, deliveries: RemoteDeliveries) -> bool:
        """True if what it gets is sent by `deliveries`."""
        return self._deliveries is deliveries

    def is_ready(self) -> bool:
        """True if its prefetch, its node and the link permit one more delivery."""
        if self.count >= self.messages_to or self.byte_count >= self.bytes_to:
            return False
        if not self.no_ack and self.prefetch and self.unsettled >= self.prefetch:
            return False
        return self._deliveries.can_deliver()

    def prefetch_limit(self) -> int:
        """How many unacknowledged deliveries its client may have of it; 0 is no limit."""
        return self.prefetch

    def deliver(self, delivery: Delivery) -> None:
        """Send `delivery`, which will be settled later."""
        self.count += 1
        self.byte_count += body_size_of(delivery.message) + 1
        self.unsettled += 1
        self._deliveries.deliver(self, delivery)

    def deliver_message(self, message: Message, redelivered: bool) -> None:
        """Send `message` with automatic acknowledgement."""
        self.count += 1
        self.byte_count += body_size_of(message) + 1
        self._deliveries.deliver_message(self, message, 1 if redelivered else 0)

    def cancelled(self) -> None:
        """Tell its node, because the queue was deleted or has cancelled it."""
        self._deliveries.cancelled(self)
