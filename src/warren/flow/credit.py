"""Credit that the disk of a virtual host gives its publishers: while it is spent they wait, first come first.

Nobody is told (connection.blocked is for alarms): it is a matter of milliseconds, again and again.
"""

from collections import deque
from collections.abc import Callable


class PublishCredit:
    """Whether publishers may go on, and those who wait until they may."""

    __slots__ = (
        "_debts", "_debts_of_all", "_is_calling", "_later", "_waiting", "is_spent", "is_spent_for_all",
    )  # fmt: skip

    def __init__(self, later: Callable[[Callable[[int], None]], None]) -> None:
        # Has an action called with the time (ms) in a turn of its own.
        self._later = later
        self._waiting: deque[Callable[[int], None]] = deque()
        self._is_calling = False
        # How many stores have enough to do, and how many of them take messages that are not persistent.
        self._debts = 0
        self._debts_of_all = 0
        # Asked for each message; and whether also those wait who publish nothing persistent.
        self.is_spent = False
        self.is_spent_for_all = False

    def spend(self, *, for_all: bool = True) -> None:
        """A store has enough to do: whoever publishes (if not `for_all`: what is persistent) waits."""
        self._debts += 1
        self._debts_of_all += for_all
        self.is_spent = True
        self.is_spent_for_all = self._debts_of_all > 0

    def renew(self, *, for_all: bool = True) -> None:
        """A store can take more; if all can, those who wait go on, one in each turn."""
        self._debts -= 1
        self._debts_of_all -= for_all
        self.is_spent_for_all = self._debts_of_all > 0
        if not self._debts:
            self.is_spent = False
            self._call()

    def wait(self, resume: Callable[[int], None]) -> None:
        """Have `resume` called with the time (ms) when there is credit; it may wait again."""
        self._waiting.append(resume)

    def _call(self) -> None:
        if self._waiting and not self.is_spent and not self._is_calling:
            self._is_calling = True
            self._later(self._call_next)

    def _call_next(self, now: int) -> None:
        self._is_calling = False
        if self._waiting and not self.is_spent:
            self._waiting.popleft()(now)
            self._call()
