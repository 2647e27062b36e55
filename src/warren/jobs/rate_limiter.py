"""How many messages may go now, if so many may in a second."""

# Seconds for which what was not used is saved up.
_SAVED_S = 0.1


class RateLimiter:
    """A bucket that fills at `rate`, and never holds more than a moment's worth; None: no bound."""

    __slots__ = ("_filled_at", "_rate", "_tokens")

    def __init__(self, rate: float | None, now_s: float) -> None:
        self._rate = rate
        self._tokens = 1.0
        self._filled_at = now_s

    def allowed(self, now_s: float, most: int) -> int:
        """How many may go at `now_s`, `most` at most."""
        if self._rate is None:
            return most
        passed = now_s - self._filled_at
        self._filled_at = now_s
        self._tokens = min(self._tokens + passed * self._rate, max(1.0, self._rate * _SAVED_S))
        return min(int(self._tokens), most)

    def spend(self, count: int) -> None:
        """So many went."""
        if self._rate is not None:
            self._tokens -= count

    def delay_s(self) -> float:
        """How long until one may go."""
        if self._rate is None or self._tokens >= 1:
            return 0.0
        return (1 - self._tokens) / self._rate
