"""Port: what a store needs from its owner."""

from warren.model.confirm_listener import ConfirmListener
from warren.store.segment import StoreFileError


class StorePort:
    """Called by a store, which does nothing by itself: its owner decides when it commits and retries."""

    def commit_due(self) -> None:
        """Data is waiting to be written: call `commit` at the end of the turn."""
        raise NotImplementedError

    def commit_due_later(self) -> None:
        """Data that no client waits for, such as releases, is to be written: call `commit` after a delay."""
        self.commit_due()

    def failed(self, error: OSError, is_full: bool) -> None:
        """A batch was not written; if the disk is full, call `retry` when it has room again."""
        raise NotImplementedError

    def recovered(self) -> None:
        """The batch that failed before was written."""
        raise NotImplementedError

    def fell_behind(self) -> None:
        """Too much is pending: block publishers until `caught_up`."""
        raise NotImplementedError

    def caught_up(self) -> None:
        """All that was pending has been passed to the disk."""
        raise NotImplementedError

    def listener_failed(self, listener: ConfirmListener, error: Exception) -> None:
        """A listener, not the store, has raised `error` when it was told that its messages are safe."""
        raise error

    def unreadable(self, error: OSError | StoreFileError) -> None:
        """A stored message cannot be read: it is damaged, or the disk failed."""
        raise NotImplementedError
