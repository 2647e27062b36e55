"""When the deliveries of a connection are checked for the consumer timeout."""

from warren import limits

# The clock advances in steps of about this length, so that checking more often finds nothing new (ms).
_INTERVAL_MS_MIN = 100


class ConsumerTimeoutCheck:
    """The periodic check of one connection; all times in ms."""

    __slots__ = ("_interval", "due")

    def __init__(self) -> None:
        # The time of the next check; None if nothing is checked.
        self.due: int | None = None
        self._interval = 0

    def start(self, timeout_ms: int, now: int) -> bool:
        """Check for deliveries unacknowledged for longer than `timeout_ms`; True if that changes `due`."""
        interval = max(min(timeout_ms // 4, limits.CONSUMER_TIMEOUT_CHECK_MS), _INTERVAL_MS_MIN)
        if self.due is not None and interval >= self._interval:
            return False
        self._interval = interval
        self.due = now + interval
        return True

    def is_due(self, now: int) -> bool:
        """Whether to check the deliveries now; the next check is then set."""
        if self.due is None or now < self.due:
            return False
        self.due = now + self._interval
        return True
