"""Ready messages of which the persistent ones are kept in a store, and only the first need be in memory.

What is handed out is marked as reached, so that it is redelivered after a crash; what is settled, or leaves
for good, is released. What was handed out at once to a consumer that settles nothing was never kept.

While all fit into the memory that the queue may take, they wait in the ring (alpha). Then it pages:

    ring, `_base` on │ row of locations, 8 octets each │ `_recent`, up to `_end`
    in memory        │ on the disk only (delta)        │ in memory, until they are written

What is pushed goes to `_recent`, and on into the row as soon as it is written; a transient message is written
for this, to a store that no start reads. The ring is filled again from the row when its last message leaves,
and when there is nothing in the row, `_recent` becomes the ring. Positions grow from left to right.
"""

from warren.errors import ConnectionForced
from warren.limits import PAGED_GAP_MAX, READ_AHEAD_SIZE
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import (
    BODY_ON_DISK,
    PERSISTENT,
    SPILLED,
    Message,
    StoredMessage,
    body_size_of,
    spilled,
)
from warren.model.ring import Ring
from warren.queues.message_backlog import MessageBacklog
from warren.queues.paged_index import PagedIndex
from warren.queues.queue import Delivery, PeekedMessage, Queue
from warren.store.cursor import QueueCursor
from warren.store.message_reader import MessageReader
from warren.store.recovered_queue import RecoveredQueue
from warren.store.stores import Stores

_PERSISTENT = PERSISTENT
_SPILLED = SPILLED
_BODY_ON_DISK = BODY_ON_DISK
_READ_AHEAD_SIZE = READ_AHEAD_SIZE
_GAP_MAX = PAGED_GAP_MAX
# What a message takes in memory beside its body: shifted by so much, 128 octets.
_OVERHEAD_SHIFT = 7
_UNREADABLE = "a message cannot be read from the disk"


