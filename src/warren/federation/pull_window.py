"""How many messages a federated queue takes from an upstream at a time: its window.

A window is the prefetch of the consumer at the upstream. It begins with one message and doubles each time a
whole window arrived and the queue is empty again, with a consumer that could be given more; so it grows to
what the consumers use up in a round trip. When more than a window waits in the queue, nothing is taken until
little is left, and the next window is half as large. A queue whose consumers are slow is ahead of them by a
few messages, one whose consumers are fast by as many as the settings permit.

Two queues can be upstreams of each other, and each can then take from the other what the other has taken
from it. A message that was taken before ends the window, unless a consumer could be given it: the consumers
of both queues have enough, and without an end such messages would move for ever.
"""

from typing import Protocol

from warren.limits_relay import PREFETCH_COUNT_MAX

# The window is 0 while nothing is taken.
PAUSED = 0
# Windows from this size on were used up several times in a row: their successor begins before the queue is
# empty, so that the consumers need not wait for a round trip.
_FAST = 16


class Demand(Protocol):
    """What a window depends on; see `QueueDemand`."""

    @property
    def ready_count(self) -> int:
        """The number of ready messages."""

    def has_consumer(self) -> bool:
        """True if a consumer of the queue's own is there."""

    def is_hungry(self) -> bool:
        """True if no message is ready, and a consumer of its own could be given one."""


class PullWindow:
    """The window of one link."""

    __slots__ = ("_next_size", "_size_max", "_started_at", "size")

    def __init__(self, prefetch_count: int) -> None:
        """Permit `prefetch_count` messages, or, if it is 0, as many as any link may take."""
        self._size_max = prefetch_count or PREFETCH_COUNT_MAX
        self._next_size = 1
        # The number of messages that the link had received when the window began.
        self._started_at = 0
        self.size = PAUSED

    def follow(self, demand: Demand, received: int, *, has_returned: bool = False) -> bool:
        """Adapt `size` to `demand`, after the link has `received` messages; True if it has changed.

        `has_returned` is True if the last of them was taken from the upstream before.
        """
        size = self.size
        if size == PAUSED:
            if demand.is_hungry() or self._is_nearly_empty(demand):
                self._begin(self._next_size, received)
        elif not demand.has_consumer() or (has_returned and not demand.is_hungry()):
            self._next_size = 1
            self.size = PAUSED
        elif demand.ready_count > size:
            self._next_size = max(1, size // 2)
            self.size = PAUSED
        elif size < self._size_max and received - self._started_at >= size and demand.is_hungry():
            self._begin(min(size * 2, self._size_max), received)
        return self.size != size

    def _is_nearly_empty(self, demand: Demand) -> bool:
        size = self._next_size
        return size >= _FAST and demand.ready_count * 2 <= size and demand.has_consumer()

    def _begin(self, size: int, received: int) -> None:
        self.size = self._next_size = size
        self._started_at = received
