"""The command that a connection executes, if it has to wait; the frames behind it wait as well."""

from collections.abc import Callable, Coroutine

from warren.model.coroutine_driver import Later, Pending, step


class PendingCommand:
    """Runs one command of a connection at a time, as a coroutine."""

    __slots__ = ("_command", "_later", "_resume", "is_waiting", "started_at")

    def __init__(self, later: Later, resume: Callable[[int], None]) -> None:
        """`resume` is called with the time (ms), in a turn of its own, when `proceed` is to be called."""
        self._later = later
        self._resume = resume
        self._command: Coroutine[Pending, None, None] | None = None
        # True while the command waits: no other frame may be processed.
        self.is_waiting = False
        # When the last command was received (ms).
        self.started_at = 0

    def start(self, command: Coroutine[Pending, None, None], now: int) -> None:
        """Run `command`, received at `now`, until it ends or waits; its exceptions are raised here."""
        self.started_at = now
        self._command = command
        self.proceed()

    def proceed(self) -> None:
        """Continue the command until it ends or waits again; its exceptions are raised here."""
        command = self._command
        assert command is not None
        self.cancel()
        pending = step(command)
        if pending is not None:
            self._command = command
            self.is_waiting = True
            pending.add_done_callback(lambda _: self._later(self._resume))

    def close(self) -> None:
        """Forget the command and the connection, which has ended and could not be freed otherwise."""
        self.cancel()
        self._resume = _nothing

    def cancel(self) -> None:
        """Forget the command: what it waits for does not continue it any more."""
        self._command = None
        self.is_waiting = False


def _nothing(now: int) -> None:
    """Placeholder after the connection has ended."""
