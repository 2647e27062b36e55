"""The timers of an open connection that both protocols have: heartbeats, and a close that is not answered."""

from warren import limits
from warren.framing.heartbeat import Heartbeat, HeartbeatAction


class ConnectionDeadlines:
    """The timers of one connection once its handshake is complete or has failed; all times in ms."""

    __slots__ = ("_heartbeat", "_silence_excused", "closing")

    def __init__(self) -> None:
        # When the socket is closed without an answer to the broker's close; None while it is open.
        self.closing: int | None = None
        self._heartbeat: Heartbeat | None = None
        # Checks during which the broker itself did not read from the client.
        self._silence_excused = 0

    def start_heartbeat(self, interval_s: int, tuned_at: int) -> None:
        """Send and expect heartbeats, as agreed when the connection was tuned."""
        self._heartbeat = Heartbeat(interval_s, tuned_at)

    def begin_closing(self, now: int, *, is_broken: bool) -> None:
        """Start the timeout of the close; it is short if the client's input `is_broken`."""
        self.closing = now + (limits.BROKEN_CLOSING_MS if is_broken else limits.CLOSING_MS)

    def next(self, *others: int | None) -> int | None:
        """The earliest deadline of an open connection, with those of its protocol; None without any."""
        heartbeat = self._heartbeat.deadline() if self._heartbeat is not None else None
        return min((due for due in (heartbeat, *others) if due is not None), default=None)

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

    def clear(self) -> None:
        """Remove all deadlines."""
        self.closing = self._heartbeat = None
