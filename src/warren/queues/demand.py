"""The demand of one queue for messages of other brokers, observed once in a turn.

A queue that nobody observes does nothing for this: it notes that its statistics have changed, once, as every
queue does, and here that note is made once in each turn instead of once in each sampling interval.
"""

from collections.abc import Callable

from warren.model.coroutine_driver import Later
from warren.queues.taking_queue import TakingQueue

# Consumers of lower priorities are those of other brokers' queues, or yield to them: they demand nothing.
PRIORITY_MIN = 0


class QueueDemand:
    """Calls `changed` in the turn after one in which the messages or consumers of `queue` have changed."""

    __slots__ = ("_changed", "_consumers", "_is_closed", "_is_due", "_later", "_queue")

    def __init__(self, queue: TakingQueue, later: Later, changed: Callable[[], None]) -> None:
        self._queue = queue
        self._later = later
        self._changed = changed
        self._is_due = False
        self._is_closed = False
        self._consumers = queue.listen_to_demand(self)
        queue.is_dirty = False

    @property
    def ready_count(self) -> int:
        """The number of ready messages."""
        return self._queue.message_count

    def has_consumer(self) -> bool:
        """True if a consumer of its own is there, which may hold all messages that it can."""
        return self._consumers.has_any(PRIORITY_MIN)

    def is_hungry(self) -> bool:
        """True if no message is ready, and a consumer of its own could be given one."""
        return not self._queue.message_count and self._consumers.has_ready(PRIORITY_MIN)

    def demand_changed(self) -> None:
        """Have `changed` called in the next turn."""
        if not self._is_due and not self._is_closed:
            self._is_due = True
            self._later(self._observe)

    def close(self) -> None:
        """Observe the queue no longer."""
        self._is_closed = True
        self._queue.listen_to_demand(None)

    def _observe(self, _now: int) -> None:
        self._is_due = False
        if not self._is_closed:
            # From here on the queue reports the next change.
            self._queue.is_dirty = False
            self._changed()
