"""Port: receives, once per publish sequence, that a message is safe or refused."""


class ConfirmListener:
    """Called by a queue for a message that it cannot confirm immediately; subclassed by publishers.

    A queue that keeps the message in memory makes no calls. One that must write it first calls `expect`
    during the publish, and `done` or `refused` when the write has ended.
    """

    def expect(self, sequence: int) -> None:
        """Register one more due answer for publish `sequence`."""
        raise NotImplementedError

    def done(self, first: int, last: int) -> None:
        """Count one answer for each sequence from `first` to `last`: the messages are safe."""
        raise NotImplementedError

    def refused(self, sequence: int) -> None:
        """Count one answer for `sequence`: the message is not, and will not be, stored."""
        raise NotImplementedError

    def failed(self, error: Exception) -> None:
        """End who waits for answers, since `done` or `refused` has raised `error`."""
