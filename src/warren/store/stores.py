"""The two stores of one virtual host: one that a start reads again, and one that it erases."""

from typing import Protocol

from warren.limits import QUEUE_MEMORY_MAX
from warren.store.lane import Lane
from warren.store.message_store import MessageStore

# Numbers of segments of the store that is erased begin here: a location says by itself where it is.
TRANSIENT_SEGMENTS_FROM = 1 << 30
_TRANSIENT_SHIFT = 62


class Paging(Protocol):
    """Messages in a row of which not all are in memory."""

    def shrink(self) -> None:
        """Let go of those that need not be in memory any more."""


class Stores:
    """What a queue needs to keep its messages, and to have few of them in memory."""

    __slots__ = ("no_lane", "paging", "persistent", "queue_memory_max", "transient")

    def __init__(self, persistent: MessageStore, transient: MessageStore) -> None:
        self.persistent = persistent
        self.transient = transient
        # What is done with in the store that no start reads need not be written.
        self.no_lane = Lane(0, 0)
        self.no_lane.is_dropped = True
        # Octets of messages that one queue may have in memory.
        self.queue_memory_max = QUEUE_MEMORY_MAX
        # The queues, or priorities of them, of which not all is in memory.
        self.paging: set[Paging] = set()

    def tend(self) -> None:
        """Let go of what was written since it was pushed, and of room on the disk: ask for it at times."""
        self.persistent.tend()
        self.transient.tend()
        for row in list(self.paging):
            row.shrink()
        for store in (self.persistent, self.transient):
            store.reader().forget()

    def is_transient(self, location: int) -> bool:
        """True if `location` is in the store that is erased."""
        return location >> _TRANSIENT_SHIFT != 0

    def store_of(self, location: int) -> MessageStore:
        """The store that `location` is in."""
        return self.transient if self.is_transient(location) else self.persistent

    def has_written(self, location: int) -> bool:
        """True if what was appended at `location` can be read back."""
        return location != 0 and location < self.store_of(location).written
