"""Entries that a leader's snapshot has replaced, and that other members may lack: they are in memory only.

Without them a member that was cut off for a moment would need a snapshot with all messages of the queue, if
the entries that it lacks were replaced meanwhile.
"""

from collections import deque

from msgspec import Struct

from warren.limits_raft import RECENT_ENTRIES_MAX, RECENT_MESSAGES_MAX
from warren.model.message import StoredMessage
from warren.replication.raft.raft_messages import Entry
from warren.store.group_contents import EntryRun
from warren.store.message_reader import MessageReader


class _Recent(Struct, frozen=True):
    entry: Entry
    runs: list[EntryRun]
    message_count: int


class RecentEntries:
    """Entries that follow one another; none at first."""

    __slots__ = ("_entries", "_message_count", "_term_before")

    def __init__(self) -> None:
        # The term of the entry before the first one.
        self._term_before = 0
        self._message_count = 0
        self._entries: deque[_Recent] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def first(self) -> int:
        """The index of the first entry. Only while there is one."""
        return self._entries[0].entry.index

    def has(self, index: int) -> bool:
        """True if entry `index` is here."""
        entries = self._entries
        return bool(entries) and entries[0].entry.index <= index <= entries[-1].entry.index

    def term(self, index: int) -> int:
        """The term of entry `index`, which is here or before the first one."""
        if index == self.first - 1:
            return self._term_before
        return self.entry(index).term

    def entry(self, index: int) -> Entry:
        """Entry `index`, which is here."""
        return self._entries[index - self.first].entry

    def messages(self, index: int, reader: MessageReader) -> list[StoredMessage | None]:
        """The messages of entry `index`, in order; None for each one that is settled or unreadable."""
        found: list[StoredMessage | None] = []
        for run in self._entries[index - self.first].runs:
            for place, location in enumerate(run.locations):
                is_there = location and not run.cursor.has(run.first + place)
                found.append(reader.read(location) if is_there else None)
        return found

    def locations(self, index: int) -> list[int]:
        """The locations of the messages of entry `index`, in order; 0 for each one that is settled."""
        return [
            0 if run.cursor.has(run.first + place) else location
            for run in self._entries[index - self.first].runs
            for place, location in enumerate(run.locations)
        ]

    def add(self, entry: Entry, runs: list[EntryRun], term_before: int) -> None:
        """Add `entry` with its messages; `term_before` is the term of the one before it."""
        if not self._entries:
            self._term_before = term_before
        assert not self._entries or entry.index == self._entries[-1].entry.index + 1, "entries have a gap"
        count = sum(len(run.locations) for run in runs)
        self._entries.append(_Recent(entry, runs, count))
        self._message_count += count
        while len(self._entries) > RECENT_ENTRIES_MAX or self._message_count > RECENT_MESSAGES_MAX:
            self._drop_first()

    def drop(self, index: int) -> None:
        """Drop the entries up to `index`, which no member lacks."""
        while self._entries and self._entries[0].entry.index <= index:
            self._drop_first()

    def _drop_first(self) -> None:
        dropped = self._entries.popleft()
        self._term_before = dropped.entry.term
        self._message_count -= dropped.message_count
