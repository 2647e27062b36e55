"""Port: what the log of a Raft group tells whoever drives the group."""


class GroupListener:
    """Receives how far the log of a group is durable, and when it is written next; subclassed by drivers."""

    __slots__ = ()

    def prepare(self) -> None:
        """Append to the log what belongs to the batch that is about to be made.

        Called once after `GroupLog.announce` or `announce_later`. What cannot be appended now must not be
        announced again by this call, but when it can be.
        """
        raise NotImplementedError

    def shorten(self) -> None:
        """Replace all entries that are applied by a snapshot, since they are about to be written again."""
        raise NotImplementedError

    def written(self, ticket: int) -> None:
        """All changes up to number `ticket` are synced."""
        raise NotImplementedError

    def failed(self, error: Exception) -> None:
        """The listener has raised `error`, and is called no more; by default it is raised again."""
        raise error
