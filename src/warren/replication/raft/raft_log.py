"""The log of a replica: what the storage has, and a tail that it does not have yet.

    first ........ applied ... applying ... commit ........... last
    |<---------- storage ---------->|<---- unstable tail ---->|
                                    ^ offset      ^ in progress

Entries of the tail before `in_progress` were handed to the storage, which may not have written them yet. They
leave the tail when it acknowledges them, if they are still the ones that it was given.
Invariant: applied <= applying <= commit <= last, and what is committed is never replaced.
"""

from collections import deque
from collections.abc import Sequence
from typing import Literal, Protocol

from warren.limits_raft import ENTRY_OVERHEAD_BYTES
from warren.model.first_items import drop_first
from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_messages import Entry, EntryId, EntryKind, HardState, Snapshot
from warren.replication.raft.trace import Trace, TraceEvent

NOT_NOW: Literal["not now"] = "not now"
# Looked up once: an attribute of an enum costs 0.1 µs interpreted.
_CHANGE = EntryKind.CHANGE


class RaftStorage(Protocol):
    """Port: what is written, as it will be read after a crash, together with what is being written."""

    def initial(self) -> tuple[HardState, Configuration]:
        """Return what a replica starts with; the configuration is that of the last applied change.

        The commit index is at most the last index, though what was written may tell of a higher one: the
        entries behind that can be the torn end of the same write.
        """
        ...

    def first_index(self) -> int:
        """Return the index of the first entry, which is one after the snapshot's."""
        ...

    def last_index(self) -> int:
        """Return the index of the last entry, or one less than the first without entries."""
        ...

    def term(self, index: int) -> int | None:
        """Return the term of an entry, or of the one before the first; None if it is not known."""
        ...

    def entries(self, first: int, last: int, bytes_max: int) -> Sequence[Entry] | Literal["not now"]:
        """Return at least one and at most `bytes_max` bytes of the entries from `first` to `last`.

        `NOT_NOW` says that they are being read, and that `Replica.storage_ready` will be called.
        """
        ...

    def snapshot(self) -> Snapshot | None:
        """Return a snapshot for a member that needs entries before the first; None if none is ready.

        It is of the last applied change of the configuration, or later: a member that was added since
        could not install an older one. `Replica.storage_ready` is called when one is ready.
        """
        ...


