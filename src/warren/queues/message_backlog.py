"""The ready messages of one queue, or of one of its priority levels, in order of position.

Invariants: positions only grow. Messages that were never delivered are in the ring `places`, whose first
place is position `base`; if they exceed the memory limit of the queue, the last ones are in `tail`. Requeued
messages are apart. Those delivered in order have positions below `base`, and are delivered first; those that
had been taken from the middle keep their place among the others. A place in the ring whose message
expired or was taken holds None until the front passes it; the first place never does.
"""

from heapq import heapify, heappop, heappush
from operator import attrgetter

from warren.errors import ConnectionForced
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import HAS_EXPIRATION, Message, body_size_of, published_at_of
from warren.model.ring import Ring
from warren.queues.backlog import Backlog
from warren.queues.expiration import expiration_ms
from warren.queues.paged_tail import OVERHEAD_SHIFT, UNREADABLE, PagedTail, peek_ring
from warren.queues.queue import Delivery, PeekedMessage, Queue, new_delivery
from warren.queues.requeued_messages import RequeuedMessages
from warren.queues.ttl_changes import LevelChange, TtlChanges

_HAS_EXPIRATION = HAS_EXPIRATION
_OVERHEAD_SHIFT = OVERHEAD_SHIFT
# Deadlines of messages that left earlier are removed when they outnumber the others by this factor.
_STALE_DEADLINES_FACTOR = 2
_STALE_DEADLINES_MIN = 64


