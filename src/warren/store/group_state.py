"""The state of one replica of a Raft group: what its records amount to, whether read or just written.

    STATE ─▶ snapshot, offsets, hard state │ ENTRY: one more entry │ CUT: fewer │ HARD: the newest counts

The same transitions apply when records are read at a start and when they are made, so that a start finds the
state that was written. What does not fit while reading, such as a gap between two entries, makes the replica
untrusted: it may have forgotten what it promised.
"""

from collections.abc import Iterable, Iterator

from warren.model.first_items import drop_first
from warren.store.cursor import QueueCursor
from warren.store.group_record import (
    GroupEntry,
    GroupHardState,
    GroupRecord,
    GroupSnapshot,
    PayloadVersions,
    PositionOffset,
    PositionRun,
    decode_cut,
    decode_entry,
    decode_hard,
    decode_state,
    entry_size,
    group_of,
    newer_payload,
)
from warren.store.position_offsets import PositionOffsets
from warren.store.record import CUT, ENTRY, HARD, STATE
from warren.store.segment import NewerFormatError, StoreFileError, segment_name

# The number in the log of a replica that has ended, while its group goes on elsewhere.
NO_REPLICA = 0


class GroupState:
    """The log and the hard state of one replica, and where its messages are."""

    __slots__ = (
        "commit", "damage", "ends", "entries", "first", "hard", "last", "last_term", "number", "offsets",
        "reason", "replica", "segments", "since", "snapshot", "snapshot_ends", "tail_size", "term_before",
    )  # fmt: skip

    def __init__(self, number: int, replica: int = NO_REPLICA) -> None:
        # The number of the group, and of the replica within it.
        self.number = number
        self.replica = replica
        # Why the replica must not be trusted; empty if it can be. And the damage that this start has found.
        self.reason = ""
        self.damage: list[StoreFileError] = []
        # The number of the segment before which nothing in the log concerns the replica.
        self.since = 0
        self.hard = GroupHardState()
        # The highest index known as committed.
        self.commit = 0
        self.snapshot = GroupSnapshot()
        # The index of the first of `entries`, whether or not it exists, and the term of the one before it;
        # index and term of the last entry, or of the snapshot if there is none behind it.
        self.first = 1
        self.term_before = 0
        self.last = 0
        self.last_term = 0
        # The entries behind the snapshot, but those that are forgotten, in order and without a gap; and the
        # size of all that are behind the snapshot, in bytes.
        self.entries: list[GroupEntry] = []
        self.tail_size = 0
        # Priority level -> the position behind the last message, as of the snapshot and at the end.
        self.snapshot_ends: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self.offsets: dict[int, PositionOffsets] = {}
        # Numbers of the segments with records that are needed.
        self.segments: set[int] = set()

    def begin_behind(self, snapshot: GroupSnapshot) -> None:
        """Let `snapshot` stand for everything before the entries."""
        self.snapshot = snapshot
        self.first, self.term_before = snapshot.index + 1, snapshot.term
        self._number_entries()

    def entry(self, index: int) -> GroupEntry:
        """The entry with `index`, which must be behind the snapshot."""
        return self.entries[index - self.first]

    def stored(self, level: int, position: int) -> int:
        """The position in the store of `position` of `level`."""
        if not self.offsets:
            return position
        offsets = self.offsets.get(level)
        return position if offsets is None else offsets.stored(position)

    def logical(self, level: int, stored: int) -> int:
        """The position of `level` in the group of the message at position `stored` in the store."""
        if not self.offsets:
            return stored
        offsets = self.offsets.get(level)
        return stored if offsets is None else offsets.logical(stored)

    def logical_ranges(self, level: int, first: int, end: int) -> Iterator[tuple[int, int]]:
        """The ranges of positions in the group at positions `first` up to `end` of `level` in the store."""
        offsets = self.offsets.get(level)
        return iter(((first, end),)) if offsets is None else offsets.logical_ranges(first, end)

    def fits(self, runs: tuple[PositionRun, ...]) -> bool:
        """True if `runs` continue the positions of their levels without a gap."""
        ends = dict(self.ends) if len(runs) > 1 else self.ends
        for run in runs:
            if run.first != ends.get(run.level, 0):
                return False
            if ends is not self.ends:
                ends[run.level] = run.first + run.count
        return True

    def append(self, entry: GroupEntry) -> None:
        """Append `entry`, whose index and positions continue the log."""
        runs, commit = entry.runs, entry.commit
        self.entries.append(entry)
        self.last += 1
        self.last_term = entry.term
        self.tail_size += entry_size(runs, entry.commands)
        if commit > self.commit:
            self.commit = commit
        for run in runs:
            self.ends[run.level] = run.first + run.count

    def cut(self, index: int) -> list[GroupEntry]:
        """Remove the entries from `index` on, and return them."""
        place = index - self.first
        removed = self.entries[place:]
        del self.entries[place:]
        for entry in reversed(removed):
            self.tail_size -= entry.size
            for run in reversed(entry.runs):
                self.ends[run.level] = run.first
        self._number_entries()
        return removed

    def move(self, offsets: Iterable[PositionOffset]) -> None:
        """Use `offsets` from their positions on."""
        for each in offsets:
            self.offsets.setdefault(each.level, PositionOffsets()).set(each.first, each.offset)

    def compact(self, snapshot: GroupSnapshot) -> None:
        """Replace the entries up to the index of `snapshot`, those that are forgotten too, by it."""
        del self.entries[: snapshot.index + 1 - self.first]
        self.tail_size = 0
        ends = dict(self.ends)
        for entry in reversed(self.entries):
            self.tail_size += entry_size(entry.runs, entry.commands)
            for run in reversed(entry.runs):
                ends[run.level] = run.first
        self.snapshot_ends = {level: end for level, end in ends.items() if end}
        self.begin_behind(snapshot)
        self.commit = max(self.commit, snapshot.index)

    def forget(self, index: int) -> None:
        """Have the entries up to `index` on disk only; a snapshot replaces them before a STATE is written."""
        assert index >= self.first, f"entry {index} is forgotten already, or in the snapshot"
        place = index + 1 - self.first
        last = self.entries[place - 1]
        self.term_before = last.term
        drop_first(self.entries, place)
        self.first = index + 1

    def promise(self, hard: GroupHardState) -> None:
        """Replace the hard state; what is known as committed never becomes less."""
        self.hard = hard
        self.commit = max(self.commit, hard.commit)

    def distrust(self, reason: str) -> None:
        """Do not trust this replica; the first reason counts."""
        self.reason = self.reason or reason

    def install(
        self, snapshot: GroupSnapshot, ends: dict[int, int], tops: dict[int, int], since: int
    ) -> None:
        """Replace everything by `snapshot`, whose messages are in the store from `tops` on, by level."""
        self.entries.clear()
        self.begin_behind(snapshot)
        self.snapshot_ends = dict(ends)
        self.ends = dict(ends)
        self.tail_size = 0
        self.offsets.clear()
        self.move(PositionOffset(level, 0, top) for level, top in sorted(tops.items()) if top)
        self.commit = max(self.commit, snapshot.index)
        self.since = since
        self.reason = ""
        self.damage = []

    def begin_again(self, replica: int) -> None:
        """Be the state of another replica of the group, which has promised nothing: `install` follows."""
        self.replica = replica
        self.hard = GroupHardState()
        self.commit = 0

    def extend(self, tops: dict[int, int]) -> None:
        """Count what is in the store up to the positions `tops` there, by level, as messages of the group."""
        for level, top in tops.items():
            end = self.ends.get(level, 0)
            self.ends[level] = end + max(top - self.stored(level, end), 0)

    def accept_loss(self, machine: bytes, configuration: bytes) -> None:
        """Trust this replica: a snapshot of a new term stands for all of its messages."""
        term, index = self.hard.term + 1, max(self.last, self.commit) + 1
        self.promise(GroupHardState(term, 0, index))
        self.entries.clear()
        self.begin_behind(GroupSnapshot(index=index, term=term, configuration=configuration, machine=machine))
        self.snapshot_ends = dict(self.ends)
        self.tail_size = 0
        self.reason = ""
        self.damage = []

    def void(self, level: int, top: int) -> Iterator[tuple[int, int]]:
        """The ranges of positions in the store of `level`, up to `top`, at which the group has no message."""
        offsets = self.offsets.get(level) or PositionOffsets()
        return offsets.void(self.ends.get(level, 0), top)

    def settle_void(self, cursor: QueueCursor, top: int) -> list[tuple[int, int]]:
        """Mark as settled what is in the store and not in the group: messages without their entry.

        Returns the ranges of positions that were not settled before.
        """
        void = [
            (first, end)
            for first, end in self.void(cursor.level, top)
            if not all(map(cursor.has, range(first, end)))
        ]
        for first, end in void:
            cursor.add(first, end)
        return void

    def record(self) -> GroupRecord:
        """The content of a STATE."""
        assert self.first == self.snapshot.index + 1, "a STATE needs the entries that are forgotten"
        listed = [each for level, offsets in sorted(self.offsets.items()) for each in offsets.listed(level)]
        return GroupRecord(
            group=self.number,
            replica=self.replica,
            since=self.since,
            reason=self.reason,
            hard=GroupHardState(self.hard.term, self.hard.vote, self.commit),
            snapshot=self.snapshot,
            ends=self.snapshot_ends,
            offsets=listed,
            entries=self.entries,
        )

    def _number_entries(self) -> None:
        entries = self.entries
        self.last = self.first - 1 + len(entries)
        self.last_term = entries[-1].term if entries else self.term_before


