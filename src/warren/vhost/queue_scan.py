"""The messages of a queue, looked at in pieces, each once: all that wait now, or some that were chosen."""

from collections.abc import Iterator, Sequence

from warren.limits import SCAN_READ_SIZE_MAX
from warren.queues.local import LocalQueue
from warren.queues.queue import PeekedMessage


class QueueScan:
    """All that waits in a queue when this begins, from place `place` on. What comes later is not seen."""

    __slots__ = ("_extent", "_queue", "examined", "is_over", "place")

    def __init__(self, queue: LocalQueue, place: int = 0) -> None:
        self._queue = queue
        self._extent = queue.extent()
        # Where the next look begins, and how many messages were seen.
        self.place = place
        self.examined = 0
        # True when there is nothing more to see.
        self.is_over = False

    def next_messages(self, count: int) -> Iterator[PeekedMessage]:
        """Up to `count` messages more. Whoever stops in between goes on behind the last that was given."""
        count = min(count, scan_batch_max(self._queue))
        found = self._queue.peek(self.place, count)
        for peeked in found:
            self.place = peeked.place + 1
            if self._has(peeked.place):
                self.examined += 1
                yield peeked
        self.is_over = len(found) < count or not self._extent or self._queue.is_deleted

    def _has(self, place: int) -> bool:
        """True unless what is at `place`, which only grows, came later."""
        while self._extent and place >= self._extent[0].stop:
            del self._extent[0]
        return bool(self._extent) and place in self._extent[0]


class SelectionScan:
    """Messages at places that somebody chose, as far as they wait there still."""

    __slots__ = ("_places", "_queue", "examined", "is_over", "place")

    def __init__(self, queue: LocalQueue, places: Sequence[int]) -> None:
        self._queue = queue
        self._places = places
        self.place = 0
        self.examined = 0
        self.is_over = not places

    def next_messages(self, count: int) -> Iterator[PeekedMessage]:
        """Up to `count` of them; those that are gone count as seen."""
        for place in self._places[self.examined : self.examined + count]:
            self.examined += 1
            self.is_over = self.examined == len(self._places) or self._queue.is_deleted
            for peeked in self._queue.peek(place, 1):
                if peeked.place == place:
                    yield peeked


def scan_batch_max(queue: LocalQueue) -> int:
    """How many messages of `queue` may be in memory at once to be looked at."""
    octets = queue.ready_octets // max(queue.message_count, 1)
    return max(SCAN_READ_SIZE_MAX // max(octets, 1), 1)