class MessageBacklog(Backlog):
    """A first-in, first-out backlog in memory: nothing of it would survive a restart.

    A `DiskBacklog` has one, uses the methods that give positions, and attaches a tail to page messages out.
    """

    __slots__ = ("_deadlines", "base", "places", "requeued", "tail", "ttl_changes")

    def __init__(self) -> None:
        super().__init__()
        # Messages that were never delivered, and the position of the first place.
        self.places = Ring()
        self.base = 0
        # The messages behind the ring; None if all are in the ring.
        self.tail: PagedTail | None = None
        # None until a message is requeued.
        self.requeued: RequeuedMessages | None = None
        # (deadline, position) of messages with an expiration of their own.
        self._deadlines: list[tuple[int, int]] | None = None
        # None if all messages arrived after the time to live of the queue last changed.
        self.ttl_changes: TtlChanges | None = None

    # --- a message that arrives ----------------------------------------------------------------

    def push_delivered(self, message: Message, queue: Queue) -> Delivery:
        """Take `message` directly out of `queue` without enqueueing it; only while no message is ready."""
        self.base += 1
        return new_delivery(queue, message, self.base - 1)

    def push(self, message: Message) -> None:
        """Append `message`. Only while there is no tail."""
        self.places.append(message)
        self.count += 1
        self.byte_count += body_size_of(message)

    def push_to_tail(self, message: Message) -> None:
        """Append `message`, which is to be written to disk. Only while there is a tail."""
        self.tail.append(message)  # type: ignore[union-attr]
        self.count += 1
        self.byte_count += body_size_of(message)

    def push_deadline(self, message: Message, ttl_ms: int) -> int:
        """The deadline (ms) of `message`, which was just pushed; `ttl_ms` is that of the queue.

        -1 means none.
        """
        if not message.flags & _HAS_EXPIRATION:
            return published_at_of(message) + ttl_ms if ttl_ms >= 0 else -1
        return self.add_deadline(message, self.end() - 1, ttl_ms)

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Do nothing: a queue in memory confirms at once."""

    # --- the first message ---------------------------------------------------------------------

    def pop(self, queue: Queue) -> Delivery:
        """Take the first message out of `queue` for delivery. Only while `count` is not 0."""
        if self.requeued is not None and self._is_requeued_first():
            delivery = self.requeued.pop()
            self.count -= 1
            self.byte_count -= delivery.byte_count
            return delivery
        position = self.base
        return new_delivery(queue, self._pop_first(), position)

    def is_fresh(self) -> bool:
        """True if the message that `pop` would take was never delivered before."""
        return self.requeued is None or not self.requeued.count

    def pop_message(self) -> Message:
        """Take the first message out and settle it. Only while `count` is not 0, and `is_fresh`."""
        return self._pop_first()

    def drop(self) -> Message:
        """Take the first message out and settle it, delivered before or not. Only while `count` is not 0."""
        if self.requeued is None or not self._is_requeued_first():
            return self._pop_first()
        delivery = self.requeued.pop()
        self.count -= 1
        self.byte_count -= delivery.byte_count
        return delivery.message

    def first(self) -> Message:
        """The message that `pop` would take, perhaps without its content. Only while `count` is not 0."""
        delivery = self.first_requeued()
        return self.places.get(0) if delivery is None else delivery.message  # type: ignore[return-value]

    def oldest(self) -> int | None:
        """When the oldest message was published (Unix time, ms); None without messages."""
        return published_at_of(self.first()) if self.count else None

    def first_position(self) -> int:
        """The position of the message that `pop` would take. Only while `count` is not 0."""
        if self._is_requeued_first():
            return self.requeued.first_position()  # type: ignore[union-attr]
        return self.base

    def first_requeued(self) -> Delivery | None:
        """The requeued message that `pop` would take; None if it would take one that was never delivered."""
        if not self._is_requeued_first():
            return None
        requeued: RequeuedMessages = self.requeued  # type: ignore[assignment]
        return requeued.get(requeued.first_position())

    # --- a message that was delivered ----------------------------------------------------------

    def settled(self, delivery: Delivery) -> None:
        """Forget `delivery`: there is nothing to forget."""

    def push_back(self, delivery: Delivery, ttl_ms: int) -> int:
        """Return `delivery` to its place; returns its deadline (ms), or -1."""
        if self.requeued is None:
            self.requeued = RequeuedMessages()
        self.requeued.add(delivery)
        self.count += 1
        message = delivery.message
        self.byte_count += delivery.byte_count
        position = delivery.position
        if message.flags & _HAS_EXPIRATION:
            return self.add_deadline(message, position, ttl_ms)
        return self.deadline_of(message, position, ttl_ms)

    def place_of(self, delivery: Delivery) -> int:
        """The place that `delivery` was taken from."""
        return delivery.position

    def whole(self, message: Message) -> Message:
        """`message`, which has its content."""
        return message

    def body(self, message: Message) -> bytes:
        """The body of `message`."""
        return message.content[:-1]

    # --- any message ---------------------------------------------------------------------------

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages from place `first` on, in delivery order."""
        found = [] if self.requeued is None else self.requeued.peek(first, count)
        if not found or found[-1].place < self.base:
            return found + self._peek_line(first, count - len(found))
        found += self._peek_line(first, count)
        found.sort(key=attrgetter("place"))
        return found[:count]

    def take(self, peeked: PeekedMessage, queue: Queue) -> Delivery | None:
        """Take the `peeked` message out of `queue`, wherever it is; None if it is not ready any more.

        It does not count as delivered.
        """
        position = peeked.place
        if not self.holds(position):
            return None
        delivery = self.requeued_at(position)
        if delivery is None:
            delivery = new_delivery(queue, peeked.message, position)
            delivery.attempts = peeked.attempts
        self.remove(position, peeked.message)
        delivery.message = peeked.message
        return delivery

    def remove(self, position: int, known: Message | None) -> Message | None:
        """Take out the message at `position`, which is ready; if it is `known` it need not be read.

        None if it cannot be read any more.
        """
        self.count -= 1
        if self.requeued is not None and self.requeued.holds(position):
            delivery = self.requeued.take(position)
            self.byte_count -= delivery.byte_count
            return delivery.message
        if position < self.base + self.places.count:
            message: Message | None = self.places.take(position - self.base)  # type: ignore[assignment]
            self._trim()
        else:
            message = self.tail.take(position, known)  # type: ignore[union-attr]
        if message is not None:
            self.byte_count -= body_size_of(message)
        return message

    def holds(self, position: int) -> bool:
        """True if the message at `position` is ready."""
        if self.requeued is not None and self.requeued.holds(position):
            return True
        if position < self.base:
            return False
        place = position - self.base
        if place < self.places.count:
            return self.places.get(place) is not None
        return self.tail is not None and self.tail.holds(position)

    def requeued_at(self, position: int) -> Delivery | None:
        """The requeued message at `position`; None if there is none."""
        if self.requeued is None or not self.requeued.holds(position):
            return None
        return self.requeued.get(position)

    def extent(self) -> list[range]:
        """The places of all messages that are ready now, as increasing ranges that exclude later messages."""
        return [range(self.end())]

    def last_place(self, message: Message) -> int:
        """The place of `message`, which was the last one pushed."""
        return self.end() - 1

    def end(self) -> int:
        """The position of the next message that is pushed."""
        return self.base + self.places.count if self.tail is None else self.tail.end()

    # --- expiry --------------------------------------------------------------------------------

    def deadline_of(self, message: Message, position: int, ttl_ms: int) -> int:
        """The time (ms) when `message`, which was taken from `position`, expires with `ttl_ms` of the queue.

        -1 means never.
        """
        ttl_ms = self._ttl_at(position, ttl_ms)
        if message.flags & _HAS_EXPIRATION:
            own = expiration_ms(message)
            if ttl_ms < 0 or own < ttl_ms:
                ttl_ms = own
        return published_at_of(message) + ttl_ms if ttl_ms >= 0 else -1

    def deadline(self, ttl_ms: int) -> int:
        """The time (ms) when the next message expires, with `ttl_ms` of the queue; -1 means none."""
        nearest = -1
        if self.count:
            ttl_ms = self._first_ttl(ttl_ms)
            if ttl_ms >= 0:
                nearest = published_at_of(self.first()) + ttl_ms
        deadlines = self._deadlines
        while deadlines and not self.holds(deadlines[0][1]):
            heappop(deadlines)
        if deadlines and (nearest < 0 or deadlines[0][0] < nearest):
            nearest = deadlines[0][0]
        return nearest

    def pop_expired(self, now: int, ttl_ms: int) -> Message | None:
        """Take out one message that has expired at `now` (ms), wherever it is; None if there is none."""
        position = self.expired_place(now, ttl_ms)
        return None if position < 0 else self.remove(position, None)

    def expired_place(self, now: int, ttl_ms: int) -> int:
        """The place of one message that has expired at `now` (ms), which the caller removes; -1 if there
        is none.
        """
        if not self.count:
            return -1
        ttl_ms = self._first_ttl(ttl_ms)
        if ttl_ms >= 0 and published_at_of(self.first()) + ttl_ms <= now:
            return self.first_position()
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now:
            position = heappop(deadlines)[1]
            if self.holds(position):
                return position
        return -1

    def add_deadline(self, message: Message, position: int, ttl_ms: int) -> int:
        """Note and return the deadline (ms) of `message` at `position`, with an expiration of its own."""
        deadline = self.deadline_of(message, position, ttl_ms)
        deadlines = self._deadlines
        if deadlines is None:
            deadlines = self._deadlines = []
        elif len(deadlines) > _STALE_DEADLINES_MIN + _STALE_DEADLINES_FACTOR * self.count:
            deadlines[:] = [entry for entry in deadlines if self.holds(entry[1])]
            heapify(deadlines)
        heappush(deadlines, (deadline, position))
        return deadline

    def keep_ttl(self, ttl_ms: int) -> None:
        """Keep `ttl_ms` for all present and unacknowledged messages, whatever the queue's value becomes."""
        if self.ttl_changes is None:
            self.ttl_changes = TtlChanges()
        self.ttl_changes.add(self.end(), ttl_ms)

    def forget_ttls(self) -> None:
        """Forget earlier times to live, since no message has them any more."""
        self.ttl_changes = None

    def kept_ttls(self) -> list[LevelChange]:
        """The changes recorded by `keep_ttl` that still matter."""
        return [(0, *change) for change in self.ttl_changes or ()]

    # --- all messages --------------------------------------------------------------------------

    def clear(self) -> None:
        """Drop all messages."""
        self.base = self.end()
        if self.tail is not None:
            self.tail.close()
            self.tail = None
        self.places.clear()
        self.requeued = None
        self._deadlines = None
        self.count = 0
        self.byte_count = 0

    def forget(self) -> None:
        """Release everything: there is nothing outside of memory."""

    def shrink(self) -> None:
        """Do nothing: without a data directory all messages stay in memory."""

    def paged_count(self) -> int:
        """The number of messages that are only on disk."""
        return 0 if self.tail is None else self.tail.index.count

    def persistent_count(self) -> int:
        """The number of messages that would survive a restart: none."""
        return 0

    def persistent_bytes(self) -> int:
        """The size in bytes of the bodies that would survive a restart: 0."""
        return 0

    # --- paging --------------------------------------------------------------------------------

    def cut(self, size_max: int) -> Ring:
        """Remove the places behind the first `size_max` bytes of messages, and return them.

        The messages still count: the caller appends them to a tail, and attaches it.
        """
        places, kept, rest = self.places, Ring(), Ring()
        size = 0
        for place in range(places.count):
            message: Message | None = places.get(place)  # type: ignore[assignment]
            if size <= size_max:
                kept.append(message)
            else:
                rest.append(message)
            if message is not None:
                size += body_size_of(message) + (1 << _OVERHEAD_SHIFT)
        self.places = kept
        return rest

    def restore_tail(self, tail: PagedTail, byte_count: int) -> None:
        """Begin with the messages of `tail`, all on disk; their bodies have `byte_count` bytes."""
        self.tail = tail
        self.count = tail.index.count
        self.byte_count = byte_count
        self._refill()

    def start_at(self, position: int) -> None:
        """Give the next message `position`; only while the backlog is new."""
        self.base = position

    # --- private -------------------------------------------------------------------------------

    def _peek_line(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages that were never delivered, from position `first` on."""
        found = peek_ring(self.places, self.base, first, count)
        return found if self.tail is None else found + self.tail.peek(first, count - len(found))

    def _pop_first(self) -> Message:
        """Take out the first message that was never delivered. ConnectionForced if it cannot be read."""
        places = self.places
        if not places.count:
            # The error was reported, and the virtual host will be restarted.
            raise ConnectionForced(UNREADABLE)
        message: Message = places.popleft()  # type: ignore[assignment]
        self.base += 1
        self.count -= 1
        self.byte_count -= body_size_of(message)
        if not places.count:
            if self.tail is not None:
                self._refill()
        elif places.get(0) is None:
            self._trim()
        return message

    def _is_requeued_first(self) -> bool:
        """True if the first message was requeued."""
        requeued = self.requeued
        return requeued is not None and requeued.count > 0 and requeued.first_position() < self.base

    def _refill(self) -> None:
        """Load the first messages of the tail, since the ring is empty; paging ends when all are loaded."""
        tail: PagedTail = self.tail  # type: ignore[assignment]
        if tail.index.count:
            self.base = tail.load(self.places, self.base)
        if self.places.count or tail.index.count:
            return
        self.places = tail.recent
        self.base = tail.recent_base
        self.tail = None
        tail.close()
        self._trim()

    def _trim(self) -> None:
        """Advance the front over places whose messages expired or were taken."""
        places = self.places
        while places.count and places.get(0) is None:
            places.popleft()
            self.base += 1
        if not places.count and self.tail is not None:
            self._refill()

    def _ttl_at(self, position: int, ttl_ms: int) -> int:
        """The time to live of the message at `position`, with `ttl_ms` of the queue."""
        changes = self.ttl_changes
        return ttl_ms if changes is None else changes.at(position, ttl_ms)

    def _first_ttl(self, ttl_ms: int) -> int:
        """The time to live of the first message. Only while `count` is not 0."""
        return ttl_ms if self.ttl_changes is None else self._ttl_at(self.first_position(), ttl_ms)