def state_of(record: GroupRecord) -> GroupState:
    """The state that a STATE contains."""
    state = GroupState(record.group, record.replica)
    state.since = record.since
    state.reason = record.reason
    state.begin_behind(record.snapshot)
    state.promise(record.hard)
    state.snapshot_ends = dict(record.ends)
    state.ends = dict(record.ends)
    state.move(record.offsets)
    for entry in record.entries:
        state.append(entry)
    return state


class GroupScan:
    """The states of all groups, as far as the records read so far tell, by number of the group."""

    __slots__ = ("_newest", "states")

    def __init__(self, newest: PayloadVersions | None = None) -> None:
        self._newest = newest
        self.states: dict[int, GroupState] = {}

    def take(self, kind: int, body: bytes, segment: int, at: int = 0) -> None:
        """Collect the record of `kind` with `body`, which segment number `segment` contains at `at`.

        NewerFormatError for a payload of a version that is above the newest.
        """
        number = group_of(body)
        newer = None if self._newest is None else newer_payload(kind, body, self._newest)
        if newer is not None:
            reason = f"{newer[1]}, the newest this version of Warren reads"
            raise NewerFormatError(segment_name(segment), at + newer[0], reason)
        if kind == STATE:
            # Whatever stands before it does not count any more.
            state = self.states[number] = state_of(decode_state(body))
        else:
            found = self.states.get(number)
            state = self.states[number] = found or GroupState(number)
            if found is None:
                state.distrust("its state is missing")
        state.segments.add(segment)
        if kind == ENTRY:
            _take_entry(state, decode_entry(body))
        elif kind == HARD:
            state.replica, hard = decode_hard(body)
            if hard.term < state.hard.term:
                state.distrust(f"its term went back from {state.hard.term} to {hard.term}")
            else:
                state.promise(hard)
        elif kind == CUT:
            index, offsets = decode_cut(body)
            if index > state.last + 1:
                state.distrust(f"entries {state.last + 1} to {index - 1} are missing")
            elif index < state.first:
                state.distrust(f"its snapshot is cut at entry {index}")
            else:
                state.cut(index)
                state.move(offsets)


def _take_entry(state: GroupState, entry: GroupEntry) -> None:
    if entry.index != state.last + 1:
        state.distrust(f"entry {entry.index} follows entry {state.last}")
    elif not state.fits(entry.runs):
        state.distrust(f"the positions of entry {entry.index} do not follow those before")
    elif entry.term > state.hard.term:
        state.distrust(f"entry {entry.index} has term {entry.term}, and the hard state {state.hard.term}")
    else:
        state.append(entry)
