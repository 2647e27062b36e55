"""Port: a connection, at either end, for whoever performs its I/O."""

from warren import limits
from warren.framing.outbox import Buffer

# The capability that shovels and federation links announce (Warren's own): they let other clients go first.
LINK_CAPABILITY = "warren_link"

_WORK_MAX = limits.WORK_PER_TURN_MAX


class DrivenConnection:
    """A connection without I/O: it is given what was read and the time, and has output and deadlines."""

    __slots__ = ("changes", "has_more", "is_open")

    def __init__(self) -> None:
        # Advances when `is_finished`, `is_open`, `is_reading_paused` or `deadline` may have changed.
        self.changes = 0
        # True while received data exceeds one turn's work: nothing is read until `process_more` is done.
        self.has_more = False
        # True from the end of the handshake until the connection begins to close.
        self.is_open = False

    @property
    def is_finished(self) -> bool:
        """True when only the result of `take_output` must be written before the socket is closed."""
        raise NotImplementedError

    @property
    def is_link(self) -> bool:
        """True if a shovel or federation link is at the other end, or at this one."""
        raise NotImplementedError

    @property
    def is_reading_paused(self) -> bool:
        """True while the socket must not be read."""
        raise NotImplementedError

    def receive(self, data: bytes, work: int = _WORK_MAX) -> None:
        """Process the bytes of one read, at most about `work` frames; raises nothing. See `has_more`."""
        raise NotImplementedError

    def process_more(self, work: int = _WORK_MAX) -> None:
        """Process another turn's work of received data. Call it while `has_more` is true."""
        raise NotImplementedError

    def take_output(self) -> list[Buffer]:
        """Return the pending output in order, and empty the outbox."""
        raise NotImplementedError

    def pause_output(self) -> None:
        """Note that the socket accepts no more output."""
        raise NotImplementedError

    def resume_output(self) -> None:
        """Note that the socket accepts output again."""
        raise NotImplementedError

    def output_written(self) -> None:
        """Note that the result of `take_output` was written, so that there is room for more."""
        raise NotImplementedError

    def deadline(self) -> int | None:
        """The time (ms) at which to call `expire`; None if there is no deadline."""
        raise NotImplementedError

    def expire(self) -> None:
        """Handle a deadline, if it has passed."""
        raise NotImplementedError

    def lost(self) -> None:
        """Handle the closed socket."""
        raise NotImplementedError
