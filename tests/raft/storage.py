"""A storage in memory that also keeps the newest snapshot of a state machine."""

from collections.abc import Sequence

from tests.unit.replication.raft.memory_storage import MemoryStorage

from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_messages import Entry, HardState, Snapshot
from warren.replication.raft.ready import Ready


class MachineStorage(MemoryStorage):
    """Sends members that need a snapshot the newest one, which may be far ahead of the first entry."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.configuration, snapshot.index, snapshot.term)
        self.newest = snapshot
        self._history = [snapshot]
        # The highest commit index that was written with entries.
        self.carried_commit = 0

    def snapshot(self) -> Snapshot | None:
        return self.newest if self.newest.index else None

    def write(
        self, hard_state: HardState | None, entries: Sequence[Entry], snapshot: Snapshot | None = None
    ) -> None:
        super().write(hard_state, entries, snapshot)
        if snapshot is not None:
            self.newest = snapshot

    def has_applied(self, entry: Entry, configuration: Configuration) -> None:
        """Take a snapshot of the machine after an entry."""
        self.newest = Snapshot(entry.index, entry.term, configuration)
        self.configuration = configuration
        self._history.append(self.newest)

    def carry(self, ready: Ready) -> None:
        """Note the commit index that the entries of a Ready carry."""
        if ready.entries:
            self.carried_commit = max(self.carried_commit, ready.commit)

    def go_back(self, index: int) -> None:
        """Forget what the machine has applied behind an entry."""
        self.newest = next(snapshot for snapshot in self._history if snapshot.index == index)
        self.configuration = self.newest.configuration