class RaftLog:
    """The log of one replica."""

    __slots__ = (
        "_applying_bytes", "_applying_bytes_max", "_batches", "_changes", "_entries", "_is_applying_paused",
        "_storage", "_trace", "applied", "applying", "commit", "in_progress", "is_snapshot_in_progress",
        "offset", "snapshot",
    )  # fmt: skip

    def __init__(self, storage: RaftStorage, trace: Trace, applying_bytes_max: int) -> None:
        """Begin with what the storage has; `restart` says what of it is committed and applied."""
        self._storage = storage
        self._trace = trace
        self._applying_bytes_max = applying_bytes_max
        self._applying_bytes = 0
        self._is_applying_paused = False
        # Of what is being applied: the last index, the bytes it counts, and those of its payloads.
        self._batches: list[tuple[int, int, int]] = []
        first = storage.first_index()
        self.applied = self.applying = self.commit = first - 1
        # The unstable tail: a snapshot that replaces the log, and the entries from `offset` on.
        self.snapshot: Snapshot | None = None
        self.is_snapshot_in_progress = False
        self.offset = self.in_progress = storage.last_index() + 1
        self._entries: list[Entry] = []
        # Indexes of the changes of the configuration that are not applied, in rising order.
        self._changes: deque[int] = deque()

    def restart(self, commit: int, applied: int) -> None:
        """Go on with what was known before a restart."""
        assert self.commit <= commit <= self.last_index(), f"commit {commit} is not in the log"
        assert applied <= commit, f"{applied} is applied, but {commit} is committed"
        self.commit = commit
        self.applied = self.applying = max(applied, self.applied)
        index = self.applied + 1
        while index < self.offset:
            entries = self._storage.entries(index, self.offset - 1, self._applying_bytes_max)
            assert entries != NOT_NOW, "a replica starts when its log can be read"
            assert entries, f"the log has no entry {index}"
            self._note_changes(entries)
            index += len(entries)

    # What there is.

    def first_index(self) -> int:
        """Return the index of the first entry that can be read."""
        if self.snapshot is not None:
            return self.snapshot.index + 1
        return self._storage.first_index()

    def last_index(self) -> int:
        """Return the index of the last entry, or of the snapshot behind which there is none."""
        return self.offset + len(self._entries) - 1

    def last_id(self) -> EntryId:
        """Return term and index of the last entry."""
        last = self.last_index()
        term = self.term(last)
        assert term is not None, f"the term of the last entry, {last}, is not known"
        return EntryId(term, last)

    def term(self, index: int) -> int | None:
        """Return the term of an entry, None if the log does not reach it or begins after it."""
        if index >= self.offset:
            place = index - self.offset
            return self._entries[place].term if place < len(self._entries) else None
        if self.snapshot is not None:
            return self.snapshot.term if index == self.snapshot.index else None
        if index + 1 < self._storage.first_index():
            return None
        return self._storage.term(index)

    def matches(self, index: int, term: int) -> bool:
        """Return whether the entry at `index` is of this term."""
        return self.term(index) == term

    def has_change_to_apply(self) -> bool:
        """Return whether a change of the configuration is committed and not applied."""
        return bool(self._changes) and self._changes[0] <= self.commit

    def uncommitted_changes(self) -> int:
        """Return how many changes of the configuration are in the log and not known to be committed."""
        return sum(index > self.commit for index in self._changes)

    def last_unstable(self) -> Entry | None:
        """Return the last entry that the storage has not acknowledged."""
        return self._entries[-1] if self._entries else None

    def entries(self, first: int, bytes_max: int) -> Sequence[Entry] | Literal["not now"] | None:
        """Return some of the entries from `first` on, at least one if there are any; None if compacted."""
        last = self.last_index()
        if first > last:
            return ()
        return self.slice(first, last, bytes_max) if first >= self.first_index() else None

    def slice(self, first: int, last: int, bytes_max: int) -> Sequence[Entry] | Literal["not now"]:
        """Return at least one, and at most `bytes_max` bytes, of the entries from `first` to `last`."""
        if first >= self.offset:
            return _limited(self._entries[first - self.offset : last - self.offset + 1], bytes_max)
        stored = self._storage.entries(first, min(last, self.offset - 1), bytes_max)
        if stored == NOT_NOW or last < self.offset or first + len(stored) < self.offset:
            return stored
        left = bytes_max - entries_bytes(stored)
        tail = self._entries[: last - self.offset + 1]
        if not tail or entry_bytes(tail[0]) > left:
            return stored
        return (*stored, *_limited(tail, left))

    def last_not_after(self, index: int, term: int) -> EntryId:
        """Return the last entry at or before `index` whose term is at most `term`; term 0 if not known."""
        while index > 0:
            found = self.term(index)
            if found is None or found <= term:
                return EntryId(found or 0, index)
            index -= 1
        return EntryId(0, 0)

    def take_snapshot(self) -> Snapshot | None:
        """Return a snapshot for a member that needs compacted entries, None if none is ready."""
        return self.snapshot if self.snapshot is not None else self._storage.snapshot()

    # Appending.

    def append(self, entries: Sequence[Entry]) -> int:
        """Append entries, in place of all from the first of them on; return the last index."""
        if not entries:
            return self.last_index()
        begin = entries[0]
        first = begin.index
        assert first > self.commit, f"entry {first} would replace a committed one, up to {self.commit}"
        place = first - self.offset
        if place == len(self._entries):
            self._entries.extend(entries)
        elif place <= 0:
            self._trace.event(TraceEvent.UNSTABLE_REPLACED, first)
            self._entries = list(entries)
            self.offset = self.in_progress = first
        else:
            self._trace.event(TraceEvent.UNSTABLE_TRUNCATED, first)
            del self._entries[place:]
            self._entries.extend(entries)
            self.in_progress = min(self.in_progress, first)
        changes = self._changes
        while changes and changes[-1] >= first:
            changes.pop()
        self._note_changes(entries)
        return self.last_index()

    def append_applied(self, index: int) -> None:
        """Note that the storage and the machine have an entry behind all others, which are applied."""
        assert index == self.offset == self.applied + 1, f"entry {index} behind {self.offset - 1}"
        self.offset = self.in_progress = index + 1
        self.commit = self.applied = self.applying = index

    def append_after(self, previous: EntryId, entries: Sequence[Entry], commit: int) -> int | None:
        """Append a leader's entries behind `previous`; return the last that is now known to match.

        None says that there is no such entry. What matches already is not touched, so that an old message
        cannot shorten the log; what is committed is at most what this message has verified.
        """
        if not self.matches(previous.index, previous.term):
            return None
        last = previous.index + len(entries)
        for place, entry in enumerate(entries):
            term = self.term(entry.index)
            if term != entry.term:
                if term is not None:
                    self._trace.event(TraceEvent.CONFLICT_FOUND, entry.index, term, entry.term)
                self.append(entries[place:])
                break
        self.commit_to(min(commit, last))
        return last

    def commit_to(self, index: int) -> None:
        """Raise the commit index; it never falls."""
        if index > self.commit:
            assert index <= self.last_index(), (
                f"{index} is committed, but the log ends at {self.last_index()}"
            )
            self.commit = index

    def restore(self, snapshot: Snapshot) -> None:
        """Replace the log by a snapshot."""
        self._trace.event(TraceEvent.SNAPSHOT_RESTORING, self, snapshot)
        self.commit = snapshot.index
        self.snapshot = snapshot
        self.is_snapshot_in_progress = False
        self.offset = self.in_progress = snapshot.index + 1
        self._entries = []
        self._changes.clear()

    # Writing.

    def next_unstable(self) -> tuple[Entry, ...]:
        """Return the entries that the storage has not been given."""
        place, count = self.in_progress - self.offset, len(self._entries)
        if place == count - 1:
            return (self._entries[place],)
        return tuple(self._entries[place:]) if place < count else ()

    def next_snapshot(self) -> Snapshot | None:
        """Return the snapshot that the storage has not been given."""
        return None if self.is_snapshot_in_progress else self.snapshot

    def hand_over(self) -> None:
        """Note that the storage has been given everything."""
        self.in_progress = self.offset + len(self._entries)
        self.is_snapshot_in_progress = self.snapshot is not None

    def written(self, index: int, term: int) -> None:
        """Note that the storage has everything up to an entry, if that is still in the log."""
        if index < self.offset:
            if self.snapshot is not None and self.snapshot.index == index:
                self._trace.event(TraceEvent.WRITTEN_IN_SNAPSHOT, index)
            else:
                self._trace.event(TraceEvent.WRITTEN_MISSING, index)
            return
        found = self.term(index)
        if found is None:
            self._trace.event(TraceEvent.WRITTEN_MISSING, index)
        elif found != term:
            self._trace.event(TraceEvent.WRITTEN_MISMATCHED, index, term, found)
        else:
            self._leave_tail(index)

    def commit_written(self, entries: Sequence[Entry]) -> None:
        """Note that the storage has `entries`, the first of the tail, and that they are being applied."""
        first, last = entries[0], entries[-1]
        assert first.index == self.offset == self.applying + 1, (
            f"entry {first.index} is written behind {self.offset - 1} and {self.applying}"
        )
        assert self._entries[len(entries) - 1] is last, f"entry {last.index} is written, and not in the tail"
        self._leave_tail(last.index)
        self.commit = last.index
        self.apply_handed_out(entries, False)

    def snapshot_written(self, index: int) -> None:
        """Note that the storage has a snapshot, if it is the one that was to be written."""
        if self.snapshot is not None and self.snapshot.index == index:
            self.snapshot = None
            self.is_snapshot_in_progress = False

    # Applying.

    def next_committed(self, is_unstable_allowed: bool) -> tuple[Entry, ...]:
        """Return committed entries that have not been handed out for applying, bounded in bytes."""
        if self.applying >= self.commit or self._is_applying_paused or self.snapshot is not None:
            return ()
        last = self.applicable(is_unstable_allowed)
        if self.applying >= last:
            return ()
        entries = self.slice(self.applying + 1, last, self._applying_bytes_max - self._applying_bytes)
        return () if entries == NOT_NOW else tuple(entries)

    def applicable(self, is_unstable_allowed: bool) -> int:
        """Return the last index that may be applied now."""
        return self.commit if is_unstable_allowed else min(self.commit, self.offset - 1)

    def apply_handed_out(self, entries: Sequence[Entry], is_unstable_allowed: bool) -> None:
        """Note that entries are being applied."""
        last = entries[-1]
        index = last.index
        self.applying = index
        payloads = payload_bytes(entries)
        size = payloads + ENTRY_OVERHEAD_BYTES * len(entries)
        self._batches.append((index, size, payloads))
        self._applying_bytes += size
        # If the bound has cut them short, go on when some have been applied.
        self._is_applying_paused = (
            self._applying_bytes >= self._applying_bytes_max or index < self.applicable(is_unstable_allowed)
        )

    def has_applied(self, index: int) -> int:
        """Note that everything up to `index` is applied; return the bytes of payloads that this releases."""
        assert self.applied <= index <= self.commit, (
            f"{index} applied, between {self.applied} and {self.commit}"
        )
        self.applied = index
        if self.applying < index:
            self.applying = index
        released = count = 0
        for last, size, payloads in self._batches:
            if last > index:
                break
            count += 1
            self._applying_bytes -= size
            released += payloads
        drop_first(self._batches, count)
        self._is_applying_paused = self._applying_bytes >= self._applying_bytes_max
        while self._changes and self._changes[0] <= index:
            self._changes.popleft()
        return released

    def _leave_tail(self, index: int) -> None:
        """Take the entries up to `index`, which the storage has, off the tail."""
        drop_first(self._entries, index + 1 - self.offset)
        self.offset = index + 1
        if self.in_progress < self.offset:
            self.in_progress = self.offset

    def _note_changes(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.kind is _CHANGE:
                self._changes.append(entry.index)


def entry_bytes(entry: Entry) -> int:
    """Return what an entry counts against bounds in bytes."""
    return entry.size + ENTRY_OVERHEAD_BYTES


def entries_bytes(entries: Sequence[Entry]) -> int:
    """Return what entries count against bounds in bytes."""
    return payload_bytes(entries) + ENTRY_OVERHEAD_BYTES * len(entries)


def payload_bytes(entries: Sequence[Entry]) -> int:
    """Return the size of the payloads of entries."""
    size = 0
    for entry in entries:
        size += entry.size
    return size


def _limited(entries: list[Entry], bytes_max: int) -> list[Entry]:
    """Return as many of the first entries as fit, and at least one."""
    size = 0
    for count, entry in enumerate(entries):
        size += entry_bytes(entry)
        if size > bytes_max and count:
            return entries[:count]
    return entries
