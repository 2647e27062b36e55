"""The ready messages of one queue, or of one priority of it, in order of their positions.

Invariants: positions only grow. What was never out lies in the ring, whose first place is position `_base`;
what came back lies in `_returned`. What had been handed out in order has positions below `_base` and goes out
first; what had been taken out of the middle has its place among the others. A place in the ring whose message
expired, or was taken, holds None until the front passes it; the first place never does.
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
# Deadlines of messages that left before them are swept out when they outnumber the others so many times.
_STALE_DEADLINES_FACTOR = 2
_STALE_DEADLINES_MIN = 64


class MessageBacklog:
    """First in, first out, with a way back in and a way out in the middle."""

    __slots__ = (
        "_base",
        "_deadlines",
        "_places",
        "_returned",
        "_returned_order",
        "count",
        "octets",
        "ttl_changes",
    )

    def __init__(self) -> None:
        # Messages, and the octets of their bodies.
        self.count = 0
        self.octets = 0
        self._places = Ring()
        self._base = 0
        self._returned: dict[int, Delivery] | None = None
        self._returned_order: list[int] | None = None
        # (deadline, position) of the messages that carry an expiration of their own.
        self._deadlines: list[tuple[int, int]] | None = None
        # None if all that is here came since the time to live of the queue was changed last.
        self.ttl_changes: TtlChanges | None = None

    def push_delivered(self, message: Message, queue: Queue) -> Delivery:
        """`message` goes out of `queue` without having waited; only while nothing is ready."""
        self._base += 1
        return new_delivery(queue, message, self._base - 1)

    def push(self, message: Message) -> None:
        """Add `message` behind all others."""
        self._places.append(message)
        self.count += 1
        self.octets += body_size_of(message)

    def push_deadline(self, message: Message, ttl_ms: int) -> int:
        """The deadline (ms) of `message`, pushed just now, in a queue with `ttl_ms` (-1: none); -1: none."""
        if not message.flags & _HAS_EXPIRATION:
            return published_at_of(message) + ttl_ms if ttl_ms >= 0 else -1
        deadline = self._deadline(message, ttl_ms)
        self._note_deadline(deadline, self._end() - 1)
        return deadline

    def push_back(self, delivery: Delivery, ttl_ms: int) -> int:
        """Put `delivery` back to its place; answers its deadline (ms), or -1."""
        position = delivery.position
        if self._returned is None or self._returned_order is None:
            self._returned = {}
            self._returned_order = []
        self._returned[position] = delivery
        heappush(self._returned_order, position)
        self.count += 1
        message = delivery.message
        self.octets += delivery.octets
        if message.flags & _HAS_EXPIRATION:
            deadline = self._deadline(message, self._ttl_at(position, ttl_ms))
            self._note_deadline(deadline, position)
            return deadline
        ttl_ms = self._ttl_at(position, ttl_ms)
        return published_at_of(message) + ttl_ms if ttl_ms >= 0 else -1

    def pop(self, queue: Queue) -> Delivery:
        """Take the first message out of `queue`. Only while `count` is not 0."""
        if self._returned and self._is_returned_first():
            self.count -= 1
            delivery = self._pop_returned()
            self.octets -= delivery.octets
            return delivery
        position = self._base
        return new_delivery(queue, self._pop_first(), position)

    def take(self, peeked: PeekedMessage, queue: Queue) -> Delivery | None:
        """Take what was `peeked` at out of `queue`, wherever it waits; None if it does not any more."""
        position = peeked.place
        if not self._holds(position):
            return None
        if self._returned and position in self._returned:
            self.count -= 1
            delivery = self._pop_from_returned(position)
            self.octets -= delivery.octets
            delivery.message = peeked.message
            return delivery
        delivery = new_delivery(queue, peeked.message, position)
        delivery.attempts = peeked.attempts
        self._remove(position, peeked.message)
        return delivery

    def extent(self) -> list[range]:
        """The places of all that waits now, and of nothing that is pushed later: in ranges that grow."""
        return [range(self._end())]

    def place_of(self, delivery: Delivery) -> int:
        """The place that `delivery` was taken from."""
        return delivery.position

    def last_place(self, message: Message) -> int:
        """The place of `message`, which came in last."""
        return self._end() - 1

    def is_fresh(self) -> bool:
        """True if what `pop` would take was never handed out before."""
        return not self._returned

    def pop_message(self) -> Message:
        """Take the first message out for good. Only while `count` is not 0, and `is_fresh`."""
        return self._pop_first()

    def whole(self, message: Message) -> Message:
        """`message`, which was handed out, with its content."""
        return message

    def body(self, message: Message) -> bytes:
        """The body of `message`, which was handed out."""
        return message.content[:-1]

    def settled(self, delivery: Delivery) -> None:
        """`delivery`, taken out before, will not come back."""

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Have `confirmation` told when what was pushed, or passed by, is as safe as it is going to be."""

    def paged_count(self) -> int:
        """How many messages are on the disk only."""
        return 0

    def persistent_count(self) -> int:
        """How many messages would survive a restart: ready ones, and those handed out and not settled."""
        return 0

    def persistent_octets(self) -> int:
        """The octets of the bodies of these."""
        return 0

    def shrink(self) -> None:
        """Page out what is more than the queue may have in memory now."""

    def forget(self) -> None:
        """The queue is gone, and empty."""

    def _pop_first(self) -> Message:
        places = self._places
        message: Message = places.popleft()  # type: ignore[assignment]
        self._base += 1
        self.count -= 1
        self.octets -= body_size_of(message)
        if places.count and places.get(0) is None:
            self._trim()
        return message

    def drop(self) -> Message:
        """Take the first message out for good, handed out before or not. Only while `count` is not 0."""
        if not self._returned or not self._is_returned_first():
            return self.pop_message()
        self.count -= 1
        delivery = self._pop_returned()
        self.octets -= delivery.octets
        return delivery.message

    def first(self) -> Message:
        """The message that `pop` would take, perhaps without its content. Only while `count` is not 0."""
        if self._returned and self._is_returned_first():
            return self._returned[self._first_returned()].message
        return self._places.get(0)  # type: ignore[return-value]

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` of the messages from place `first` on, in the order in which they go out."""
        back = self._returned or {}
        positions = nsmallest(count, (position for position in back if position >= first))
        found = [PeekedMessage(at, self.whole(back[at].message), back[at].attempts) for at in positions]
        if not found or found[-1].place < self._base:
            return found + self._peek_line(first, count - len(found))
        found += self._peek_line(first, count)
        found.sort(key=attrgetter("place"))
        return found[:count]

    def deadline(self, ttl_ms: int) -> int:
        """When the next message expires (ms), in a queue with `ttl_ms` (-1: none); -1: none will."""
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
        """Take out one message whose time is over at `now`, wherever it is; None when there is none."""
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
        """Forget every message."""
        self._base = self._end()
        self._places.clear()
        self._returned = None
        self._returned_order = None
        self._deadlines = None
        self.count = 0
        self.octets = 0

    def keep_ttl(self, ttl_ms: int) -> None:
        """All that waits, or is out, has `ttl_ms` for good, whatever the queue has from here on."""
        if self.ttl_changes is None:
            self.ttl_changes = TtlChanges()
        self.ttl_changes.add(self._end(), ttl_ms)

    def forget_ttls(self) -> None:
        """Nothing is left that came before the last change of the time to live."""
        self.ttl_changes = None

    def kept_ttls(self) -> list[LevelChange]:
        """What `keep_ttl` was told, as far as it still counts."""
        return [(0, *change) for change in self.ttl_changes or ()]

    def restore(self, level: int, found: RecoveredQueue, ttl_ms: int) -> None:
        """Have what was `found` of priority `level`, while nothing was ever pushed here."""
        raise NotImplementedError

    def _peek_line(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` of what was never out, from place `first` on."""
        return self._peek_ring(self._places, self._base, first, count)

    def _peek_ring(self, ring: Ring, base: int, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` of what is in `ring`, whose first place is position `base`, from `first` on."""
        found: list[PeekedMessage] = []
        place = max(first - base, 0)
        while place < ring.count and len(found) < count:
            message: Message | None = ring.get(place)  # type: ignore[assignment]
            if message is not None:
                found.append(PeekedMessage(base + place, message, self._attempts_at(base + place)))
            place += 1
        return found

    def _attempts_at(self, position: int) -> int:
        """How often what waits at `position`, and did not come back, was handed out."""
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
        """True if the first of what came back goes out before the ring. Only while something did."""
        return self._first_returned() < self._base

    def _first_returned(self) -> int:
        """The lowest position that came back; what expired, or was taken, since is passed over."""
        order: list[int] = self._returned_order  # type: ignore[assignment]
        returned: dict[int, Delivery] = self._returned  # type: ignore[assignment]
        while order[0] not in returned:
            heappop(order)
        return order[0]

    def _forget_order(self) -> None:
        """Nothing that came back is left: the positions of what is gone need not be passed over."""
        self._returned_order = []

    def _holds(self, position: int) -> bool:
        if self._returned and position in self._returned:
            return True
        if position < self._base:
            return False
        place = position - self._base
        return place < self._places.count and self._places.get(place) is not None

    def _take(self, position: int) -> Message | None:
        """Take the message at `position` out for good; None if it cannot be read any more."""
        if self._returned and position in self._returned:
            self.count -= 1
            delivery = self._pop_from_returned(position)
            self.octets -= delivery.octets
            return delivery.message
        return self._remove(position, None)

    def _remove(self, position: int, known: Message | None) -> Message | None:
        """Take the message at `position`, which was never out, away; it is not read if it is `known`.

        None if it cannot be read any more.
        """
        message: Message = self._places.take(position - self._base)  # type: ignore[assignment]
        self._trim()
        self.count -= 1
        self.octets -= body_size_of(message)
        return message

    def _trim(self) -> None:
        """Let the front pass the places whose messages expired."""
        while self._places.count and self._places.get(0) is None:
            self._places.popleft()
            self._base += 1

    def _ttl_at(self, position: int, ttl_ms: int) -> int:
        """The time to live of what is at `position`, in a queue with `ttl_ms` now."""
        changes = self.ttl_changes
        return ttl_ms if changes is None else changes.at(position, ttl_ms)

    def _first_ttl(self, ttl_ms: int) -> int:
        """That of the first message. Only while `count` is not 0."""
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
