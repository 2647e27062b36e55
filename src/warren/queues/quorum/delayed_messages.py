"""The messages of a quorum queue that came back and are not ready before a time.

    came back ─ retry_delay_ms ─▶ waiting, in a heap by time ─ expire ─▶ ready, at its place

They are neither ready nor unacknowledged, and count towards the limits of the queue. In memory they have no
body if that is on disk. The time of each is in the log of the group, so that it is the same after a restart.
"""

from heapq import heappop, heappush

from warren.queues.queue import Delivery
from warren.queues.quorum.quarantined_messages import drop_stored_body


class DelayedMessages:
    """The delayed messages of one queue, by the time at which each is ready."""

    __slots__ = ("_waiting", "byte_count")

    def __init__(self) -> None:
        # A heap of times (ms), places, which differ, and deliveries.
        self._waiting: list[tuple[int, int, Delivery]] = []
        # The size of their bodies.
        self.byte_count = 0

    @property
    def count(self) -> int:
        """The number of messages."""
        return len(self._waiting)

    def add(self, ready_at: int, place: int, delivery: Delivery) -> None:
        """Keep `delivery`, which will return to `place`, until `ready_at` (ms)."""
        drop_stored_body(delivery)
        self.byte_count += delivery.byte_count
        heappush(self._waiting, (ready_at, place, delivery))

    def due(self) -> int:
        """The time (ms) when the next message is ready; -1 if there is none."""
        return self._waiting[0][0] if self._waiting else -1

    def take_due(self, now: int) -> list[Delivery]:
        """Take out all messages that are ready at `now` (ms)."""
        found: list[Delivery] = []
        while self._waiting and self._waiting[0][0] <= now:
            found.append(heappop(self._waiting)[2])
        self.byte_count -= sum(delivery.byte_count for delivery in found)
        return found

    def clear(self) -> list[Delivery]:
        """Take out all messages, in order of their places."""
        found = sorted(self._waiting, key=lambda each: each[1])
        self._waiting.clear()
        self.byte_count = 0
        return [delivery for _, _, delivery in found]
