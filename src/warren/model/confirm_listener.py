"""Port: whoever published wants to be told, once for each number, that a message is safe or refused."""


class ConfirmListener:
    """What a queue calls for a message that it cannot vouch for at once; subclassed by the publisher.

    A queue that keeps a message in memory just accepts it. One that has to write it first announces that
    with `expect` while it is published, and calls `done` or `refused` when the write has ended.
    """

    def expect(self, sequence: int) -> None:
        """One more answer is due for publish number `sequence`."""
        raise NotImplementedError

    def done(self, first: int, last: int) -> None:
        """One of the answers due for each number from `first` to `last`: the messages are safe."""
        raise NotImplementedError

    def refused(self, sequence: int) -> None:
        """One of the answers due for `sequence`: the message is not, and will not be, kept."""
        raise NotImplementedError
