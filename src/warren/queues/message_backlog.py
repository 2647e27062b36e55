"""The ready messages of one queue, or of one of its priority levels, in order of position.

Invariants: positions only grow. Messages that were never delivered are in the ring, whose first place is
position `_base`; requeued messages are in `_returned`. Those that had been delivered in order have positions
below `_base` and are delivered first; those that had been taken from the middle keep their place among the
others. A place in the ring whose message expired or was taken holds None until the front passes it; the first
place never does.
"""

from heapq import heapify, heappop, heappush, nsmallest
from operator import attrgetter

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import HAS_EXPIRATION, Message, body_size_of, published_at_of
from warren.model.ring import Ring
from warren.queues.expiration import expiration_ms
from warren.queues.queue import Delivery, PeekedMessage, Queue, new_delivery
from warren.queues.ttl_changes import LevelChange, TtlChanges
from warren.store.recovered_queue import RecoveredQueue

_HAS_EXPIRATION = HAS_EXPIRATION
# Deadlines of messages that left earlier are removed when they outnumber the others by this factor.
_STALE_DEADLINES_FACTOR = 2
_STALE_DEADLINES_MIN = 64


class MessageBacklog:
    """A first-in, first-out backlog with requeue, and removal from the middle."""

    __slots__ = (
        "_base",
        "_deadlines",
        "_places",
        "_returned",
        "_returned_order",
        "byte_count",
        "count",
        "ttl_changes",
    )

    def __init__(self) -> None:
        # The number of messages, and the size of their bodies in bytes.
        self.count = 0
        self.byte_count = 0
        self._places = Ring()
        self._base = 0
        self._returned: dict[int, Delivery] | None = None
        self._returned_order: list[int] | None = None
        # (deadline, position) of messages with an expiration of their own.
        self._deadlines: list[tuple[int, int]] | None = None
        # None if all messages arrived after the time to live of the queue last changed.
        self.ttl_changes: TtlChanges | None = None

    def push_delivered(self, message: Message, queue: Queue) -> Delivery:
        """Take `message` directly out of `queue` without enqueueing it; only while no message is ready."""
        self._base += 1
        return new_delivery(queue, message, self._base - 1)

    def push(self, message: Message) -> None:
        """Append `message`."""
        self._places.append(message)
        self.count += 1
        self.byte_count += body_size_of(message)

    def push_deadline(self, message: Message, ttl_ms: int) -> int:
        """The deadline (ms) of `message`, which was just pushed; `ttl_ms` is that of the queue.

        -1 means none.
        """
        if not message.flags & _HAS_EXPIRATION:
            return published_at_of(message) + ttl_ms if ttl_ms >= 0 else -1
        deadline = self._deadline(message, ttl_ms)
        self._note_deadline(deadline, self._end() - 1)
        return deadline

    def push_back(self, delivery: Delivery, ttl_ms: int) -> int:
        """Return `delivery` to its place; returns its deadline (ms), or -1."""
        position = delivery.position
        if self._returned is None or self._returned_order is None:
            self._returned = {}
            self._returned_order = []
        self._returned[position] = delivery
        heappush(self._returned_order, position)
        self.count += 1
        message = delivery.message
        self.byte_count += delivery.byte_count
        if message.flags & _HAS_EXPIRATION:
            deadline = self._deadline(message, self._ttl_at(position, ttl_ms))
            self._note_deadline(deadline, position)
            return deadline
        ttl_ms = self._ttl_at(position, ttl_ms)
        return published_at_of(message) + ttl_ms if ttl_ms >= 0 else -1

    def pop(self, queue: Queue) -> Delivery:
        """Take the first message out of `queue` for delivery. Only while `count` is not 0."""
        if self._returned and self._is_returned_first():
            self.count -= 1
            delivery = self._pop_returned()
            self.byte_count -= delivery.byte_count
            return delivery
        position = self._base
        return new_delivery(queue, self._pop_first(), position)

    def take(self, peeked: PeekedMessage, queue: Queue) -> Delivery | None:
        """Take the `peeked` message out of `queue`, wherever it is; None if it is not ready any more."""
        position = peeked.place
        if not self._holds(position):
            return None
        if self._returned and position in self._returned:
            self.count -= 1
            delivery = self._pop_from_returned(position)
            self.byte_count -= delivery.byte_count
            delivery.message = peeked.message
            return delivery
        delivery = new_delivery(queue, peeked.message, position)
        delivery.attempts = peeked.attempts
        self._remove(position, peeked.message)
        return delivery

    def extent(self) -> list[range]:
        """The places of all messages that are ready now, as increasing ranges that exclude later messages."""
        return [range(self._end())]

    def place_of(self, delivery: Delivery) -> int:
        """The place that `delivery` was taken from."""
        return delivery.position

    def last_place(self, message: Message) -> int:
        """The place of `message`, which was the last one pushed."""
        return self._end() - 1

    def is_fresh(self) -> bool:
        """True if the message that `pop` would take was never delivered before."""
        return not self._returned

    def pop_message(self) -> Message:
        """Take the first message out and settle it. Only while `count` is not 0, and `is_fresh`."""
        return self._pop_first()

    def whole(self, message: Message) -> Message:
        """`message`, which was delivered, with its content."""
        return message

    def body(self, message: Message) -> bytes:
        """The body of `message`, which was delivered."""
        return message.content[:-1]

    def settled(self, delivery: Delivery) -> None:
        """Forget `delivery`, which was taken out before and is settled."""

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Confirm to `confirmation` when everything pushed or delivered so far is stored as durably as it
        will be.
        """

    def paged_count(self) -> int:
        """The number of messages that are only on disk."""
        return 0

    def persistent_count(self) -> int:
        """The number of messages that would survive a restart, ready or unacknowledged."""
        return 0

    def persistent_bytes(self) -> int:
        """The size in bytes of the bodies that would survive a restart."""
        return 0

    def shrink(self) -> None:
        """Page out messages that exceed the memory limit of the queue."""

    def forget(self) -> None:
        """Release everything; called when the queue was deleted and is empty."""

    def _pop_first(self) -> Message:
        places = self._places
        message: Message = places.popleft()  # type: ignore[assignment]
        self._base += 1
        self.count -= 1
        self.byte_count -= body_size_of(message)
        if places.count and places.get(0) is None:
            self._trim()
        return message

    def drop(self) -> Message:
        """Take the first message out and settle it, delivered before or not. Only while `count` is not 0."""
        if not self._returned or not self._is_returned_first():
            return self.pop_message()
        self.count -= 1
        delivery = self._pop_returned()
        self.byte_count -= delivery.byte_count
        return delivery.message

    def first(self) -> Message:
        """The message that `pop` would take, perhaps without its content. Only while `count` is not 0."""
        if self._returned and self._is_returned_first():
            return self._returned[self._first_returned()].message
        return self._places.get(0)  # type: ignore[return-value]

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages from place `first` on, in delivery order."""
        back = self._returned or {}
        positions = nsmallest(count, (position for position in back if position >= first))
        found = [PeekedMessage(at, self.whole(back[at].message), back[at].attempts) for at in positions]
        if not found or found[-1].place < self._base:
            return found + self._peek_line(first, count - len(found))
        found += self._peek_line(first, count)
        found.sort(key=attrgetter("place"))
        return found[:count]

    def deadline(self, ttl_ms: int) -> int:
        """The time (ms) when the next message expires, with `ttl_ms` of the queue; -1 means none."""
        nearest = -1
        if self.count:
            ttl_ms = self._first_ttl(ttl_ms)
            if ttl_ms >= 0:
                nearest = published_at_of(self.first()) + ttl_ms
        deadlines = self._deadlines
        while deadlines and not self._holds(deadlines[0][1]):
            heappop(deadlines)
        if deadlines and (nearest < 0 or deadlines[0][0] < nearest):
            nearest = deadlines[0][0]
        return nearest

    def pop_expired(self, now: int, ttl_ms: int) -> Message | None:
        """Take out one message that has expired at `now` (ms), wherever it is; None if there is none."""
        if not self.count:
            return None
        ttl_ms = self._first_ttl(ttl_ms)
        if ttl_ms >= 0 and published_at_of(self.first()) + ttl_ms <= now:
            return self.drop()
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now:
            position = heappop(deadlines)[1]
            if self._holds(position):
                return self._take(position)
        return None

    def clear(self) -> None:
        """Drop all messages."""
        self._base = self._end()
        self._places.clear()
        self._returned = None
        self._returned_order = None
        self._deadlines = None
        self.count = 0
        self.byte_count = 0

    def keep_ttl(self, ttl_ms: int) -> None:
        """Keep `ttl_ms` for all present and unacknowledged messages, whatever the queue's value becomes."""
        if self.ttl_changes is None:
            self.ttl_changes = TtlChanges()
        self.ttl_changes.add(self._end(), ttl_ms)

    def forget_ttls(self) -> None:
        """Forget earlier times to live, since no message has them any more."""
        self.ttl_changes = None

    def kept_ttls(self) -> list[LevelChange]:
        """The changes recorded by `keep_ttl` that still matter."""
        return [(0, *change) for change in self.ttl_changes or ()]

    def restore(self, level: int, found: RecoveredQueue, ttl_ms: int) -> None:
        """Restore the messages of priority `level` that were `found`; nothing may have been pushed before."""
        raise NotImplementedError

    def _peek_line(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages that were never delivered, from place `first` on."""
        return self._peek_ring(self._places, self._base, first, count)

    def _peek_ring(self, ring: Ring, base: int, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages in `ring`, whose first place is position `base`, from place `first` on."""
        found: list[PeekedMessage] = []
        place = max(first - base, 0)
        while place < ring.count and len(found) < count:
            message: Message | None = ring.get(place)  # type: ignore[assignment]
            if message is not None:
                found.append(PeekedMessage(base + place, message, self._attempts_at(base + place)))
            place += 1
        return found

    def _attempts_at(self, position: int) -> int:
        """The number of earlier deliveries of the message at `position`, which was not requeued."""
        return 0

    def _end(self) -> int:
        """The position of the next message that is pushed."""
        return self._base + self._places.count

    def _pop_returned(self) -> Delivery:
        position = self._first_returned()
        heappop(self._returned_order)  # type: ignore[arg-type]
        return self._pop_from_returned(position)

    def _pop_from_returned(self, position: int) -> Delivery:
        delivery: Delivery = self._returned.pop(position)  # type: ignore[union-attr]
        if not self._returned:
            self._forget_order()
        return delivery

    def _is_returned_first(self) -> bool:
        """True if the first requeued message comes before the ring. Only if there is a requeued message."""
        return self._first_returned() < self._base

    def _first_returned(self) -> int:
        """The lowest position of the requeued messages; positions that expired or were taken are skipped."""
        order: list[int] = self._returned_order  # type: ignore[assignment]
        returned: dict[int, Delivery] = self._returned  # type: ignore[assignment]
        while order[0] not in returned:
            heappop(order)
        return order[0]

    def _forget_order(self) -> None:
        """Clear the order of requeued messages, since none is left."""
        self._returned_order = []

    def _holds(self, position: int) -> bool:
        if self._returned and position in self._returned:
            return True
        if position < self._base:
            return False
        place = position - self._base
        return place < self._places.count and self._places.get(place) is not None

    def _take(self, position: int) -> Message | None:
        """Take the message at `position` out and settle it; None if it cannot be read any more."""
        if self._returned and position in self._returned:
            self.count -= 1
            delivery = self._pop_from_returned(position)
            self.byte_count -= delivery.byte_count
            return delivery.message
        return self._remove(position, None)

    def _remove(self, position: int, known: Message | None) -> Message | None:
        """Remove the message at `position`, which was never delivered; if it is `known` it need not be read.

        None if it cannot be read any more.
        """
        message: Message = self._places.take(position - self._base)  # type: ignore[assignment]
        self._trim()
        self.count -= 1
        self.byte_count -= body_size_of(message)
        return message

    def _trim(self) -> None:
        """Advance the front over places whose messages expired or were taken."""
        while self._places.count and self._places.get(0) is None:
            self._places.popleft()
            self._base += 1

    def _ttl_at(self, position: int, ttl_ms: int) -> int:
        """The time to live of the message at `position`, with `ttl_ms` of the queue."""
        changes = self.ttl_changes
        return ttl_ms if changes is None else changes.at(position, ttl_ms)

    def _first_ttl(self, ttl_ms: int) -> int:
        """The time to live of the first message. Only while `count` is not 0."""
        if self.ttl_changes is None:
            return ttl_ms
        is_returned = self._returned and self._is_returned_first()
        return self._ttl_at(self._first_returned() if is_returned else self._base, ttl_ms)

    def _deadline(self, message: Message, ttl_ms: int) -> int:
        own = expiration_ms(message)
        return published_at_of(message) + (own if ttl_ms < 0 or own < ttl_ms else ttl_ms)

    def _note_deadline(self, deadline: int, position: int) -> None:
        deadlines = self._deadlines
        if deadlines is None:
            deadlines = self._deadlines = []
        elif len(deadlines) > _STALE_DEADLINES_MIN + _STALE_DEADLINES_FACTOR * self.count:
            deadlines[:] = [entry for entry in deadlines if self._holds(entry[1])]
            heapify(deadlines)
        heappush(deadlines, (deadline, position))
