"""Ready messages with persistent ones stored on disk, and paging: only the first messages need be in memory.

Delivered positions are recorded, so that messages are redelivered after a crash; settled messages are
released. A message that was delivered at once with automatic acknowledgement is never stored.

While all messages fit into the memory limit of the queue, they are in the ring. Beyond it the queue starts
paging:

    ring, `_base` on │ index of locations, 8 bytes each │ `_recent`, up to `_end`
    in memory        │ on disk only                     │ in memory, until they are written

Pushed messages go to `_recent`, and from there to the index as soon as they are written; transient messages
are written for this to a store that is erased at start. The ring is refilled from the index when it is empty;
when the index is empty too, `_recent` becomes the ring. Positions grow from left to right.
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
# The memory of a message beside its body: 1 shifted by this, 128 bytes.
_OVERHEAD_SHIFT = 7
_UNREADABLE = "a message cannot be read from the disk"


class DiskBacklog(MessageBacklog):
    """The backlog of a queue, or of one of its priority levels, on a node with a data directory.

    `cursor` is None for a queue that is not durable: its messages may be paged out, but do not survive.
    """

    __slots__ = (
        "_cursor", "_out", "_paged", "_persistent_bytes", "_persistent_count", "_persistent_flag", "_recent",
        "_recent_base", "_redelivered_below", "_spilled_bytes", "_spilled_count", "_stores",
    )  # fmt: skip

    def __init__(self, stores: Stores, cursor: QueueCursor | None) -> None:
        super().__init__()
        self._stores = stores
        self._cursor = stores.no_cursor if cursor is None else cursor
        # The flag of messages that are stored durably; 0 if none are.
        self._persistent_flag = _PERSISTENT if cursor is not None else 0
        # The number and bytes of durable messages, and of transient ones that are on disk.
        self._persistent_count = 0
        self._persistent_bytes = 0
        self._spilled_count = 0
        self._spilled_bytes = 0
        # None while the queue is not paging.
        self._paged: PagedIndex | None = None
        self._recent: Ring | None = None
        self._recent_base = 0
        # Positions taken from the middle that are neither settled nor returned; None if there never were any.
        self._out: set[int] | None = None
        # All positions before this one were delivered before the last start.
        self._redelivered_below = 0

    def paged_count(self) -> int:
        """The number of messages that are only on disk."""
        return 0 if self._paged is None else self._paged.count

    def persistent_count(self) -> int:
        """The number of messages that would survive a restart, ready or unacknowledged."""
        return self._persistent_count

    def persistent_bytes(self) -> int:
        """The size in bytes of the bodies that would survive a restart."""
        return self._persistent_bytes

    def push_delivered(self, message: Message, queue: Queue) -> Delivery:
        """Take `message` directly out of `queue` without enqueueing it; only while no message is ready."""
        delivery = MessageBacklog.push_delivered(self, message, queue)
        if message.flags & self._persistent_flag:
            self._persist(message, delivery.position)
            self._stores.persistent.delivered_up_to(self._cursor, delivery.position + 1)
        return delivery

    def push(self, message: Message) -> None:
        """Append `message`."""
        if self._paged is not None:
            self._push_behind(message)
            return
        if message.flags & self._persistent_flag:
            self._persist(message, self._base + self._places.count)
        MessageBacklog.push(self, message)
        if self._takes_too_much():
            self._begin_paging()

    def pop(self, queue: Queue) -> Delivery:
        """Take the first message out of `queue` for delivery. Only while `count` is not 0."""
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
        """Take the `peeked` message out of `queue`, wherever it is; None if it is not ready any more.

        It does not count as delivered.
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
        """Return `delivery` to its place; returns its deadline (ms), or -1."""
        if self._out:
            self._out.discard(delivery.position)
        return MessageBacklog.push_back(self, delivery, ttl_ms)

    def is_fresh(self) -> bool:
        """True if the message that `pop` would take was never delivered before."""
        return not self._returned and self._base >= self._redelivered_below

    def pop_message(self) -> Message:
        """Take the first message out and settle it. Only while `count` is not 0, and `is_fresh`."""
        position = self._base
        message = self._drop_first()
        if message.flags & self._persistent_flag:
            # It may reappear after a crash until the release is written.
            self._stores.persistent.delivered_up_to(self._cursor, position + 1)
        return message

    def whole(self, message: Message) -> Message:
        """`message`, which was delivered, with its content. ConnectionForced if it cannot be read."""
        if not message.flags & _BODY_ON_DISK:
            return message
        stored: StoredMessage = message  # type: ignore[assignment]
        return self._read(stored.location)

    def body(self, message: Message) -> bytes:
        """The body of `message`, which was delivered. ConnectionForced if it cannot be read."""
        if not message.flags & _BODY_ON_DISK:
            return MessageBacklog.body(self, message)
        stored: StoredMessage = message  # type: ignore[assignment]
        read = self._stores.read_body(stored.location)
        if read is None:
            raise ConnectionForced(_UNREADABLE)
        return read

    def settled(self, delivery: Delivery) -> None:
        """Forget `delivery`, which was taken out before and is settled."""
        if self._out:
            self._out.discard(delivery.position)
        self._release(delivery.message, delivery.position)
        if delivery.message.flags & _BODY_ON_DISK:
            self._persistent_bytes -= delivery.byte_count

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Confirm to `confirmation` when everything pushed or delivered so far is on disk."""
        if self._persistent_flag:
            self._stores.persistent.confirm(confirmation, sequence)

    def drop(self) -> Message:
        """Take the first message out and settle it, delivered before or not. Only while `count` is not 0."""
        if not self._returned or not self._is_returned_first():
            return self._drop_first()
        self._read_returned()
        position = self._first_returned()
        message = MessageBacklog.drop(self)
        self._release(message, position)
        return message

    def forget(self) -> None:
        """Release everything; called when the queue was deleted and is empty."""
        if self._persistent_flag:
            self._stores.persistent.drop(self._cursor)

    def clear(self) -> None:
        """Drop all messages."""
        byte_count = self.byte_count
        if self._returned:
            for delivery in self._returned.values():
                byte_count -= delivery.byte_count
                self.settled(delivery)
        byte_count -= self._clear_ring(self._places, self._base)
        end = self._end()
        paged, recent = self._paged, self._recent
        if paged is not None and recent is not None:
            if paged.count:
                self._finish(paged.first_position(), paged.end())
                self._stores.discard(paged)
            byte_count -= self._clear_ring(recent, self._recent_base)
            self._forget_row(paged.count, byte_count)
            self._end_paging()
        MessageBacklog.clear(self)
        self._base = end

    def shrink(self) -> None:
        """Page out messages that exceed the memory limit of the queue and have been written."""
        if self._paged is None:
            if not self._takes_too_much() or not self._places.count:
                return
            self._begin_paging()
            self._unload()
        self._page_out()

    def restore(self, level: int, found: RecoveredQueue, ttl_ms: int) -> None:
        """Restore the messages that were `found`; delivered ones are redelivered. The backlog must be new."""
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
        self.byte_count = found.byte_count
        self._persistent_count = found.count
        self._persistent_bytes = found.byte_count
        self._note_deadlines(found, ttl_ms)
        self._refill()

    # --- private -------------------------------------------------------------------------------

    def _read(self, location: int) -> Message:
        """The message at `location`. ConnectionForced if it cannot be read."""
        read = self._stores.read(location)
        if read is None:
            # The error was reported, and the virtual host will be restarted.
            raise ConnectionForced(_UNREADABLE)
        return read

    def _peek_line(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages that were never delivered, from place `first` on."""
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
        """True if its messages, which are all in memory, exceed the memory limit."""
        return self.byte_count + (self.count << _OVERHEAD_SHIFT) > self._stores.queue_memory_max

    def _pop_first(self) -> Message:
        if not self._places.count:
            raise ConnectionForced(_UNREADABLE)
        message = MessageBacklog._pop_first(self)
        if self._paged is not None and not self._places.count:
            self._refill()
        return message

    def _drop_first(self) -> Message:
        """Take out and settle the first message that was never delivered."""
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
        """Append `message` while the queue is paging."""
        recent: Ring = self._recent  # type: ignore[assignment]
        if message.flags & self._persistent_flag:
            self._persist(message, self._recent_base + recent.count)
        else:
            message = self._spill(message)
        recent.append(message)
        self.count += 1
        self.byte_count += body_size_of(message)
        self._page_out()

    def _page_out(self) -> None:
        """Drop the recent messages that have been written from memory."""
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
        """Load the first messages, since none is in memory; the queue stops paging when all are loaded."""
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
        """Read the first messages of `paged`: those stored together that one read can fetch."""
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
        """Move the messages that exceed the memory limit from the ring to the end of the index."""
        places, recent = self._places, self._recent
        room = self._stores.queue_memory_max
        kept = Ring()
        size = 0
        for place in range(places.count):
            message: Message = places.get(place)  # type: ignore[assignment]
            if size <= room:
                kept.append(message)
            elif message is None or message.flags & (self._persistent_flag | _SPILLED):
                # It may be stored already: when a queue stops paging, its recent messages become the ring.
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
        """Read the content of the first requeued message."""
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
            self.byte_count -= body_size_of(message)
        return message

    def _take_behind(self, position: int, known: Message | None) -> Message | None:
        """Take the message at `position`, which is behind the ring; if it is `known` it need not be read."""
        if position >= self._recent_base:
            recent: Ring = self._recent  # type: ignore[assignment]
            return recent.take(position - self._recent_base)  # type: ignore[return-value]
        location = self._paged.take(position)  # type: ignore[union-attr]
        return known or self._stores.read(location)

    def _trim(self) -> None:
        MessageBacklog._trim(self)
        if self._paged is not None and not self._places.count:
            self._refill()

    def _persist(self, message: Message, position: int) -> None:
        stored: StoredMessage = message  # type: ignore[assignment]
        self._persistent_count += 1
        self._persistent_bytes += body_size_of(message)
        self._stores.write_count += 1
        self._stores.persistent.append(stored, self._cursor, position)

    def _release(self, message: Message, position: int) -> None:
        if message.flags & self._persistent_flag:
            stored: StoredMessage = message  # type: ignore[assignment]
            self._persistent_count -= 1
            # The place of a message without content is released by `settled`.
            self._persistent_bytes -= body_size_of(message)
            if message.flags & _BODY_ON_DISK:
                self._stores.persistent.release_at(stored.location, self._cursor, position)
            else:
                self._stores.persistent.release(stored, self._cursor, position)
        elif message.flags & _SPILLED:
            self._unspill(message)

    def _spill(self, message: Message) -> StoredMessage:
        """A copy of the transient `message` that is to be written to disk."""
        stored = spilled(message)
        self._spilled_count += 1
        self._spilled_bytes += body_size_of(message)
        self._stores.write_count += 1
        self._stores.transient.append(stored, self._stores.no_cursor, 0)
        return stored

    def _unspill(self, message: Message) -> None:
        """Release the place of the transient `message` on disk, which leaves the queue."""
        stored: StoredMessage = message  # type: ignore[assignment]
        self._stores.transient.release(stored, self._stores.no_cursor, 0)
        stored.flags &= ~_SPILLED
        self._spilled_count -= 1
        self._spilled_bytes -= body_size_of(message)

    def _finish(self, first: int, end: int) -> None:
        """Settle the positions from `first` up to `end` in the store, except those taken out before."""
        for position in sorted(self._out or ()):
            if first <= position < end:
                if first < position:
                    self._stores.persistent.finish(self._cursor, first, position)
                first = position + 1
        if first < end:
            self._stores.persistent.finish(self._cursor, first, end)

    def _forget_row(self, count: int, byte_count: int) -> None:
        """Subtract the messages of a dropped index, which contained all transient messages on disk."""
        self._persistent_count -= count - self._spilled_count
        self._persistent_bytes -= byte_count - self._spilled_bytes
        self._spilled_count = 0
        self._spilled_bytes = 0

    def _clear_ring(self, ring: Ring, base: int) -> int:
        """Settle the messages in `ring`; returns the size of their bodies in bytes."""
        byte_count = 0
        for place in range(ring.count):
            message: Message = ring.get(place)  # type: ignore[assignment]
            if message is not None:
                byte_count += body_size_of(message)
                self._release(message, base + place)
        return byte_count

    def _note_deadlines(self, found: RecoveredQueue, ttl_ms: int) -> None:
        """Record the deadlines of the messages that were `found` with an expiration of their own."""
        reader = self._stores.persistent.reader()
        for position, location in found.expiring:
            message = reader.read(location)
            if message is not None:
                self._note_deadline(self._deadline(message, self._ttl_at(position, ttl_ms)), position)
