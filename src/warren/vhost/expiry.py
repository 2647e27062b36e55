"""What is due at `now`: the queues of a virtual host that asked to be woken, and its leases, by time."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Protocol

# Times that were asked for and given up are swept out when they outnumber the others so many times.
_STALE_FACTOR = 2
_STALE_MIN = 64


class Expirable(Protocol):
    """A queue, or another thing for which a time may come."""

    def expire(self) -> None:
        """A time that it asked to be woken at has come."""


class Expiry:
    """A heap of wake-up times. The last one that a queue asked for counts, and no other."""

    __slots__ = ("_due", "_serial", "_times", "notify")

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Expirable]] = []
        # What each queue asked for last; entries of the heap that say otherwise are passed over.
        self._times: dict[Expirable, int] = {}
        self._serial = 0
        # Told the earliest time (ms) whenever that moves closer.
        self.notify: Callable[[int], None] = _nobody

    def schedule(self, queue: Expirable, when: int) -> None:
        """Wake `queue` at `when` (ms), and at no time that was given before."""
        if self._times.get(queue) == when:
            return
        self._times[queue] = when
        if len(self._due) > _STALE_MIN + _STALE_FACTOR * len(self._times):
            self._due = [entry for entry in self._due if self._is_current(entry)]
            heapify(self._due)
        self._serial += 1
        heappush(self._due, (when, self._serial, queue))
        if self._due[0][1] == self._serial:
            self.notify(when)

    def forget(self, queue: Expirable) -> None:
        """Do not wake `queue`."""
        self._times.pop(queue, None)

    def earliest(self) -> int | None:
        """The time (ms) of the next wake-up."""
        while self._due and not self._is_current(self._due[0]):
            heappop(self._due)
        return self._due[0][0] if self._due else None

    def run(self, now: int) -> None:
        """Wake every queue whose time has come; what it asks for meanwhile waits for another turn."""
        serial = self._serial
        while self._due and self._due[0][0] <= now and self._due[0][1] <= serial:
            entry = heappop(self._due)
            if self._is_current(entry):
                del self._times[entry[2]]
                entry[2].expire()

    def _is_current(self, entry: tuple[int, int, Expirable]) -> bool:
        return self._times.get(entry[2]) == entry[0]


def _nobody(when: int) -> None:
    """Before the node listens."""
