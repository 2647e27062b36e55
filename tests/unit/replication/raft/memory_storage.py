"""A storage in memory, as the core sees one, and what of it a crash leaves."""

from collections.abc import Sequence
from typing import Literal

from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_log import NOT_NOW
from warren.replication.raft.raft_messages import Entry, HardState, Snapshot
from warren.replication.raft.ready import Ready


class MemoryStorage:
    """Entries behind a snapshot; what is written is there at once."""

    def __init__(self, configuration: Configuration, index: int = 0, term: int = 0) -> None:
        self.hard_state = HardState(commit=index)
        self.configuration = configuration
        self.base = Snapshot(index, term, configuration)
        self.log: list[Entry] = []
        # Entries below this are being read, and cannot be had now.
        self.unreadable_below = 0
        self.has_snapshot = True

    def initial(self) -> tuple[HardState, Configuration]:
        return self.hard_state, self.configuration

    def first_index(self) -> int:
        return self.base.index + 1

    def last_index(self) -> int:
        return self.base.index + len(self.log)

    def term(self, index: int) -> int | None:
        if index == self.base.index:
            return self.base.term
        place = index - self.first_index()
        return self.log[place].term if 0 <= place < len(self.log) else None

    def entries(self, first: int, last: int, bytes_max: int) -> Sequence[Entry] | Literal["not now"]:
        if first < self.unreadable_below:
            return NOT_NOW
        found: list[Entry] = []
        size = 0
        for entry in self.log[first - self.first_index() : last - self.first_index() + 1]:
            size += entry.size + 32
            if found and size > bytes_max:
                break
            found.append(entry)
        return found

    def snapshot(self) -> Snapshot | None:
        return self.base if self.has_snapshot else None

    # What a driver does with it.

    def write(
        self, hard_state: HardState | None, entries: Sequence[Entry], snapshot: Snapshot | None = None
    ) -> None:
        """Write what a Ready wants to have written."""
        if hard_state is not None:
            self.hard_state = hard_state
        if snapshot is not None:
            self.base = snapshot
            self.configuration = snapshot.configuration
            self.log = []
        if entries:
            place = entries[0].index - self.first_index()
            assert 0 <= place <= len(self.log), f"entry {entries[0].index} leaves a gap"
            self.log[place:] = entries

    def compact(self, index: int, configuration: Configuration) -> None:
        """Keep a snapshot of the machine as of `index`, and the entries behind it."""
        term = self.term(index)
        assert term is not None
        self.log = self.log[index - self.base.index :]
        self.base = Snapshot(index, term, configuration)


def ready_of(entries: Sequence[Entry], commit: int) -> Ready:
    """A Ready with nothing but `entries`, which are written when `commit` is committed."""
    return Ready(None, tuple(entries), None, True, commit, (), (), None, (), None, ())
