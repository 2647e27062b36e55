"""Iterates over messages of a queue in pieces: all that are ready, or selected ones."""

from collections.abc import Iterator, Sequence

from warren.limits import SCAN_READ_SIZE_MAX
from warren.queues.local import LocalQueue
from warren.queues.queue import PeekedMessage


class QueueScan:
    """The messages that are ready when the scan begins, from place `place` on.

    Later messages are excluded.
    """

    __slots__ = ("_extent", "_queue", "examined", "is_over", "place")

    def __init__(self, queue: LocalQueue, place: int = 0) -> None:
        self._queue = queue
        self._extent = queue.extent()
        # The place of the next message, and the number of messages examined.
        self.place = place
        self.examined = 0
        # True when all messages were examined.
        self.is_over = False

    def next_messages(self, count: int) -> Iterator[PeekedMessage]:
        """Up to `count` more messages.

        After a break in between, the next call continues behind the last one.
        """
        count = min(count, scan_batch_max(self._queue))
        found = self._queue.peek(self.place, count)
        for peeked in found:
            self.place = peeked.place + 1
            if self._has(peeked.place):
                self.examined += 1
                yield peeked
        self.is_over = len(found) < count or not self._extent or self._queue.is_deleted

    def _has(self, place: int) -> bool:
        """True unless the message at `place` arrived after the scan began; `place` must not decrease."""
        while self._extent and place >= self._extent[0].stop:
            del self._extent[0]
        return bool(self._extent) and place in self._extent[0]


class SelectionScan:
    """The messages at selected places, as far as they are still ready."""

    __slots__ = ("_places", "_queue", "examined", "is_over", "place")

    def __init__(self, queue: LocalQueue, places: Sequence[int]) -> None:
        self._queue = queue
        self._places = places
        self.place = 0
        self.examined = 0
        self.is_over = not places

    def next_messages(self, count: int) -> Iterator[PeekedMessage]:
        """Up to `count` of the messages; missing ones count as examined."""
        for place in self._places[self.examined : self.examined + count]:
            self.examined += 1
            self.is_over = self.examined == len(self._places) or self._queue.is_deleted
            for peeked in self._queue.peek(place, 1):
                if peeked.place == place:
                    yield peeked


def scan_batch_max(queue: LocalQueue) -> int:
    """The number of messages of `queue` that may be in memory at once for a scan."""
    byte_count = queue.ready_bytes // max(queue.message_count, 1)
    return max(SCAN_READ_SIZE_MAX // max(byte_count, 1), 1)
