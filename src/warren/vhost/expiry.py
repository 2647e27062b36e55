"""Timers of one virtual host: queues and leases that are to be woken at a time."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from warren.queues.queue import Expirable

# Replaced entries are removed from the heap when they outnumber the others by this factor.
_STALE_FACTOR = 2
_STALE_MIN = 64


class Expiry:
    """A heap of wake-up times; only the last time scheduled for an object counts."""

    __slots__ = ("_due", "_serial", "_times", "failed", "notify")

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Expirable]] = []
        # The time last scheduled for each object; other entries of the heap are ignored.
        self._times: dict[Expirable, int] = {}
        self._serial = 0
        # Called with the earliest time (ms) whenever it becomes earlier.
        self.notify: Callable[[int], None] = _nobody
        # Called with an object and the error that it has raised: the others are woken all the same.
        self.failed: Callable[[Expirable, Exception], None] = _raise

    def schedule(self, queue: Expirable, when: int) -> None:
        """Wake `queue` at `when` (ms) instead of an earlier scheduled time."""
        if self._times.get(queue) == when:
            return
        self._times[queue] = when
        self._drop_stale()
        self._serial += 1
        heappush(self._due, (when, self._serial, queue))
        if self._due[0][1] == self._serial:
            self.notify(when)

    def forget(self, queue: Expirable) -> None:
        """Cancel the wake-up of `queue`."""
        self._times.pop(queue, None)
        self._drop_stale()

    def earliest(self) -> int | None:
        """The time (ms) of the next wake-up; None if there is none."""
        while self._due and not self._is_current(self._due[0]):
            heappop(self._due)
        return self._due[0][0] if self._due else None

    def run(self, now: int) -> None:
        """Wake all objects that are due at `now` (ms).

        What they schedule meanwhile waits for another turn.
        """
        serial = self._serial
        while self._due and self._due[0][0] <= now and self._due[0][1] <= serial:
            entry = heappop(self._due)
            if self._is_current(entry):
                del self._times[entry[2]]
                try:
                    entry[2].expire()
                except Exception as error:
                    self.failed(entry[2], error)

    def _drop_stale(self) -> None:
        """Drop the entries that are replaced if they are most: those of deleted queues keep their objects."""
        if len(self._due) > _STALE_MIN + _STALE_FACTOR * len(self._times):
            self._due = [entry for entry in self._due if self._is_current(entry)]
            heapify(self._due)

    def _is_current(self, entry: tuple[int, int, Expirable]) -> bool:
        return self._times.get(entry[2]) == entry[0]


def _nobody(when: int) -> None:
    """The default callback, which does nothing."""


def _raise(woken: Expirable, error: Exception) -> None:
    """Raise `error`, by default."""
    raise error
