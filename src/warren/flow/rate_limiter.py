"""Limits the rate of messages with a token bucket."""

# Unused tokens are saved for at most this time (s).
_SAVED_S = 0.1


class RateLimiter:
    """A bucket filled at `rate` tokens per second, up to a short burst; None: unlimited."""

    __slots__ = ("_filled_at", "_rate", "_tokens")

    def __init__(self, rate: float | None, now_s: float) -> None:
        self._rate = rate
        self._tokens = 1.0
        self._filled_at = now_s

    def allowed(self, now_s: float, most: int) -> int:
        """Return how many messages may be sent at `now_s` (s), at most `most`."""
        if self._rate is None:
            return most
        # A clock that was set back takes no tokens.
        passed = max(0.0, now_s - self._filled_at)
        self._filled_at = now_s
        self._tokens = min(self._tokens + passed * self._rate, max(1.0, self._rate * _SAVED_S))
        return min(int(self._tokens), most)

    def spend(self, count: int) -> None:
        """Remove `count` tokens, for messages that were sent."""
        if self._rate is not None:
            self._tokens -= count

    def delay_s(self) -> float:
        """Return the time until a message may be sent (s)."""
        if self._rate is None or self._tokens >= 1:
            return 0.0
        return (1 - self._tokens) / self._rate
