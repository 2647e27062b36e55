"""Reads that a leader answers when a majority has confirmed that it still leads."""

from warren.replication.raft.raft_messages import RaftMessage


class PendingRead:
    """One read, the commit index when it came, and who has confirmed the leader since."""

    __slots__ = ("acknowledged", "index", "request")

    def __init__(self, request: RaftMessage, index: int) -> None:
        """Begin without a confirmation."""
        self.request = request
        self.index = index
        self.acknowledged: dict[int, bool] = {}


class PendingReads:
    """The reads of a leader in the order in which they came; each is named by its context."""

    __slots__ = ("_reads",)

    def __init__(self) -> None:
        """Begin without reads."""
        self._reads: dict[bytes, PendingRead] = {}

    def add(self, request: RaftMessage, index: int, leader: int) -> None:
        """Note a read, which the leader itself confirms; one of the same name is that read."""
        if request.context not in self._reads:
            read = self._reads[request.context] = PendingRead(request, index)
            read.acknowledged[leader] = True

    def acknowledge(self, replica: int, context: bytes) -> dict[int, bool]:
        """Note that a replica has confirmed the leader; return all who have, for this read."""
        read = self._reads.get(context)
        if read is None:
            return {}
        read.acknowledged[replica] = True
        return read.acknowledged

    def release(self, context: bytes) -> list[PendingRead]:
        """Take out a read and all that came before it, which it confirms as well."""
        if context not in self._reads:
            return []
        released = []
        for name in list(self._reads):
            released.append(self._reads.pop(name))
            if name == context:
                break
        return released

    def last_context(self) -> bytes:
        """Return the name of the newest read, empty without one."""
        return next(reversed(self._reads), b"")
