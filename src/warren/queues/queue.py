"""The contract of every kind of queue, and the two ports through which a queue speaks upwards.

A queue is owned by its virtual host and touched by one thread. It gives messages to `Consumer`s, which the
session subclasses, and asks its `QueueHost`, which the virtual host subclasses, for what needs other names:
routing the dead, waking up later, and being deleted.
"""

from warren.model.confirm_listener import ConfirmListener
from warren.model.counters import Counters
from warren.model.message import Message, body_size_of

# What `publish` answers.
ACCEPTED = 0
REFUSED = 1


class Consumer:
    """Port: one basic.consume, as its queue sees it."""

    __slots__ = ("after", "before", "is_exclusive", "is_parked", "no_ack", "priority", "tag")

    def __init__(self, tag: str, *, no_ack: bool, is_exclusive: bool = False, priority: int = 0) -> None:
        self.tag = tag
        self.no_ack = no_ack
        self.is_exclusive = is_exclusive
        self.priority = priority
        # True while the queue has put it aside because it was not ready; see `ConsumerSet`.
        self.is_parked = False
        # Its neighbours among those that take turns with it; None while it takes none.
        self.after: Consumer | None = None
        self.before: Consumer | None = None

    def is_ready(self) -> bool:
        """True if it can take one more message now."""
        raise NotImplementedError

    def deliver(self, delivery: "Delivery") -> None:
        """Take `delivery`, which is to be settled later."""
        raise NotImplementedError

    def deliver_message(self, message: Message, redelivered: bool) -> None:
        """Take `message` for good: nothing will be settled."""
        raise NotImplementedError

    def cancelled(self) -> None:
        """The queue is gone, or has ended the consumer; it is in no set any more."""
        raise NotImplementedError


class Delivery:
    """A message between its queue and its settling: who got it, and where in the queue it belongs."""

    __slots__ = ("attempts", "consumer", "delivered_at", "message", "octets", "position", "queue")

    def __init__(self, queue: "Queue", message: Message, position: int, attempts: int) -> None:
        self.queue = queue
        self.message = message
        # Size of its body in bytes; `message` may be without the body: see `UnackedPager`.
        self.octets = body_size_of(message)
        self.position = position
        # How often it was handed out before this time.
        self.attempts = attempts
        self.delivered_at = 0
        self.consumer: Consumer | None = None


def new_delivery(queue: "Queue", message: Message, position: int) -> Delivery:
    """The same as calling Delivery for a first time, without the boxing that costs a compiled caller."""
    delivery: Delivery = Delivery.__new__(Delivery)
    delivery.queue = queue
    delivery.message = message
    delivery.octets = body_size_of(message)
    delivery.position = position
    delivery.attempts = 0
    delivery.delivered_at = 0
    delivery.consumer = None
    return delivery


class PeekedMessage:
    """A message that somebody looks at, where it waits: nothing changes by it."""

    __slots__ = ("attempts", "message", "place")

    def __init__(self, place: int, message: Message, attempts: int) -> None:
        # Grows along the queue, and stays the same for as long as the message waits.
        self.place = place
        self.message = message
        # How often it was handed out.
        self.attempts = attempts


class QueueHost(Counters):
    """Port: what a queue needs from the virtual host that it lives in, which counts what all channels do."""

    __slots__ = ("consumer_count", "dirty", "is_traced", "now", "work")

    def __init__(self, now: int) -> None:
        super().__init__()
        # What the turn that is going on has done beside obeying frames one by one, in frames: copies of a
        # message, deliveries settled at once, methods that take long. Whoever begins a turn sets it to 0.
        self.work = 0
        # Unix time in milliseconds, as of the read or the timer that is being handled.
        self.now = now
        # True while copies are made of what is published and delivered.
        self.is_traced = False
        # Consumers of all its queues.
        self.consumer_count = 0
        # The queues whose numbers have changed since somebody took this: idle ones cost who samples nothing.
        self.dirty: dict[Queue, None] = {}

    def take_dirty(self) -> "list[Queue]":
        """The queues whose numbers have changed since this was asked last."""
        dirty = list(self.dirty)
        self.dirty = {}
        return dirty

    def dead_letter(self, queue: "Queue", message: Message, reason: str) -> None:
        """`message` died in `queue`, which has a dead-letter exchange, for `reason`."""
        raise NotImplementedError

    def count_discarded(self, queue: "Queue", reason: str) -> None:
        """A message died in `queue`, which has no dead-letter exchange, for `reason`: it is gone."""

    def wake_at(self, queue: "Queue", when: int) -> None:
        """Call `queue.expire()` at `when` (ms), or a little later, and at no time given before; -1: never."""
        raise NotImplementedError

    async def written(self) -> None:
        """Wait until everything that was published before is as safe as it is going to be."""
        raise NotImplementedError

    def delete_queue(self, queue: "Queue") -> None:
        """`queue` has outlived its use (auto-delete, x-expires) and is to be deleted."""
        raise NotImplementedError


class Queue:
    """What the virtual host, the router and the channels know of a queue of any kind."""

    __slots__ = ()

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Take one more message: ACCEPTED or REFUSED.

        `confirmation` is None when nobody waits for a confirm; see `ConfirmListener` for the rest.
        """
        raise NotImplementedError

    def get(self, no_ack: bool = False) -> Delivery | None:
        """The first ready message, handed out; None when nothing is ready (basic.get).

        With `no_ack` it is done with.
        """
        raise NotImplementedError

    def acknowledge(self, delivery: Delivery) -> None:
        """`delivery` is done with."""
        raise NotImplementedError

    def requeue(self, delivery: Delivery) -> None:
        """`delivery` goes back to its place, to be redelivered."""
        raise NotImplementedError

    def reject(self, delivery: Delivery) -> None:
        """`delivery` dies."""
        raise NotImplementedError

    def check_return(self) -> None:
        """Raise if nothing that was handed out is ever taken back."""

    def consumer_ready(self, consumer: Consumer) -> None:
        """`consumer`, parked before, can take messages again."""
        raise NotImplementedError

    def pump(self) -> None:
        """Hand out what is ready; called after requeues."""

    def expire(self) -> None:
        """A time that it asked to be woken at has come."""
