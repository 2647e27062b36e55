"""What is due at `now`: the queues of a virtual host that asked to be woken, by time."""

from collections.abc import Callable
from heapq import heappop, heappush

from warren.queues.queue import Queue


class Expiry:
    """A heap of wake-up times. A queue that asks twice is woken twice, and looks for itself."""

    __slots__ = ("_due", "_serial", "notify")

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Queue]] = []
        self._serial = 0
        # Told the earliest time (ms) whenever that moves closer.
        self.notify: Callable[[int], None] = _nobody

    def schedule(self, queue: Queue, when: int) -> None:
        """Wake `queue` at `when` (ms)."""
        self._serial += 1
        heappush(self._due, (when, self._serial, queue))
        if self._due[0][1] == self._serial:
            self.notify(when)

    def earliest(self) -> int | None:
        """The time (ms) of the next wake-up."""
        return self._due[0][0] if self._due else None

    def run(self, now: int) -> None:
        """Wake every queue whose time has come."""
        while self._due and self._due[0][0] <= now:
            heappop(self._due)[2].expire()


def _nobody(when: int) -> None:
    """Before the node listens."""
