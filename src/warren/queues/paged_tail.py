"""The end of a backlog that exceeds its memory limit: messages that are only on disk, and the last ones.

    `index`, 8 bytes each │ `recent`, whose first place is position `recent_base`
    only on disk          │ in memory, until they are written

Messages are appended to `recent`, and are dropped from memory as soon as they are written. They are behind
the messages that the backlog has in memory; when these have left, the next ones are loaded.
"""

from warren.errors import ConnectionForced
from warren.limits import PAGED_GAP_MAX, READ_AHEAD_SIZE
from warren.model.message import Message, StoredMessage, body_size_of
from warren.model.ring import Ring
from warren.queues.paged_index import PagedIndex
from warren.queues.queue import PeekedMessage
from warren.store.message_reader import MessageReader
from warren.store.stores import Stores

_READ_AHEAD_SIZE = READ_AHEAD_SIZE
_GAP_MAX = PAGED_GAP_MAX
# The memory of a message beside its body: 1 shifted by this, 128 bytes.
OVERHEAD_SHIFT = 7
_OVERHEAD_SHIFT = OVERHEAD_SHIFT
UNREADABLE = "a message cannot be read from the disk"


class PagedTail:
    """Messages from a position on, each in memory until it is written, and then only on disk."""

    __slots__ = ("_stores", "index", "recent", "recent_base")

    def __init__(self, stores: Stores, base: int) -> None:
        self._stores = stores
        self.index = PagedIndex()
        self.recent = Ring()
        self.recent_base = base
        stores.paging.add(self)

    def close(self) -> None:
        """Stop paging; `recent` may still be used."""
        self._stores.paging.discard(self)

    def end(self) -> int:
        """The position of the next message that is appended."""
        return self.recent_base + self.recent.count

    def append(self, message: Message | None) -> None:
        """Append `message`, which is to be written to disk; None leaves a position empty."""
        self.recent.append(message)

    def shrink(self) -> None:
        """Drop the messages that have been written from memory."""
        recent, index = self.recent, self.index
        while recent.count:
            stored: StoredMessage = recent.get(0)  # type: ignore[assignment]
            if stored is not None:
                if not self._stores.has_written(stored.location):
                    return
                index.append(self.recent_base, stored.location)
            recent.popleft()
            self.recent_base += 1

    def load(self, places: Ring, base: int) -> int:
        """Move the first messages that are only on disk to the end of `places`: as many as one read fetches.

        `base` is the position of the first place; returns the position that it has now, which is another one
        if there were no places.
        """
        index, stores = self.index, self._stores
        reader: MessageReader | None = None
        is_transient = False
        size = 0
        while index.count and size < _READ_AHEAD_SIZE:
            position = index.first_position()
            location = index.first_location()
            if not places.count:
                base = position
            elif position > base + places.count + _GAP_MAX:
                break
            if reader is None or is_transient != stores.is_transient(location):
                is_transient = stores.is_transient(location)
                reader = stores.store_of(location).reader()
            try:
                message = reader.read(location)
            except OSError:
                message = None
            if message is None:
                # The error was reported, and the virtual host will be restarted.
                break
            stores.read_count += 1
            index.pass_first()
            while base + places.count < position:
                places.append(None)
            places.append(message)
            size += body_size_of(message) + (1 << _OVERHEAD_SHIFT)
        return base

    def holds(self, position: int) -> bool:
        """True if the message at `position` is here."""
        if position < self.recent_base:
            return self.index.holds(position)
        place = position - self.recent_base
        return place < self.recent.count and self.recent.get(place) is not None

    def take(self, position: int, known: Message | None) -> Message | None:
        """Remove and return the message at `position`, which is here; if it is `known` it is not read.

        None if it cannot be read.
        """
        if position >= self.recent_base:
            return self.recent.take(position - self.recent_base)  # type: ignore[return-value]
        location = self.index.take(position)
        return known or self._stores.read(location)

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages from position `first` on. ConnectionForced if one cannot be read."""
        found: list[PeekedMessage] = []
        for position, location in self.index.peek(first, count):
            read = self._stores.read(location)
            if read is None:
                raise ConnectionForced(UNREADABLE)
            found.append(PeekedMessage(position, read, 0))
        return found + peek_ring(self.recent, self.recent_base, first, count - len(found))


def peek_ring(ring: Ring, base: int, first: int, count: int) -> list[PeekedMessage]:
    """Up to `count` messages in `ring`, whose first place is position `base`, from position `first` on."""
    found: list[PeekedMessage] = []
    place = max(first - base, 0)
    while place < ring.count and len(found) < count:
        message: Message | None = ring.get(place)  # type: ignore[assignment]
        if message is not None:
            found.append(PeekedMessage(base + place, message, 0))
        place += 1
    return found
