"""What the Raft log of one replica of a group contains, without changing it; `group_log` does that."""

from array import array
from collections.abc import Iterable, Iterator

from msgspec import Struct

from warren.limits_raft import GROUP_TAIL_SIZE_MAX
from warren.model.message import StoredMessage
from warren.store.cursor import QueueCursor
from warren.store.group_record import GroupEntry, GroupHardState, GroupSnapshot
from warren.store.group_records import GroupRecords
from warren.store.group_state import GroupState
from warren.store.message_reader import MessageReader
from warren.store.message_store import MessageStore


class EntryRun(Struct, frozen=True):
    """Messages of one entry, next to each other in the store."""

    cursor: QueueCursor
    # The position of the first one in the store, and the location of each; 0 for one that was settled.
    first: int
    locations: "array[int]"


class GroupContents(GroupRecords):
    """The entries, the snapshot and the hard state of a replica, and where its messages are."""

    def __init__(self, store: MessageStore, state: GroupState) -> None:
        self._store = store
        self._state = state
        # The messages of each entry: themselves until they are written, then their locations; a location of 0
        # for one that was settled before the store was opened.
        self._messages: dict[int, list[StoredMessage | int]] = {}

    @property
    def number(self) -> int:
        """The number of the group, which is that of its queue."""
        return self._state.number

    @property
    def replica(self) -> int:
        """The number of the replica within its group."""
        return self._state.replica

    @property
    def untrusted(self) -> str:
        """Why this replica may have forgotten what it promised; empty if it can be trusted.

        An untrusted replica must neither vote nor be counted until it has everything from a leader.
        """
        return self._state.reason

    @property
    def hard(self) -> GroupHardState:
        """The term, the vote, and the highest index known as committed."""
        return GroupHardState(self._state.hard.term, self._state.hard.vote, self._state.commit)

    @property
    def snapshot(self) -> GroupSnapshot:
        """The latest snapshot; the entries begin behind its index, unless the first are forgotten."""
        return self._state.snapshot

    @property
    def snapshot_ends(self) -> dict[int, int]:
        """Priority level -> the position behind the last message, as of the snapshot."""
        return dict(self._state.snapshot_ends)

    @property
    def first(self) -> int:
        """The index of the first entry that is not forgotten, whether or not there is any."""
        return self._state.first

    @property
    def last(self) -> int:
        """The index of the last entry, or of the snapshot if there is none."""
        return self._state.last

    def has_entry(self, index: int) -> bool:
        """True if there is an entry with `index` that is not forgotten."""
        return self._state.first <= index <= self._state.last

    def term(self, index: int) -> int:
        """The term of the entry `index`, or of the one before the first; IndexError if it is neither."""
        if index == self._state.first - 1:
            return self._state.term_before
        self._check_index(index)
        return self._state.entry(index).term

    def entries(self, first: int, last: int, size_max: int) -> list[GroupEntry]:
        """The entries from `first` to `last`, as many as have `size_max` bytes, but one at least.

        IndexError if one of them does not exist.
        """
        self._check_index(first)
        self._check_index(last)
        found: list[GroupEntry] = []
        size = 0
        for index in range(first, last + 1):
            entry = self._state.entry(index)
            size += entry.size
            if found and size > size_max:
                break
            found.append(entry)
        return found

    def messages(self, index: int) -> list[StoredMessage | None]:
        """The messages of entry `index`, in order; None for each one that is settled or unreadable."""
        self._check_index(index)
        entry, reader = self._state.entry(index), self._store.reader()
        found: list[StoredMessage | None] = []
        for (cursor, position), message in zip(self._places(entry), self._messages[index], strict=True):
            if cursor.has(position):
                found.append(None)
            elif isinstance(message, int):
                found.append(reader.read(message))
            else:
                found.append(message)
        return found

    def contents(self, index: int) -> list[StoredMessage | int]:
        """The messages of entry `index`, in order: themselves or where they are; 0 for a settled one."""
        self._check_index(index)
        messages = self._messages[index]
        found: list[StoredMessage | int] = []
        for run in self._state.entry(index).runs:
            cursor = self._store.cursor(self._state.number, run.level)
            position = self._state.stored(run.level, run.first)
            for _ in range(run.count):
                message = messages[len(found)]
                found.append(0 if cursor.has(position) else message)
                position += 1
        return found

    def locations(self, index: int) -> list[int]:
        """The locations of the messages of entry `index`, which is written; 0 for one settled earlier."""
        self._check_index(index)
        return [each if isinstance(each, int) else each.location for each in self._messages[index]]

    def entry_runs(self, index: int) -> list[EntryRun]:
        """Where the messages of entry `index` are, which is written."""
        locations, runs = self.locations(index), []
        place = 0
        for run in self._state.entry(index).runs:
            cursor = self._store.cursor(self._state.number, run.level)
            its_locations = array("Q", locations[place : place + run.count])
            runs.append(EntryRun(cursor, self._state.stored(run.level, run.first), its_locations))
            place += run.count
        return runs

    def reader(self) -> MessageReader:
        """The reader for messages that are written."""
        return self._store.reader()

    def unsettled(self) -> Iterator[tuple[int, int, StoredMessage | int]]:
        """The messages of entries that are not settled: level, position in the store, message or location."""
        for index in range(self._state.first, self._state.last + 1):
            places = self._places(self._state.entry(index))
            for (cursor, position), message in zip(places, self._messages[index], strict=True):
                if message and not cursor.has(position):
                    yield cursor.level, position, message

    def has(self, level: int, stored: int) -> bool:
        """True if position `stored` of `level` in the store is one of the group: it is not void."""
        position = self.logical(level, stored)
        return position < self.end(level) and self.stored(level, position) == stored

    def stored(self, level: int, position: int) -> int:
        """The position in the store of the message at `position` of `level` in the group."""
        return self._state.stored(level, position)

    def logical(self, level: int, stored: int) -> int:
        """The position in the group of the message at position `stored` of `level` in the store."""
        return self._state.logical(level, stored)

    def logical_ranges(self, level: int, first: int, end: int) -> Iterator[tuple[int, int]]:
        """The ranges of positions in the group at positions `first` up to `end` of `level` in the store."""
        return self._state.logical_ranges(level, first, end)

    def end(self, level: int) -> int:
        """The position behind the last message of `level` in the group."""
        return self._state.ends.get(level, 0)

    def levels(self) -> list[int]:
        """The priority levels of which the group has had messages, in ascending order."""
        return sorted(self._state.ends)

    @property
    def tail_size(self) -> int:
        """The size in bytes of the entries behind the snapshot, without messages."""
        return self._state.tail_size

    def has_tail(self, size: int) -> bool:
        """True if the entries behind the snapshot have `size` bytes, without messages."""
        return self._state.tail_size >= size

    def has_space(self, size: int) -> bool:
        """True if an entry of `size` bytes, without its messages, can be appended before a snapshot."""
        return self._state.tail_size + size <= GROUP_TAIL_SIZE_MAX

    # --- private ----------------------------------------------------------------------------------

    def _places(self, entry: GroupEntry) -> Iterable[tuple[QueueCursor, int]]:
        """The cursor and the position in the store of each message of `entry`."""
        for run in entry.runs:
            cursor = self._store.cursor(self._state.number, run.level)
            # The messages of a run are next to each other in the store as well.
            stored = self._state.stored(run.level, run.first)
            for position in range(stored, stored + run.count):
                yield cursor, position

    def _check_index(self, index: int) -> None:
        if not self.has_entry(index):
            raise IndexError(index)
