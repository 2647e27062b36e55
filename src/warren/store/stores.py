"""The two stores of one virtual host: the persistent one, and the transient one, which is erased at start."""

from array import array
from functools import partial
from typing import Protocol

from warren.limits import DISCARDED_PER_BATCH, QUEUE_MEMORY_MAX
from warren.model.message import StoredMessage
from warren.store.cursor import QueueCursor
from warren.store.message_store import MessageStore

# Numbers of segments of the transient store begin here: a location tells which store it is in.
TRANSIENT_SEGMENTS_FROM = 1 << 30
_TRANSIENT_SHIFT = 62


class PagedMessages(Protocol):
    """A list of messages some of which are only on disk."""

    def shrink(self) -> None:
        """Drop the messages that need not be in memory."""


class DiscardedMessages(Protocol):
    """Discarded messages that are only on disk."""

    def take_some(self, count: int) -> "array[int]":
        """Remove about `count` messages and return their locations; empty when none are left."""


class Stores:
    """What a queue needs to store messages and to page them out of memory."""

    __slots__ = (
        "no_cursor", "paging", "persistent", "queue_memory_max", "read_count", "transient", "write_count",
    )  # fmt: skip

    def __init__(self, persistent: MessageStore, transient: MessageStore) -> None:
        self.persistent = persistent
        self.transient = transient
        # The cursor for the transient store, whose settled positions need not be written.
        self.no_cursor = QueueCursor(0, 0)
        self.no_cursor.is_dropped = True
        # Bytes of messages that one queue can have in memory.
        self.queue_memory_max = QUEUE_MEMORY_MAX
        # Messages written to disk, once for each queue, and messages read back.
        self.write_count = 0
        self.read_count = 0
        # The queues, or priority levels of them, with messages that are only on disk.
        self.paging: set[PagedMessages] = set()

    def maintain(self) -> None:
        """Drop written messages from memory and start compaction; called periodically."""
        self.persistent.maintain()
        self.transient.maintain()
        for row in list(self.paging):
            row.shrink()
        for store in (self.persistent, self.transient):
            store.reader().forget()

    def discard(self, row: DiscardedMessages) -> None:
        """Release the references of the messages of `row`, which are settled already, in the background."""
        self.persistent.add_background_task(partial(self._drop_some_references, row))

    def is_transient(self, location: int) -> bool:
        """True if `location` is in the transient store."""
        return location >> _TRANSIENT_SHIFT != 0

    def store_of(self, location: int) -> MessageStore:
        """The store that `location` is in."""
        return self.transient if self.is_transient(location) else self.persistent

    def read(self, location: int) -> StoredMessage | None:
        """The message at `location`; None if it cannot be read, which is reported."""
        self.read_count += 1
        try:
            return self.store_of(location).reader().read(location)
        except OSError:
            return None

    def read_body(self, location: int) -> bytes | None:
        """The body of the message at `location`; None if it cannot be read, which is reported."""
        self.read_count += 1
        try:
            return self.store_of(location).reader().read_body(location)
        except OSError:
            return None

    def has_written(self, location: int) -> bool:
        """True if the message at `location` was written and can be read back."""
        return location != 0 and location < self.store_of(location).written

    def _drop_some_references(self, row: DiscardedMessages) -> bool:
        """Release a part of the references of `row`; True if there are more."""
        taken = row.take_some(DISCARDED_PER_BATCH)
        for location in taken:
            self.store_of(location).drop_references(location)
        return len(taken) > 0