class DiskBacklog(MessageBacklog):
    """What `MessageBacklog` is, for a queue, or one priority of it, on a node with a data directory.

    `cursor` is None for a queue that is not durable: its messages may go to the disk, and none survives.
    """

    __slots__ = (
        "_cursor", "_out", "_paged", "_persistent_count", "_persistent_flag", "_persistent_octets", "_recent",
        "_recent_base", "_redelivered_below", "_spilled_count", "_spilled_octets", "_stores",
    )  # fmt: skip

    def __init__(self, stores: Stores, cursor: QueueCursor | None) -> None:
        super().__init__()
        self._stores = stores
        self._cursor = stores.no_cursor if cursor is None else cursor
        # The flag of messages that are kept; 0 if none are.
        self._persistent_flag = _PERSISTENT if cursor is not None else 0
        # Of the messages that are kept, and of the transient ones that are on the disk, and their bodies.
        self._persistent_count = 0
        self._persistent_octets = 0
        self._spilled_count = 0
        self._spilled_octets = 0
        # None while it does not page.
        self._paged: PagedIndex | None = None
        self._recent: Ring | None = None
        self._recent_base = 0
        # Positions that were taken out of the middle, and are neither settled nor back; None: never any.
        self._out: set[int] | None = None
        # All before this position was handed out before the last start.
        self._redelivered_below = 0

    def paged_count(self) -> int:
        """How many of its messages are on the disk only."""
        return 0 if self._paged is None else self._paged.count

    def persistent_count(self) -> int:
        """How many messages would survive a restart: ready ones, and those handed out and not settled."""
        return self._persistent_count

    def persistent_octets(self) -> int:
        """The octets of the bodies of these."""
        return self._persistent_octets

    def push_delivered(self, message: Message, queue: Queue) -> Delivery:
        """`message` goes out of `queue` without having waited; only while nothing is ready."""
        delivery = MessageBacklog.push_delivered(self, message, queue)
        if message.flags & self._persistent_flag:
            self._persist(message, delivery.position)
            self._stores.persistent.delivered_up_to(self._cursor, delivery.position + 1)
        return delivery

    def push(self, message: Message) -> None:
        """Add `message` behind all others."""
        if self._paged is not None:
            self._push_behind(message)
            return
        if message.flags & self._persistent_flag:
            self._persist(message, self._base + self._places.count)
        MessageBacklog.push(self, message)
        if self._takes_too_much():
            self._begin_paging()

    def pop(self, queue: Queue) -> Delivery:
        """Take the first message out of `queue`. Only while `count` is not 0."""
        if self._returned and self._is_returned_first():
            self._read_returned()
        delivery = MessageBacklog.pop(self, queue)
        flags = delivery.message.flags
        if flags & self._persistent_flag:
            if delivery.position < self._redelivered_below and not delivery.attempts:
                delivery.attempts = 1
            self._stores.persistent.delivered_up_to(self._cursor, delivery.position + 1)
        elif flags & _SPILLED:
            self._unspill(delivery.message)
        return delivery

    def take(self, peeked: PeekedMessage, queue: Queue) -> Delivery | None:
        """Take what was `peeked` at out of `queue`, wherever it waits; None if it does not any more.

        It was not handed out for that: nothing is marked as reached.
        """
        delivery = MessageBacklog.take(self, peeked, queue)
        if delivery is None:
            return None
        if delivery.message.flags & _SPILLED:
            self._unspill(delivery.message)
        if self._out is None:
            self._out = set()
        self._out.add(delivery.position)
        return delivery

    def push_back(self, delivery: Delivery, ttl_ms: int) -> int:
        """Put `delivery` back to its place; answers its deadline (ms), or -1."""
        if self._out:
            self._out.discard(delivery.position)
        return MessageBacklog.push_back(self, delivery, ttl_ms)

    def is_fresh(self) -> bool:
        """True if what `pop` would take was never handed out before."""
        return not self._returned and self._base >= self._redelivered_below

    def pop_message(self) -> Message:
        """Hand the first message out for good. Only while `count` is not 0, and `is_fresh`."""
        position = self._base
        message = self._drop_first()
        if message.flags & self._persistent_flag:
            # Until the release is written, it may come back.
            self._stores.persistent.delivered_up_to(self._cursor, position + 1)
        return message

    def whole(self, message: Message) -> Message:
        """`message`, which was handed out, with its content. ConnectionForced if that cannot be read."""
        if not message.flags & _BODY_ON_DISK:
            return message
        stored: StoredMessage = message  # type: ignore[assignment]
        return self._read(stored.location)

    def body(self, message: Message) -> bytes:
        """The body of `message`, which was handed out. ConnectionForced if it cannot be read."""
        if not message.flags & _BODY_ON_DISK:
            return MessageBacklog.body(self, message)
        stored: StoredMessage = message  # type: ignore[assignment]
        self._stores.read_count += 1
        try:
            read = self._stores.store_of(stored.location).reader().read_body(stored.location)
        except OSError:
            read = None
        if read is None:
            raise ConnectionForced(_UNREADABLE)
        return read

    def settled(self, delivery: Delivery) -> None:
        """`delivery`, taken out before, will not come back."""
        if self._out:
            self._out.discard(delivery.position)
        self._release(delivery.message, delivery.position)
        if delivery.message.flags & _BODY_ON_DISK:
            self._persistent_octets -= delivery.octets

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Have `confirmation` told when everything that was pushed, or passed by, is on the disk."""
        if self._persistent_flag:
            self._stores.persistent.confirm(confirmation, sequence)

    def drop(self) -> Message:
        """Take the first message out for good, handed out before or not. Only while `count` is not 0."""
        if not self._returned or not self._is_returned_first():
            return self._drop_first()
        self._read_returned()
        position = self._first_returned()
        message = MessageBacklog.drop(self)
        self._release(message, position)
        return message

    def forget(self) -> None:
        """The queue is gone, and empty."""
        if self._persistent_flag:
            self._stores.persistent.drop(self._cursor)

    def clear(self) -> None:
        """Forget every message."""
        octets = self.octets
        if self._returned:
            for delivery in self._returned.values():
                octets -= delivery.octets
                self.settled(delivery)
        octets -= self._clear_ring(self._places, self._base)
        end = self._end()
        paged, recent = self._paged, self._recent
        if paged is not None and recent is not None:
            if paged.count:
                self._finish(paged.first_position(), paged.end())
                self._stores.discard(paged)
            octets -= self._clear_ring(recent, self._recent_base)
            self._forget_row(paged.count, octets)
            self._end_paging()
        MessageBacklog.clear(self)
        self._base = end

    def shrink(self) -> None:
        """Page out what is more than the queue may have in memory now, and has been written."""
        if self._paged is None:
            if not self._takes_too_much() or not self._places.count:
                return
            self._begin_paging()
            self._unload()
        self._page_out()

    def restore(self, level: int, found: RecoveredQueue, ttl_ms: int) -> None:
        """Have what was `found`, while nothing was ever pushed here; what was handed out is redelivered."""
        self._redelivered_below = found.delivered_up_to
        self._base = found.end
        if not found.count:
            return
        self._begin_paging()
        paged: PagedIndex = self._paged  # type: ignore[assignment]
        positions, locations = found.positions, found.locations
        for place in range(positions.count):
            paged.append(positions.get(place), locations.get(place))
        self.count = found.count
        self.octets = found.octets
        self._persistent_count = found.count
        self._persistent_octets = found.octets
        self._note_deadlines(found, ttl_ms)
        self._refill()

    # --- private -------------------------------------------------------------------------------

    def _read(self, location: int) -> Message:
        """The message at `location`. ConnectionForced if it cannot be read."""
        self._stores.read_count += 1
        try:
            read = self._stores.store_of(location).reader().read(location)
        except OSError:
            read = None
        if read is None:
            # Whoever looks after the disk was told: this queue will be built anew.
            raise ConnectionForced(_UNREADABLE)
        return read

    def _peek_line(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` of what was never out, from place `first` on."""
        found = MessageBacklog._peek_line(self, first, count)
        paged, recent = self._paged, self._recent
        if paged is not None and recent is not None:
            for position, location in paged.peek(first, count - len(found)):
                found.append(PeekedMessage(position, self._read(location), self._attempts_at(position)))
            found += self._peek_ring(recent, self._recent_base, first, count - len(found))
        return found

    def _attempts_at(self, position: int) -> int:
        return int(position < self._redelivered_below)

    def _end(self) -> int:
        """The position of the next message that is pushed."""
        if self._recent is not None:
            return self._recent_base + self._recent.count
        return self._base + self._places.count

    def _takes_too_much(self) -> bool:
        """True if its messages, all in memory, take more of it than they may."""
        return self.octets + (self.count << _OVERHEAD_SHIFT) > self._stores.queue_memory_max

    def _pop_first(self) -> Message:
        if not self._places.count:
            raise ConnectionForced(_UNREADABLE)
        message = MessageBacklog._pop_first(self)
        if self._paged is not None and not self._places.count:
            self._refill()
        return message

    def _drop_first(self) -> Message:
        """Take the first message that was never out, out for good."""
        position = self._base
        message = self._pop_first()
        self._release(message, position)
        return message

    def _begin_paging(self) -> None:
        self._recent_base = self._end()
        self._recent = Ring()
        self._paged = PagedIndex()
        self._stores.paging.add(self)

    def _end_paging(self) -> None:
        self._paged = None
        self._recent = None
        self._stores.paging.discard(self)

    def _push_behind(self, message: Message) -> None:
        """Add `message` behind all others, of which some are on the disk only."""
        recent: Ring = self._recent  # type: ignore[assignment]
        if message.flags & self._persistent_flag:
            self._persist(message, self._recent_base + recent.count)
        else:
            message = self._spill(message)
        recent.append(message)
        self.count += 1
        self.octets += body_size_of(message)
        self._page_out()

    def _page_out(self) -> None:
        """Let go of the recent messages that are written."""
        recent: Ring = self._recent  # type: ignore[assignment]
        paged: PagedIndex = self._paged  # type: ignore[assignment]
        while recent.count:
            stored: StoredMessage = recent.get(0)  # type: ignore[assignment]
            if stored is not None:
                if not self._stores.has_written(stored.location):
                    return
                paged.append(self._recent_base, stored.location)
            recent.popleft()
            self._recent_base += 1

    def _refill(self) -> None:
        """Have the first messages in memory, now that none is; the queue stops paging when all are."""
        paged: PagedIndex = self._paged  # type: ignore[assignment]
        if paged.count:
            self._load(paged)
        if self._places.count or paged.count:
            return
        recent: Ring = self._recent  # type: ignore[assignment]
        self._places = recent
        self._base = self._recent_base
        self._end_paging()
        if recent.count and recent.get(0) is None:
            self._trim()

    def _load(self, paged: PagedIndex) -> None:
        """Read the first messages of `paged`, as many as one read brings of those that lie together."""
        places = self._places
        stores = self._stores
        reader: MessageReader | None = None
        is_spilled = False
        size = 0
        while paged.count and size < _READ_AHEAD_SIZE:
            position = paged.first_position()
            location = paged.first_location()
            if not places.count:
                self._base = position
            elif position > self._base + places.count + _GAP_MAX:
                return
            if reader is None or is_spilled != stores.is_transient(location):
                is_spilled = stores.is_transient(location)
                reader = stores.store_of(location).reader()
            try:
                message = reader.read(location)
            except OSError:
                message = None
            if message is None:
                # Whoever looks after the disk was told: this queue will be built anew.
                return
            stores.read_count += 1
            paged.pass_first()
            while self._base + places.count < position:
                places.append(None)
            places.append(message)
            size += body_size_of(message) + (1 << _OVERHEAD_SHIFT)

    def _unload(self) -> None:
        """Move all but the first messages, which are more than may be in memory, behind the row."""
        places, recent = self._places, self._recent
        room = self._stores.queue_memory_max
        kept = Ring()
        size = 0
        for place in range(places.count):
            message: Message = places.get(place)  # type: ignore[assignment]
            if size <= room:
                kept.append(message)
            elif message is None or message.flags & (self._persistent_flag | _SPILLED):
                # One that is in a store already: what was recent is the ring when a queue has stopped paging.
                recent.append(message)  # type: ignore[union-attr]
            else:
                recent.append(self._spill(message))  # type: ignore[union-attr]
            if message is not None:
                size += body_size_of(message) + (1 << _OVERHEAD_SHIFT)
        self._places = kept
        self._recent_base = self._base + kept.count

    def _holds(self, position: int) -> bool:
        if self._paged is None or position < self._base + self._places.count:
            return MessageBacklog._holds(self, position)
        if self._returned and position in self._returned:
            return True
        if position < self._recent_base:
            return self._paged.holds(position)
        recent: Ring = self._recent  # type: ignore[assignment]
        place = position - self._recent_base
        return place < recent.count and recent.get(place) is not None

    def _read_returned(self) -> None:
        """Have the first message that came back whole, while it is there still."""
        delivery: Delivery = self._returned[self._first_returned()]  # type: ignore[index]
        delivery.message = self.whole(delivery.message)

    def _take(self, position: int) -> Message | None:
        message = MessageBacklog._take(self, position)
        if message is not None:
            message = self.whole(message)
            self._release(message, position)
        return message

    def _remove(self, position: int, known: Message | None) -> Message | None:
        if self._paged is None or position < self._base + self._places.count:
            return MessageBacklog._remove(self, position, known)
        message = self._take_behind(position, known)
        self.count -= 1
        if message is not None:
            self.octets -= body_size_of(message)
        return message

    def _take_behind(self, position: int, known: Message | None) -> Message | None:
        """Take the message at `position`, which is behind the ring."""
        if position >= self._recent_base:
            recent: Ring = self._recent  # type: ignore[assignment]
            return recent.take(position - self._recent_base)  # type: ignore[return-value]
        location = self._paged.take(position)  # type: ignore[union-attr]
        return known or self._stores.store_of(location).reader().read(location)

    def _trim(self) -> None:
        MessageBacklog._trim(self)
        if self._paged is not None and not self._places.count:
            self._refill()

    def _persist(self, message: Message, position: int) -> None:
        stored: StoredMessage = message  # type: ignore[assignment]
        self._persistent_count += 1
        self._persistent_octets += body_size_of(message)
        self._stores.write_count += 1
        self._stores.persistent.append(stored, self._cursor, position)

    def _release(self, message: Message, position: int) -> None:
        if message.flags & self._persistent_flag:
            stored: StoredMessage = message  # type: ignore[assignment]
            self._persistent_count -= 1
            # Of one that is light, `settled` knows better.
            self._persistent_octets -= body_size_of(message)
            if message.flags & _BODY_ON_DISK:
                self._stores.persistent.release_at(stored.location, self._cursor, position)
            else:
                self._stores.persistent.release(stored, self._cursor, position)
        elif message.flags & _SPILLED:
            self._unspill(message)

    def _spill(self, message: Message) -> StoredMessage:
        """A copy of the transient `message` that is going to the disk."""
        stored = spilled(message)
        self._spilled_count += 1
        self._spilled_octets += body_size_of(message)
        self._stores.write_count += 1
        self._stores.transient.append(stored, self._stores.no_cursor, 0)
        return stored

    def _unspill(self, message: Message) -> None:
        """`message` leaves, and needs no place on the disk."""
        stored: StoredMessage = message  # type: ignore[assignment]
        self._stores.transient.release(stored, self._stores.no_cursor, 0)
        stored.flags &= ~_SPILLED
        self._spilled_count -= 1
        self._spilled_octets -= body_size_of(message)

    def _finish(self, first: int, end: int) -> None:
        """Have the store know that all from `first` up to `end` is done with, but what was taken out."""
        for position in sorted(self._out or ()):
            if first <= position < end:
                if first < position:
                    self._stores.persistent.finish(self._cursor, first, position)
                first = position + 1
        if first < end:
            self._stores.persistent.finish(self._cursor, first, end)

    def _forget_row(self, count: int, octets: int) -> None:
        """The row, `count` messages of `octets` octets, is gone; all that was spilled was in it."""
        self._persistent_count -= count - self._spilled_count
        self._persistent_octets -= octets - self._spilled_octets
        self._spilled_count = 0
        self._spilled_octets = 0

    def _clear_ring(self, ring: Ring, base: int) -> int:
        """Release what is in `ring`; answers the octets of the bodies."""
        octets = 0
        for place in range(ring.count):
            message: Message = ring.get(place)  # type: ignore[assignment]
            if message is not None:
                octets += body_size_of(message)
                self._release(message, base + place)
        return octets

    def _note_deadlines(self, found: RecoveredQueue, ttl_ms: int) -> None:
        """Know of the messages that were `found` and expire by themselves."""
        reader = self._stores.persistent.reader()
        for position, location in found.expiring:
            message = reader.read(location)
            if message is not None:
                self._note_deadline(self._deadline(message, self._ttl_at(position, ttl_ms)), position)
