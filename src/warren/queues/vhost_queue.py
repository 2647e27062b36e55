"""The base of all queues that a virtual host has, on this node or on another: name, settings and counters.

What they say of themselves, such as the numbers of their messages, is what this node knows: a queue on
another node says what its home has last answered.
"""

from collections.abc import Iterator, Mapping

from warren.metadata.records import QueueRecord
from warren.model.arguments import QueueSettings
from warren.model.samples import Samples
from warren.queues.demand_listener import DemandListener
from warren.queues.queue import Consumer, Queue, QueueHost
from warren.queues.queue_counts import QueueCounts
from warren.queues.replication_status import ReplicationStatus
from warren.queues.stream_read_options import StreamReadOptions
from warren.store.recovered_queue import RecoveredQueue


class VhostQueue(Queue):
    """A declared queue of any kind on any node, as its virtual host has it."""

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
        """The size in bytes of the bodies of the ready messages, as far as this node has them."""
        return 0

    @property
    def paged_count(self) -> int:
        """The number of ready messages that are only on the disk of this node."""
        return 0

    @property
    def persistent_count(self) -> int:
        """The number of messages of this node that would survive a restart, ready or unacknowledged."""
        return 0

    @property
    def persistent_bytes(self) -> int:
        """The size in bytes of the bodies of this node that would survive a restart."""
        return 0

    @property
    def head_timestamp(self) -> int | None:
        """The property `timestamp` of the first ready message; None if it has none, or is on another node."""
        return None

    @property
    def oldest_ready_at(self) -> int | None:
        """When the oldest ready message was published (Unix time, ms); None without one, or elsewhere."""
        return None

    @property
    def oldest_ready_ms(self) -> int | None:
        """How long ago (ms) the oldest ready message was published; None without one, or elsewhere."""
        return None if (at := self.oldest_ready_at) is None else max(0, self._host.turn.now() - at)

    @property
    def ready_by_priority(self) -> dict[int, int] | None:
        """The number of ready messages of each priority that has any; None without priorities."""
        return None

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
        """True if it has auto-delete, has had consumers, and has none now; only its home says so."""
        return False

    def apply_settings(self, settings: QueueSettings) -> None:
        """Use `settings` from now on: the declared arguments merged with the policies that match."""
        self.settings = settings

    def shrink(self) -> None:
        """Page out messages that exceed the memory limit of a queue."""

    def consumers(self) -> Iterator[Consumer]:
        """Its consumers, oldest first."""
        raise NotImplementedError

    def unpark(self, consumer: Consumer) -> None:
        """Unpark `consumer`; `pump` delivers ready messages."""
        raise NotImplementedError

    def pause(self) -> None:
        """Pause deliveries to consumers and basic.get until `resume`."""
        raise NotImplementedError

    def resume(self) -> None:
        """Resume deliveries."""
        raise NotImplementedError

    def delete(self) -> int:
        """Delete the queue: cancel its consumers and drop its messages.

        Returns the number of ready messages.
        """
        raise NotImplementedError

    def abandon(self) -> None:
        """End for good, since an error has broken it: what it has stored is neither read nor released."""
        self.cancel_consumers()
        self.is_deleted = True
        self._host.wake_at(self, -1)
        self._host.dirty.pop(self, None)

    def cancel_consumers(self) -> None:
        """Cancel all consumers; the queue is not auto-deleted for that."""
        self.is_auto_delete = False
        for consumer in list(self.consumers()):
            self.remove_consumer(consumer)
            consumer.cancelled()

    def check_reachable(self) -> None:
        """Raise HomeDown if it is durable, and the node that has it is down."""

    def check_reader(self, consumer: Consumer, prefetch: int) -> None:
        """Raise an AmqpError if a new `consumer` with this `prefetch` count cannot read from it."""

    def set_read_options(self, consumer: Consumer, stream_read_options: StreamReadOptions) -> None:
        """Obey `stream_read_options`, which only streams have, for `consumer`, which is added next."""

    @property
    def is_down(self) -> bool:
        """True if it can neither take nor deliver messages until `recover`."""
        return False

    @property
    def is_left_alone(self) -> bool:
        """True if those that its replica on this node needs for a leader were removed, until `recover`."""
        return False

    def recover(self) -> None:
        """Accept what is missing if the queue is down or left alone: it opens soon, with what is here."""

    def replication_status(self) -> ReplicationStatus | None:
        """Its replica on this node; None if the queue is not replicated."""
        return None

    def led_here(self) -> "VhostQueue":
        """The queue that has its messages, if that may be on this node; else itself."""
        return self

    def replica_here(self) -> "VhostQueue":
        """The queue for which the store of this node may have messages; itself if it is not another one."""
        return self

    def members_changed(self, record: QueueRecord) -> None:
        """Follow the record, which says other members, or another leader: only of a quorum queue."""

    def left(self, found: Mapping[int, RecoveredQueue]) -> None:
        """Release what the store has `found`, by priority level, of a replica that is not here any more."""

    # --- what does not --------------------------------------------------------------------------

    def exists(self) -> bool:
        """False if the queue was deleted."""
        return not self.is_deleted

    def count_broker_published(self) -> None:
        """Count the message that the broker itself has just published."""
        self.broker_published_count += 1

    def counts(self) -> QueueCounts:
        """The numbers of its ready messages and of its consumers."""
        return QueueCounts(self.message_count, self.consumer_count)

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
