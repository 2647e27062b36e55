"""The timers of an AMQP connection: heartbeats, the consumer timeout, and a close that is not answered."""

from warren import limits
from warren.session.heartbeat import Heartbeat, HeartbeatAction

# The clock advances in steps of about this length, so that checking more often finds nothing new (ms).
_TIMEOUT_CHECK_MS_MIN = 100


class ConnectionDeadlines:
    """The timers of one connection once its handshake is complete or has failed; all times in ms."""

    __slots__ = ("_heartbeat", "_silence_excused", "_timeout_check", "_timeout_interval", "closing")

    def __init__(self) -> None:
        # When the socket is closed without an answer to connection.close; None while it is open.
        self.closing: int | None = None
        self._heartbeat: Heartbeat | None = None
        # Checks during which the broker itself did not read from the client.
        self._silence_excused = 0
        # When deliveries are checked for the consumer timeout, and how often.
        self._timeout_check: int | None = None
        self._timeout_interval = 0

    def start_heartbeat(self, interval_s: int, tuned_at: int) -> None:
        """Send and expect heartbeats, as agreed in connection.tune."""
        self._heartbeat = Heartbeat(interval_s, tuned_at)

    def check_timeouts(self, timeout_ms: int, now: int) -> bool:
        """Check for deliveries unacknowledged for longer than `timeout_ms`; True if that changes `next`."""
        interval = max(min(timeout_ms // 4, limits.CONSUMER_TIMEOUT_CHECK_MS), _TIMEOUT_CHECK_MS_MIN)
        if self._timeout_check is not None and interval >= self._timeout_interval:
            return False
        self._timeout_interval = interval
        self._timeout_check = now + interval
        return True

    def next(self, token_expires_at: int | None) -> int | None:
        """The earliest deadline; None without any."""
        if self.closing is not None:
            return self.closing
        beat = self._heartbeat.deadline() if self._heartbeat is not None else None
        known = (beat, self._timeout_check, token_expires_at)
        return min((due for due in known if due is not None), default=None)

    def heartbeat_due(
        self, now: int, received: int, sent: int, *, is_reading_paused: bool
    ) -> HeartbeatAction | None:
        """Check the heartbeat; `received` and `sent` are the bytes so far."""
        if self._heartbeat is None:
            return None
        if is_reading_paused:
            # The client may have sent something that was not read.
            self._silence_excused += 1
        return self._heartbeat.due(now, received + self._silence_excused, sent)

    def is_timeout_check_due(self, now: int) -> bool:
        """Whether to check the deliveries now; the next check is then set."""
        if self._timeout_check is None or now < self._timeout_check:
            return False
        self._timeout_check = now + self._timeout_interval
        return True

    def clear(self) -> None:
        """Remove all deadlines."""
        self.closing = self._heartbeat = self._timeout_check = None
