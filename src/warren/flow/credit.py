"""Credit that the disk of a virtual host grants to its publishers; without credit they wait, in order.

connection.blocked is not sent, which is for alarms: the waits take milliseconds, and are frequent.
"""

from collections import deque
from collections.abc import Callable


class PublishCredit:
    """The credit of publishers, and the publishers that wait for it."""

    __slots__ = (
        "_debts", "_debts_of_all", "_is_calling", "_later", "_waiting", "is_spent", "is_spent_for_all",
    )  # fmt: skip

    def __init__(self, later: Callable[[Callable[[int], None]], None]) -> None:
        # Port: calls an action with the time (ms) in a turn of its own.
        self._later = later
        self._waiting: deque[Callable[[int], None]] = deque()
        self._is_calling = False
        # The number of stores that are busy, and of those among them that take transient messages.
        self._debts = 0
        self._debts_of_all = 0
        # Read for each message: no credit; and no credit for transient messages either.
        self.is_spent = False
        self.is_spent_for_all = False

    def spend(self, *, for_all: bool = True) -> None:
        """Withdraw credit, since a store is busy: publishers of persistent messages wait, or with `for_all`
        all publishers.
        """
        self._debts += 1
        self._debts_of_all += for_all
        self.is_spent = True
        self.is_spent_for_all = self._debts_of_all > 0

    def renew(self, *, for_all: bool = True) -> None:
        """Renew the credit of one store.

        If no store is busy any more, waiting publishers resume, one in each turn.
        """
        self._debts -= 1
        self._debts_of_all -= for_all
        self.is_spent_for_all = self._debts_of_all > 0
        if not self._debts:
            self.is_spent = False
            self._call()

    def wait(self, resume: Callable[[int], None]) -> None:
        """Call `resume` with the time (ms) when there is credit; it may have to wait again."""
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
