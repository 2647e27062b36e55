"""What queues of every kind that live on this node have in common: a name, settings, counters, an owner."""

from collections.abc import Iterator

from warren.model.arguments import QueueSettings
from warren.model.message import Message
from warren.queues.queue import Consumer, Delivery, PeekedMessage, Queue, QueueHost


class LocalQueue(Queue):
    """A queue of this node, of any kind."""

    __slots__ = (
        "_host", "acknowledged_count", "broker_published_count", "delivered_count", "delivered_no_ack_count",
        "got_count", "got_empty_count", "got_no_ack_count", "history", "is_auto_delete", "is_deleted",
        "is_dirty", "name", "owner", "published_count", "redelivered_count", "settings", "unacked_count",
        "unacked_octets", "used_at", "vhost_name",
    )  # fmt: skip

    def __init__(self, name: str, vhost_name: str, host: QueueHost, settings: QueueSettings) -> None:
        self.name = name
        self.vhost_name = vhost_name
        self.settings = settings
        # The connection that an exclusive queue belongs to; None for all others.
        self.owner: object = None
        self.is_auto_delete = False
        self.is_deleted = False
        self.unacked_count = 0
        self.unacked_octets = 0
        # True when the host knows that its numbers have changed.
        self.is_dirty = False
        # All that came; and how many of them nobody has published: dead letters, and what the broker made.
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
        # Whoever samples its numbers keeps them here, so that they go with it.
        self.history: object = None
        self._host = host
        self.used_at = host.now

    # --- what differs ---------------------------------------------------------------------------

    @property
    def message_count(self) -> int:
        """How many messages are ready, or may be read."""
        raise NotImplementedError

    @property
    def ready_octets(self) -> int:
        """The octets of their bodies."""
        raise NotImplementedError

    @property
    def paged_count(self) -> int:
        """How many of its ready messages are on the disk only."""
        raise NotImplementedError

    @property
    def persistent_count(self) -> int:
        """How many of its messages would survive a restart, ready or not settled."""
        raise NotImplementedError

    @property
    def persistent_octets(self) -> int:
        """The octets of the bodies of these."""
        raise NotImplementedError

    @property
    def head_timestamp(self) -> int | None:
        """The property `timestamp` of the first ready message; None without it."""
        raise NotImplementedError

    @property
    def active_consumer(self) -> Consumer | None:
        """The one that gets messages, where only one does."""
        return None

    @property
    def is_paused(self) -> bool:
        """True while nobody gets messages, which may come and go all the same."""
        raise NotImplementedError

    @property
    def consumer_count(self) -> int:
        """How many consumers it has, ready or not."""
        raise NotImplementedError

    @property
    def is_due_for_deletion(self) -> bool:
        """True if nobody uses it, and it is to end when it was used and is not any more."""
        raise NotImplementedError

    def apply_settings(self, settings: QueueSettings) -> None:
        """Obey `settings` from now on: declared arguments merged with the policies that match."""
        raise NotImplementedError

    def shrink(self) -> None:
        """Have no more in memory than a queue may now."""

    def consumers(self) -> Iterator[Consumer]:
        """Its consumers, the eldest first."""
        raise NotImplementedError

    def check_consumer(self, consumer: Consumer) -> None:
        """Raise if `consumer` may not take part."""
        raise NotImplementedError

    def add_consumer(self, consumer: Consumer) -> None:
        """Let `consumer`, which was checked, take part."""
        raise NotImplementedError

    def remove_consumer(self, consumer: Consumer) -> None:
        """Forget `consumer`; what it has unsettled stays with its channel. An unused queue may go.

        Nobody is given more for it: that is for `pump`, when all that goes back with it is back.
        """
        raise NotImplementedError

    def unpark(self, consumer: Consumer) -> None:
        """Let `consumer`, parked before, take its turn again; `pump` hands out what is ready."""
        raise NotImplementedError

    def hold_back(self) -> None:
        """The consumer that was removed holds messages still, which may come back in front of what waits.

        Where one consumer is active, the next one gets nothing until some of them are settled, or something
        is published (RabbitMQ 3.10.8, measured). All others are handed out what is ready.
        """
        self.pump()

    def pause(self) -> None:
        """Hand nothing out, neither to consumers nor to who gets, until `resume`."""
        raise NotImplementedError

    def resume(self) -> None:
        """Hand out again, what has come meanwhile first."""
        raise NotImplementedError

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` ready messages from place `first` on, with their bodies; nothing changes.

        ConnectionForced if one cannot be read from the disk.
        """
        raise NotImplementedError

    def extent(self) -> list[range]:
        """The places of all that is ready now, and of nothing that comes later: in ranges that grow."""
        raise NotImplementedError

    def refuses(self, message: Message) -> bool:
        """True if it would not have `message`: it is full, and was told to say so."""
        return False

    def whole(self, delivery: Delivery) -> Message:
        """The message of `delivery`, with its body. ConnectionForced if that cannot be read."""
        return delivery.message

    def purge(self) -> int:
        """Forget what is ready; answers how many messages that were."""
        raise NotImplementedError

    def delete(self) -> int:
        """Be gone: cancel the consumers, forget the messages; answers how many were ready."""
        raise NotImplementedError

    # --- what does not --------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """True if nothing is ready."""
        return not self.message_count

    @property
    def is_unused(self) -> bool:
        """True if it has no consumer."""
        return not self.consumer_count

    def touch(self) -> None:
        """It was declared again: x-expires starts anew."""
        self.used_at = self._host.now

    def mark_stats_dirty(self) -> None:
        """Have the host know that its numbers change, once for as long as nobody looks at them."""
        self.is_dirty = True
        self._host.dirty[self] = None
