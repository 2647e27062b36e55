"""When links may try to connect: so many at a time and in a second, however many a node has.

    first attempt, or restarted ─▶ first attempts ─┐
                                                   ├─ granted ─▶ connecting ─▶ set up, or failed
    attempt after a failure ─────▶ retries ────────┘

Links whose brokers do not answer wait for each other and not for those that are new, and take from the node
what a few connections take.
"""

from collections import deque

from warren.client.answer import Answer
from warren.flow.rate_limiter import RateLimiter
from warren.limits_relay import (
    LINK_ATTEMPTS_MAX,
    LINK_ATTEMPTS_PER_S,
    LINK_RETRIES_MAX,
    LINK_RETRIES_PER_S,
)
from warren.model.turn import Turn
from warren.relay.link_run import After

_MS = 1000


class LinkAttempts:
    """The attempts of all links of a node."""

    __slots__ = ("_first", "_retries")

    def __init__(self, turn: Turn, after: After) -> None:
        self._first = _PacedAttempts(turn, after, LINK_ATTEMPTS_PER_S, LINK_ATTEMPTS_MAX)
        self._retries = _PacedAttempts(turn, after, LINK_RETRIES_PER_S, LINK_RETRIES_MAX)

    def request(self, *, is_retry: bool) -> "Attempt":
        """Ask for an attempt, which may be granted at once; its `end` must be called."""
        others = self._retries if is_retry else self._first
        attempt = Attempt(others)
        others.add(attempt)
        return attempt


class Attempt:
    """One attempt: waiting, granted, or ended."""

    __slots__ = ("_others", "granted", "is_ended", "is_granted")

    def __init__(self, others: "_PacedAttempts") -> None:
        self._others = others
        # Completed when the attempt may begin.
        self.granted: Answer[None] = Answer()
        self.is_granted = False
        self.is_ended = False

    def end(self) -> None:
        """Let another link try; also before this attempt was granted. Ignored if it has ended."""
        if not self.is_ended:
            self.is_ended = True
            self._others.ended(self)


class _PacedAttempts:
    """Attempts that wait for each other, in the order in which they were asked for."""

    __slots__ = (
        "_after", "_in_progress", "_in_progress_max", "_is_granting", "_is_timed", "_limiter", "_turn",
        "_waiting",
    )  # fmt: skip

    def __init__(self, turn: Turn, after: After, per_s: float, in_progress_max: int) -> None:
        self._turn = turn
        self._after = after
        # Full at first: a node has a burst for its first links.
        self._limiter = RateLimiter(per_s, turn.now() / _MS - 1)
        self._in_progress = 0
        self._in_progress_max = in_progress_max
        self._is_granting = False
        self._is_timed = False
        self._waiting: deque[Attempt] = deque()

    def add(self, attempt: Attempt) -> None:
        """Let `attempt` wait, or grant it."""
        self._waiting.append(attempt)
        self._grant()

    def ended(self, attempt: Attempt) -> None:
        """Note that `attempt` has ended."""
        if attempt.is_granted:
            self._in_progress -= 1
            self._grant()

    def _grant(self) -> None:
        """Grant as many attempts as may begin now; one that ends at once does not grant the next itself."""
        if self._is_granting:
            return
        self._is_granting = True
        try:
            self._grant_waiting()
        finally:
            self._is_granting = False

    def _grant_waiting(self) -> None:
        while self._waiting and self._in_progress < self._in_progress_max:
            if self._waiting[0].is_ended:
                self._waiting.popleft()
                continue
            if not self._limiter.allowed(self._turn.now() / _MS, 1):
                self._grant_later()
                return
            self._limiter.spend(1)
            attempt = self._waiting.popleft()
            attempt.is_granted = True
            self._in_progress += 1
            # The attempt begins at once, and may end at once.
            attempt.granted.complete(None)

    def _grant_later(self) -> None:
        if not self._is_timed:
            self._is_timed = True
            self._after(int(self._limiter.delay_s() * _MS) + 1, self._timed)

    def _timed(self) -> None:
        self._is_timed = False
        self._grant()
