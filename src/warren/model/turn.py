"""The time of the turn of the event loop that is running, the same for everything that the turn does.

Nobody sets it: the first use in a turn reads the clock, and the end of the turn forgets it. So code that is
entered in any way (a read, a timer, an HTTP request, a step of a job) has the time of its own turn.

It also knows whether clients are waiting for their turns, so that what is not in a hurry does less in each.
"""

from collections.abc import Callable

from warren.limits_relay import LINK_SHARED_MS

_SHARED_MS = LINK_SHARED_MS


class Turn:
    """The running turn of one event loop; used by the thread of the loop only."""

    __slots__ = ("_at_end", "_client_sent_at", "_clock", "_end", "_is_read", "_now")

    def __init__(self, clock: Callable[[], int], at_end: Callable[[Callable[[], None]], object]) -> None:
        """`clock` returns Unix time in ms; `at_end` calls a function when the running turn is over."""
        self._clock = clock
        self._at_end = at_end
        # The method, bound once and not in each turn.
        self._end = self.end
        self._now = 0
        # True while `_now` is the time of the running turn; `end` is scheduled then.
        self._is_read = False
        self._client_sent_at = -_SHARED_MS

    def now(self) -> int:
        """Unix time in ms, as of the first use in this turn or the last `begin`."""
        return self._now if self._is_read else self.begin()

    def begin(self) -> int:
        """Read the clock anew for an event whose time matters to the millisecond, and return the time."""
        self._now = self._clock()
        if not self._is_read:
            self._is_read = True
            self._at_end(self._end)
        return self._now

    def note_client(self) -> None:
        """Note that a client has sent something; shovels and federation links are no clients here."""
        self._client_sent_at = self.now()

    def is_shared(self) -> bool:
        """True if a client has sent something a moment ago, and so expects short turns."""
        return self.now() - self._client_sent_at < _SHARED_MS

    def end(self) -> None:
        """Forget the time, because the turn is over."""
        self._is_read = False
