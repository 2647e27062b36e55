"""A storage in memory that also keeps the newest snapshot of a state machine."""

from collections.abc import Sequence

from tests.unit.replication.raft.memory_storage import MemoryStorage

from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_messages import Entry, HardState, Snapshot


class MachineStorage(MemoryStorage):
    """Sends members that need a snapshot the newest one, which may be far ahead of the first entry."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.configuration, snapshot.index, snapshot.term)
        self.newest = snapshot

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
