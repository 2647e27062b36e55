"""The contract of every kind of queue, and the two ports through which a queue calls upwards.

A queue is owned by its virtual host and used by one thread. It delivers messages to `Consumer`s, which the
session implements, and uses its `QueueHost`, which the virtual host implements, for dead-lettering, timers
and deletion.

What is done for each message never waits: publish, settle, deliver. What is done for a method of a client
(basic.get, queue.purge, counts, basic.consume) is a coroutine, which a queue on this node ends at once.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from warren.flow.credit import PublishCredit
from warren.model.confirm_listener import ConfirmListener
from warren.model.counters import Counters
from warren.model.message import Message, body_size_of
from warren.model.turn import Turn
from warren.queues.queue_counts import QueueCounts
from warren.wire.table import Value

# The results of `publish`. BEHIND is added to one of them, or to one of a virtual host, which has 2 as well.
# UNAVAILABLE is added to REFUSED if nobody can reach the queue, so that it is as if there were none.
ACCEPTED = 0
REFUSED = 1
BEHIND = 4
UNAVAILABLE = 8
# Why a delivery returns to its queue: by basic.nack, basic.recover or an operator, so that nobody says that
# it has failed; because of the consumer timeout; or because it has failed (RabbitMQ 4.3), from `REJECTED` on:
# by basic.reject, or the end of its channel. Lower numbers are in `session/subscriber`, for those that leave.
NACKED = 2
TIMED_OUT = 3
REJECTED = 4
CHANNEL_ENDED = 5
# A shared capacity without a limit.
UNLIMITED = 1 << 40


class Consumer:
    """Port: a consumer (basic.consume), as its queue sees it."""

    __slots__ = ("after", "before", "is_exclusive", "is_parked", "no_ack", "priority", "tag")

    def __init__(self, tag: str, *, no_ack: bool, is_exclusive: bool = False, priority: int = 0) -> None:
        self.tag = tag
        self.no_ack = no_ack
        self.is_exclusive = is_exclusive
        self.priority = priority
        # True while the queue has set it aside because it was not ready; see `ConsumerSet`.
        self.is_parked = False
        # Its neighbours in the circle of consumers; None while it is not in it.
        self.after: Consumer | None = None
        self.before: Consumer | None = None

    def is_ready(self) -> bool:
        """True if it can take another message now."""
        raise NotImplementedError

    def prefetch_limit(self) -> int:
        """How many unacknowledged deliveries it may have; 0 is no limit."""
        return 0

    def shared_capacity(self) -> int:
        """How many more deliveries a limit permits that it shares with consumers of other queues."""
        return UNLIMITED

    def read_arguments(self) -> Mapping[str, Value]:
        """The arguments of basic.consume that select what it gets of a stream; see `StreamReadOptions`."""
        return {}

    def deliver(self, delivery: "Delivery") -> None:
        """Take `delivery`, which will be settled later."""
        raise NotImplementedError

    def deliver_message(self, message: Message, redelivered: bool) -> None:
        """Take `message` with automatic acknowledgement: it will not be settled."""
        raise NotImplementedError

    def cancelled(self) -> None:
        """The queue was deleted, or has cancelled the consumer, which is in no set any more."""
        raise NotImplementedError


class Delivery:
    """A message taken out of its queue and not settled yet: its message, its queue and its position."""

    __slots__ = (
        "attempts", "byte_count", "consumer", "delivered_at", "failures", "message", "position", "queue",
    )  # fmt: skip

    def __init__(self, queue: "Queue", message: Message, position: int, attempts: int) -> None:
        self.queue = queue
        self.message = message
        # Size of its body in bytes; `message` may be without the body: see `UnackedPager`.
        self.byte_count = body_size_of(message)
        self.position = position
        # The number of earlier deliveries, and of those among them that have failed.
        self.attempts = attempts
        self.failures = 0
        self.delivered_at = 0
        self.consumer: Consumer | None = None

    def move(self, queue: "Queue", position: int) -> None:
        """Belong to `queue` from now on, at `position` of it: the leader of a quorum queue has changed."""
        self.queue = queue
        self.position = position


def new_delivery(queue: "Queue", message: Message, position: int) -> Delivery:
    """A Delivery that was not delivered before.

    Avoids the boxing that the constructor costs compiled callers.
    """
    delivery: Delivery = Delivery.__new__(Delivery)
    delivery.queue = queue
    delivery.message = message
    delivery.byte_count = body_size_of(message)
    delivery.position = position
    delivery.attempts = 0
    delivery.failures = 0
    delivery.delivered_at = 0
    delivery.consumer = None
    return delivery


class PeekedMessage:
    """A ready message that was read without taking it out of its queue."""

    __slots__ = ("attempts", "message", "place")

    def __init__(self, place: int, message: Message, attempts: int) -> None:
        # Grows along the queue, and stays the same while the message is ready.
        self.place = place
        self.message = message
        # The number of earlier deliveries.
        self.attempts = attempts


class Expirable(Protocol):
    """A queue, or another object that can be woken at a time."""

    def expire(self) -> None:
        """The scheduled time has come."""


class DeliveryHolder(Protocol):
    """A channel, as its virtual host sees it."""

    def held(self) -> "Iterable[Delivery]":
        """The deliveries that are not settled."""

    def note_oldest(self, found: "dict[Queue, int]") -> None:
        """Note in `found` when the oldest unsettled delivery of each queue was made, if that is earlier."""


class QueueHost(Counters):
    """Port: what a queue needs from its virtual host, which also counts the operations of all channels."""

    __slots__ = (
        "behind", "confirmed_dead_letters", "consumer_count", "counts_all_returns", "dirty", "holders",
        "is_traced", "kept_counts", "turn", "work",
    )  # fmt: skip

    def __init__(self, turn: Turn) -> None:
        super().__init__()
        # The work done in this turn beside handling frames one by one, in frames: copies of a message,
        # deliveries settled at once, slow methods. Reset to 0 at the start of a turn.
        self.work = 0
        # The running turn, which has the time.
        self.turn = turn
        # The credit of the queue whose `publish` returned BEHIND last.
        self.behind: PublishCredit | None = None
        # True if each return of a message to a quorum queue counts towards the delivery limit, as in RabbitMQ
        # 3.x; False if only those of messages that have failed do, as in 4.3.
        self.counts_all_returns = True
        # True while published and delivered messages are traced.
        self.is_traced = False
        # The number of consumers of all its queues.
        self.consumer_count = 0
        # The queues whose statistics have changed since they were last taken, so that idle ones cost nothing.
        self.dirty: dict[Queue, None] = {}
        # Reason -> number of messages that died and were kept until their dead letters were confirmed; and
        # the number of those that were.
        self.kept_counts: dict[str, int] = {}
        self.confirmed_dead_letters = 0
        # The channels that have got messages, until they end.
        self.holders: dict[DeliveryHolder, None] = {}

    def take_dirty(self) -> "list[Queue]":
        """The queues whose statistics have changed since the last call."""
        dirty = list(self.dirty)
        self.dirty = {}
        return dirty

    def dead_letter(self, queue: "Queue", message: Message, reason: str) -> None:
        """Dead-letter `message` of `queue`, which has a dead-letter exchange, for `reason`."""
        raise NotImplementedError

    def route_dead_letter(
        self, queue: "Queue", message: Message, reason: str
    ) -> "tuple[Message, list[Queue]] | None":
        """The dead letter that `message` of `queue` becomes, and its targets; None if it cannot be routed."""
        raise NotImplementedError

    def retry_dead_letters(self, waiting: Expirable, when: int) -> None:
        """Call `waiting.expire()` once, at or soon after `when` (ms), or after a route has changed.

        -1 cancels.
        """
        raise NotImplementedError

    def count_discarded(self, queue: "Queue", reason: str) -> None:
        """Count a message that `queue`, which has no dead-letter exchange, has lost for `reason`."""

    def wake_at(self, queue: "Queue", when: int) -> None:
        """Call `queue.expire()` at or soon after `when` (ms) instead of an earlier scheduled time.

        -1 cancels.
        """
        raise NotImplementedError

    async def written(self) -> None:
        """Wait until everything published before is stored as durably as it will be."""
        raise NotImplementedError

    def delete_queue(self, queue: "Queue") -> None:
        """Delete `queue`, which has expired or is auto-deleted."""
        raise NotImplementedError

    def end_failed(self, queue: "Queue", error: Exception) -> None:
        """End `queue`, in which `error` was raised outside of any connection; others go on."""
        raise error


class Queue:
    """The interface of any kind of queue for the virtual host, the router and the channels.

    A coroutine of a queue may wait, for `model/coroutine_driver`. It is continued in a turn of its own or by
    what it waits for, never during a call of this interface, and raises NotFound if the queue is deleted
    meanwhile. If it is closed while it waits, because the client is gone, the queue undoes what it has done.
    """

    __slots__ = ()

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Publish `message` to the queue: ACCEPTED or REFUSED.

        `confirmation` is None if the publisher does not use confirms; otherwise see `ConfirmListener`. With
        BEHIND in addition, the publisher should wait for the credit that its host has as `behind`. REFUSED
        has UNAVAILABLE in addition if the queue is on a node that is away.
        """
        raise NotImplementedError

    @property
    def is_local(self) -> bool:
        """True if it is on this node, so that its coroutines never wait; see `LocalQueue`."""
        return False

    async def inspect(self) -> QueueCounts:
        """The numbers of its ready messages and of its consumers."""
        raise NotImplementedError

    async def fetch(self, no_ack: bool) -> tuple[Delivery, int] | None:
        """Take the first ready message for basic.get, with the number of those behind it; None if there is
        none.

        With `no_ack` it is settled.
        """
        raise NotImplementedError

    async def purge(self) -> int:
        """Drop the ready messages; returns their number."""
        raise NotImplementedError

    async def admit(self, consumer: Consumer) -> None:
        """Raise an AmqpError if `consumer` cannot be added.

        Otherwise it has its place, and gets nothing before `add_consumer`; `remove_consumer` gives it up.
        """
        raise NotImplementedError

    def add_consumer(self, consumer: Consumer) -> None:
        """Add `consumer`, which was admitted in this turn."""
        raise NotImplementedError

    async def end_deliveries(self, consumer: Consumer) -> None:
        """Deliver nothing more to `consumer`, which is removed next; what was sent to it has arrived then.

        Nothing is on its way from a queue on this node.
        """

    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove `consumer`; its unacknowledged messages stay with its channel. The queue may be
        auto-deleted.

        Delivers nothing to others: `pump` does, after the channel has requeued its messages.
        """
        raise NotImplementedError

    def acknowledge(self, delivery: Delivery) -> None:
        """Settle `delivery`."""
        raise NotImplementedError

    def requeue(self, delivery: Delivery, reason: int = NACKED) -> None:
        """Return `delivery` to its place for `reason`, to be redelivered."""
        raise NotImplementedError

    def reject(self, delivery: Delivery) -> None:
        """Dead-letter or drop `delivery`, which was rejected."""
        raise NotImplementedError

    def refuses(self, message: Message) -> bool:
        """True if the queue is full for `message` and rejects publishes."""
        return False

    def exists(self) -> bool:
        """False if the queue was deleted."""
        return True

    def check_positioned(self) -> None:
        """Raise an AmqpError if messages cannot be published to it by their positions, exactly once."""

    def count_broker_published(self) -> None:
        """Count the message that the broker itself has just published."""

    def outgoing(self, delivery: Delivery) -> Message:
        """The message of `delivery` as it is sent to a client, if it was fetched or delivered before."""
        return delivery.message

    def consumer_ready(self, consumer: Consumer) -> None:
        """Unpark `consumer`, which can take messages again."""
        raise NotImplementedError

    def pump(self) -> None:
        """Deliver ready messages; called after requeues."""

    def expire(self) -> None:
        """Handle a wake-up that was scheduled."""
