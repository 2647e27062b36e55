"""The interface of a connection, at either end, for whoever performs its I/O."""

from typing import Protocol

from warren.framing.outbox import Buffer

# The capability that shovels and federation links announce (Warren's own): they let other clients go first.
LINK_CAPABILITY = "warren_link"


class DrivenConnection(Protocol):
    """A connection without I/O: it is given what was read and the time, and has output and deadlines."""

    @property
    def changes(self) -> int:
        """Advances when `is_finished`, `is_open`, `is_reading_paused` or `deadline` may have changed."""

    @property
    def has_more(self) -> bool:
        """True while received data exceeds one turn's work: nothing is read until `process_more` is done."""

    @property
    def is_open(self) -> bool:
        """True from the end of the handshake until the connection begins to close."""

    @property
    def is_finished(self) -> bool:
        """True when only the result of `take_output` must be written before the socket is closed."""

    @property
    def is_link(self) -> bool:
        """True if a shovel or federation link is at the other end, or at this one."""

    @property
    def is_reading_paused(self) -> bool:
        """True while the socket must not be read."""

    def receive(self, data: bytes, work: int, /) -> None:
        """Process the bytes of one read, at most about `work` frames; raises nothing. See `has_more`."""

    def process_more(self, work: int, /) -> None:
        """Process another turn's work of received data. Call it while `has_more` is true."""

    def take_output(self) -> list[Buffer]:
        """Return the pending output in order, and empty the outbox."""

    def pause_output(self) -> None:
        """Note that the socket accepts no more output."""

    def resume_output(self) -> None:
        """Note that the socket accepts output again."""

    def output_written(self) -> None:
        """Note that the result of `take_output` was written, so that there is room for more."""

    def deadline(self) -> int | None:
        """The time (ms) at which to call `expire`; None if there is no deadline."""

    def expire(self) -> None:
        """Handle a deadline, if it has passed."""

    def lost(self) -> None:
        """Handle the closed socket."""
