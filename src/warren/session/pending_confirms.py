"""An awaitable for the confirms of publishes that belong together: a transaction, or a single message."""

from collections.abc import Callable, Generator

from warren.model.confirm_listener import ConfirmListener


class PendingConfirms(ConfirmListener):
    """An awaitable that completes when each queue that must store a message has answered.

    It is awaited after the last publish, once.
    """

    def __init__(self) -> None:
        # True if a queue has refused a message, or could not store it.
        self.is_refused = False
        self._due = 0
        self._callback: Callable[[object], None] | None = None

    def expect(self, sequence: int) -> None:
        """Register one more due answer."""
        self._due += 1

    def done(self, first: int, last: int) -> None:
        """Count one answer for each sequence from `first` to `last`: the messages are safe."""
        self._due -= last - first + 1
        if not self._due and self._callback is not None:
            self._callback(self)

    def refused(self, sequence: int) -> None:
        """Count one answer: a queue has refused the message."""
        self.is_refused = True
        self.done(sequence, sequence)

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` once, after the last answer."""
        self._callback = callback

    def __await__(self) -> Generator["PendingConfirms", None, None]:
        if self._due:
            yield self
