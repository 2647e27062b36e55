"""The two stores of one virtual host: one that a start reads again, and one that it erases."""

from array import array
from functools import partial
from typing import Protocol

from warren.limits import DISCARDED_PER_BATCH, QUEUE_MEMORY_MAX
from warren.store.cursor import QueueCursor
from warren.store.message_store import MessageStore

# Numbers of segments of the store that is erased begin here: a location says by itself where it is.
TRANSIENT_SEGMENTS_FROM = 1 << 30
_TRANSIENT_SHIFT = 62


class PagedMessages(Protocol):
    """Messages in a row of which not all are in memory."""

    def shrink(self) -> None:
        """Let go of those that need not be in memory any more."""


class DiscardedMessages(Protocol):
    """Messages that are on the disk only."""

    def take_some(self, count: int) -> "array[int]":
        """Take about `count` away; answers where they lie. Empty when none is left."""


class Stores:
    """What a queue needs to keep its messages, and to have few of them in memory."""

    __slots__ = (
        "no_cursor", "paging", "persistent", "queue_memory_max", "read_count", "transient", "write_count",
    )  # fmt: skip

    def __init__(self, persistent: MessageStore, transient: MessageStore) -> None:
        self.persistent = persistent
        self.transient = transient
        # What is done with in the store that no start reads need not be written.
        self.no_cursor = QueueCursor(0, 0)
        self.no_cursor.is_dropped = True
        # Octets of messages that one queue may have in memory.
        self.queue_memory_max = QUEUE_MEMORY_MAX
        # Messages that were put on the disk, once for each queue, and that were read back.
        self.write_count = 0
        self.read_count = 0
        # The queues, or priorities of them, of which not all is in memory.
        self.paging: set[PagedMessages] = set()

    def maintain(self) -> None:
        """Let go of what was written since it was pushed, and of room on the disk: ask for it at times."""
        self.persistent.maintain()
        self.transient.maintain()
        for row in list(self.paging):
            row.shrink()
        for store in (self.persistent, self.transient):
            store.reader().forget()

    def discard(self, row: DiscardedMessages) -> None:
        """Nobody needs the messages of `row`, as their lanes say: they give up their places bit by bit."""
        self.persistent.add_background_task(partial(self._drop_some_references, row))

    def is_transient(self, location: int) -> bool:
        """True if `location` is in the store that is erased."""
        return location >> _TRANSIENT_SHIFT != 0

    def store_of(self, location: int) -> MessageStore:
        """The store that `location` is in."""
        return self.transient if self.is_transient(location) else self.persistent

    def has_written(self, location: int) -> bool:
        """True if what was appended at `location` can be read back."""
        return location != 0 and location < self.store_of(location).written

    def _drop_some_references(self, row: DiscardedMessages) -> bool:
        """Give up some places of `row`; True if there are more."""
        taken = row.take_some(DISCARDED_PER_BATCH)
        for location in taken:
            self.store_of(location).drop_references(location)
        return len(taken) > 0
