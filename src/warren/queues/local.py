"""The base of all queues on this node: name, settings, counters and owner.

The coroutines of the contract end at once here: each is the call of a method that does not wait.
"""

from collections.abc import Iterator

from warren.errors import PreconditionFailed
from warren.limits import QUEUE_CONSUMERS_MAX
from warren.model.arguments import QueueSettings
from warren.model.message import Message
from warren.model.samples import Samples
from warren.queues.demand_listener import DemandListener
from warren.queues.queue import Consumer, Delivery, PeekedMessage, Queue, QueueHost
from warren.queues.queue_counts import QueueCounts
from warren.queues.replication_status import ReplicationStatus
from warren.queues.stream_read_options import StreamReadOptions


class LocalQueue(Queue):
    """A queue of any kind on this node."""

    __slots__ = (
        "_host", "acknowledged_count", "broker_published_count", "delivered_count", "delivered_no_ack_count",
        "demand_listener", "got_count", "got_empty_count", "got_no_ack_count", "history", "is_auto_delete",
        "is_deleted", "is_dirty", "name", "owner", "published_count", "redelivered_count", "settings",
        "unacked_bytes", "unacked_count", "used_at", "vhost_name",
    )  # fmt: skip

    def __init__(self, name: str, vhost_name: str, host: QueueHost, settings: QueueSettings) -> None:
        self.name = name
        self.vhost_name = vhost_name
        self.settings = settings
        # The connection that owns an exclusive queue; None for other queues.
        self.owner: object = None
        self.is_auto_delete = False
        self.is_deleted = False
        self.unacked_count = 0
        self.unacked_bytes = 0
        # True when the host knows that its statistics have changed, and the demand listener was told.
        self.is_dirty = False
        # Told of changes once until it resets `is_dirty`; None unless the queue is federated.
        self.demand_listener: DemandListener | None = None
        # All messages published, and those among them published by the broker: dead letters and internal
        # messages.
        self.published_count = 0
        self.broker_published_count = 0
        # As in `Counters`.
        self.delivered_count = 0
        self.delivered_no_ack_count = 0
        self.got_count = 0
        self.got_no_ack_count = 0
        self.got_empty_count = 0
        self.redelivered_count = 0
        self.acknowledged_count = 0
        # The sampled history of its statistics, kept here so that it is dropped with the queue.
        self.history: Samples | None = None
        self._host = host
        self.used_at = host.turn.now()

    # --- what differs ---------------------------------------------------------------------------

    @property
    def message_count(self) -> int:
        """The number of messages that are ready, or can be read."""
        raise NotImplementedError

    @property
    def total_count(self) -> int:
        """The number of all messages: ready, unacknowledged, or waiting for something else."""
        return self.message_count + self.unacked_count

    @property
    def ready_bytes(self) -> int:
        """The size in bytes of the bodies of the ready messages."""
        raise NotImplementedError

    @property
    def paged_count(self) -> int:
        """The number of ready messages that are only on disk."""
        raise NotImplementedError

    @property
    def persistent_count(self) -> int:
        """The number of messages that would survive a restart, ready or unacknowledged."""
        raise NotImplementedError

    @property
    def persistent_bytes(self) -> int:
        """The size in bytes of the bodies that would survive a restart."""
        raise NotImplementedError

    @property
    def head_timestamp(self) -> int | None:
        """The property `timestamp` of the first ready message; None if it has none."""
        raise NotImplementedError

    @property
    def active_consumer(self) -> Consumer | None:
        """The active consumer, if the queue has single active consumer; else None."""
        return None

    @property
    def is_paused(self) -> bool:
        """True while deliveries are paused; messages are accepted all the same."""
        raise NotImplementedError

    @property
    def consumer_count(self) -> int:
        """The number of consumers."""
        raise NotImplementedError

    @property
    def is_due_for_deletion(self) -> bool:
        """True if it has auto-delete, has had consumers, and has none now."""
        raise NotImplementedError

    def apply_settings(self, settings: QueueSettings) -> None:
        """Use `settings` from now on: the declared arguments merged with the policies that match."""
        raise NotImplementedError

    def shrink(self) -> None:
        """Page out messages that exceed the memory limit of a queue."""

    def consumers(self) -> Iterator[Consumer]:
        """Its consumers, oldest first."""
        raise NotImplementedError

    def check_consumer(self, consumer: Consumer) -> None:
        """Raise an AmqpError if `consumer` cannot be added."""
        raise NotImplementedError

    def unpark(self, consumer: Consumer) -> None:
        """Unpark `consumer`; `pump` delivers ready messages."""
        raise NotImplementedError

    def hold_back(self) -> None:
        """Called when a removed consumer still has unacknowledged messages, which may be requeued in front.

        With single active consumer, the next consumer gets nothing until some of them are settled, or
        something is published (RabbitMQ 3.10.8, measured). Other queues deliver ready messages.
        """
        self.pump()

    def pause(self) -> None:
        """Pause deliveries to consumers and basic.get until `resume`."""
        raise NotImplementedError

    def resume(self) -> None:
        """Resume deliveries."""
        raise NotImplementedError

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` ready messages from place `first` on, with their bodies; nothing is changed.

        Raises ConnectionForced if a message cannot be read from disk.
        """
        raise NotImplementedError

    def extent(self) -> list[range]:
        """The places of all messages that are ready now, as increasing ranges that exclude later messages."""
        raise NotImplementedError

    def whole(self, delivery: Delivery) -> Message:
        """The message of `delivery` with its body. ConnectionForced if it cannot be read."""
        return delivery.message

    def get(self, no_ack: bool = False) -> Delivery | None:
        """Take the first ready message for basic.get; None if none is ready.

        With `no_ack` it is settled.
        """
        raise NotImplementedError

    def clear(self) -> int:
        """Drop the ready messages; returns their number."""
        raise NotImplementedError

    def delete(self) -> int:
        """Delete the queue: cancel its consumers and drop its messages.

        Returns the number of ready messages.
        """
        raise NotImplementedError

    def check_prefetch(self, count: int) -> None:
        """Raise an AmqpError if it needs another prefetch `count` of a new consumer."""

    def set_read_options(self, consumer: Consumer, stream_read_options: StreamReadOptions) -> None:
        """Obey `stream_read_options`, which only streams have, for `consumer`, which is added next."""

    @property
    def is_down(self) -> bool:
        """True if it can neither take nor deliver messages until `recover`."""
        return False

    def recover(self) -> None:
        """Accept what is missing if the queue is down: it opens soon, with what is readable."""

    def replication_status(self) -> ReplicationStatus | None:
        """Its replica on this node; None if the queue is not replicated."""
        return None

    def quarantined(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages that exceeded the delivery limit and are kept, from place `first` on."""
        return []

    def quarantined_places(self) -> list[int]:
        """The places of all of them, in order."""
        return []

    def release_quarantined(self, place: int) -> bool:
        """Make the quarantined message at `place` ready; False if there is none."""
        return False

    def remove_quarantined(self, place: int) -> bool:
        """Settle the quarantined message at `place`; False if there is none."""
        return False

    # --- what does not --------------------------------------------------------------------------

    def exists(self) -> bool:
        """False if the queue was deleted."""
        return not self.is_deleted

    def count_broker_published(self) -> None:
        """Count the message that the broker itself has just published."""
        self.broker_published_count += 1

    @property
    def is_local(self) -> bool:
        """True: its coroutines never wait."""
        return True

    def counts(self) -> QueueCounts:
        """The numbers of its ready messages and of its consumers."""
        return QueueCounts(self.message_count, self.consumer_count)

    async def inspect(self) -> QueueCounts:
        """The numbers of its ready messages and of its consumers."""
        return self.counts()

    async def fetch(self, no_ack: bool) -> tuple[Delivery, int] | None:
        """Take the first ready message for basic.get, with the number of those behind it; None if there is
        none.

        With `no_ack` it is settled.
        """
        delivery = self.get(no_ack)
        return None if delivery is None else (delivery, self.message_count)

    async def purge(self) -> int:
        """Drop the ready messages; returns their number."""
        return self.clear()

    async def admit(self, consumer: Consumer) -> None:
        """Raise an AmqpError if `consumer` cannot be added; nothing else happens before it is added."""
        self.check_consumer(consumer)
        if self.consumer_count >= QUEUE_CONSUMERS_MAX:
            raise PreconditionFailed(
                f"queue '{self.name}' in vhost '{self.vhost_name}' has reached the maximum"
                f" ({QUEUE_CONSUMERS_MAX}) of consumers"
            )

    async def committed(self) -> None:
        """Wait until what was done with its messages before is agreed on; at once if nobody has to agree."""

    @property
    def is_empty(self) -> bool:
        """True if no message is ready."""
        return not self.message_count

    @property
    def is_unused(self) -> bool:
        """True if it has no consumers."""
        return not self.consumer_count

    def touch(self) -> None:
        """Restart the timer of x-expires, since the queue was declared again."""
        self.used_at = self._host.turn.now()

    def mark_stats_dirty(self) -> None:
        """Tell the host that the statistics have changed, once until the host has read them."""
        self.is_dirty = True
        self._host.dirty[self] = None
        if self.demand_listener is not None:
            self.demand_listener.demand_changed()

    @property
    def has_changed(self) -> bool:
        """True if the statistics have changed since the host has last read them."""
        return self.is_dirty or (self.demand_listener is not None and self in self._host.dirty)
