"""The log of a replica of the metadata group: what its Raft core can read, and what is to be written.

    snapshot ... base ......... applied ............... last
    |<-- in the file ------------------->|
                 |<-- entries in memory ------------->|
                                   ^ records not written ^

Entries are kept until they are applied, and, while there are other members, for those that lack them: as many
as a member misses that was away for a moment. Who lacks more is sent a snapshot. The file is read at the
start only. Records are taken by the next batch in the order in which they were handed over, term and vote
first among those of one Ready.

Invariants: each ENTRY record has the commit index that was known as it was appended, so that knowing the
entry is knowing that. An entry with an index that the file has already replaces that one and all behind it.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from warren.journal.codec import LogPosition, VoteState, encode_entry, encode_hard_state
from warren.journal.file_format import ENTRY, HARD
from warren.journal.raft_entry import EmptyEntry, MembersChange
from warren.limits_metadata import METADATA_ENTRIES_KEPT
from warren.metadata.commands import CommandContext, MetadataCommand
from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_log import entry_bytes
from warren.replication.raft.raft_messages import Entry, EntryId, EntryKind, HardState, Snapshot
from warren.replication.raft.ready import Ready

# A record for the file: its kind and its body.
LogRecord = tuple[int, bytes]


class LoggedProposal(Struct, frozen=True):
    """The payload of an entry: a command with what its proposer stamped, and its record."""

    command: MetadataCommand
    context: CommandContext
    record: bytes


class LogStart(Struct, frozen=True, kw_only=True):
    """What a log begins with: what a start has found."""

    node: int
    # The last entry that is applied.
    applied: EntryId
    hard: VoteState
    # The configuration as of the last applied change.
    configuration: Configuration
    # The entries behind it, which may not be committed, with their records.
    tail: Sequence[tuple[Entry, bytes]] = ()


class MetadataLog:
    """The log of one replica of the metadata group: port `RaftStorage`, and `DriverLog`."""

    __slots__ = (
        "_applied", "_base", "_configuration", "_entries", "_make_snapshot", "_node", "_records", "_stamp",
        "decides_alone", "hard", "is_alone", "received", "records", "records_size", "ticket",
    )  # fmt: skip

    def __init__(
        self,
        start: LogStart,
        stamp: Callable[[int, int], tuple[CommandContext, int]],
        make_snapshot: Callable[[EntryId], object],
    ) -> None:
        """The log behind what was found.

        `stamp` makes the context of an entry that nobody proposed from its index, and tells the next number
        of a queue when the entries up to the second index are applied, 0 if it does not know that.
        `make_snapshot` makes the payload of a snapshot of what is applied.
        """
        self._node = start.node
        # The entry before the first one in memory, and the index of the last one that is applied.
        self._base = start.applied
        self._applied = start.applied.index
        # The entries in memory, and of each its record.
        self._entries = [entry for entry, _ in start.tail]
        self._records = [record for _, record in start.tail]
        self._stamp = stamp
        self._make_snapshot = make_snapshot
        # Term and vote as they were last handed over.
        self.hard = start.hard
        self.configuration = start.configuration
        # A snapshot that another member has sent, which replaces the file; None when that is done.
        self.received: Snapshot | None = None
        # What is to be written, and its size in bytes.
        self.records: list[LogRecord] = []
        self.records_size = 0
        # The number of what was last handed over.
        self.ticket = 0

    @property
    def configuration(self) -> Configuration:
        """The members of the group as of the last applied change."""
        return self._configuration

    @configuration.setter
    def configuration(self, configuration: Configuration) -> None:
        self._configuration = configuration
        # True if this node is the only voter, so that everything in its log is committed; and if it is the
        # only member, so that nobody else can know what it has not synced.
        self.decides_alone = configuration.voters == (self._node,) and not configuration.is_joint
        self.is_alone = self.decides_alone and configuration.members == (self._node,)

    @property
    def unapplied_count(self) -> int:
        """The number of entries that are not applied."""
        return self.last_index() - self._applied

    @property
    def has_only_empty_entries(self) -> bool:
        """True if there are entries that are not applied, all of them empty ones of a new leader."""
        waiting = self._entries[self._applied - self._base.index :]
        return bool(waiting) and all(
            entry.kind is EntryKind.NORMAL and not isinstance(entry.payload, LoggedProposal)
            for entry in waiting
        )

    # The storage of the Raft core.

    def initial(self) -> tuple[HardState, Configuration]:
        """Return what a replica starts with; what is applied is what is known as committed."""
        return HardState(self.hard.term, self.hard.vote, self._applied), self.configuration

    def first_index(self) -> int:
        """Return the index of the first entry in memory."""
        return self._base.index + 1

    def last_index(self) -> int:
        """Return the index of the last entry, written or not."""
        return self._base.index + len(self._entries)

    def term(self, index: int) -> int | None:
        """Return the term of an entry, None if it is not in memory."""
        place = index - self._base.index
        if place == 0:
            return self._base.term
        return self._entries[place - 1].term if 0 < place <= len(self._entries) else None

    def entries(self, first: int, last: int, bytes_max: int) -> Sequence[Entry]:
        """Return at least one and at most `bytes_max` bytes of the entries from `first` to `last`."""
        found: list[Entry] = []
        size = 0
        for entry in self._entries[first - self._base.index - 1 : last - self._base.index]:
            size += entry_bytes(entry)
            if found and size > bytes_max:
                break
            found.append(entry)
        return found

    def snapshot(self) -> Snapshot | None:
        """Return what is applied, for a member that lacks entries before those in memory; None if nothing
        is.
        """
        applied = self.applied_id
        if not applied.index:
            return None
        return Snapshot(applied.index, applied.term, self.configuration, self._make_snapshot(applied))

    # What is to be written.

    def write(self, ready: Ready) -> int:
        """Take term, vote, snapshot and entries for the next batch; return the number of this write."""
        hard = ready.hard_state
        if hard is not None and (hard.term, hard.vote) != (self.hard.term, self.hard.vote):
            self.hard = VoteState(hard.term, hard.vote)
            self._add(HARD, encode_hard_state(self.hard))
        if ready.snapshot is not None:
            self._receive(ready.snapshot)
        return self.append(ready.entries, ready.commit)

    def append(self, entries: Sequence[Entry], commit: int) -> int:
        """Take entries for the next batch; return the number of this write."""
        if entries:
            self._cut_from(entries[0].index)
        for entry in entries:
            assert entry.index == self.last_index() + 1, f"entry {entry.index} behind {self.last_index()}"
            record = self._record_of(entry, commit)
            self._entries.append(entry)
            self._records.append(record)
            self._add(ENTRY, record)
        self.ticket += 1
        return self.ticket

    def append_applied(self, entry: EntryId, record: bytes | None) -> None:
        """Add an entry that is applied behind all others, and that nothing has to wait for.

        Without a record, a snapshot that has it is written before any record.
        """
        assert not self._entries
        self._base = entry
        self._applied = entry.index
        if record is not None:
            self.records.append((ENTRY, record))
            self.records_size += len(record)

    def take_records(self) -> list[LogRecord]:
        """Return what is to be written, which counts as begun."""
        records, self.records, self.records_size = self.records, [], 0
        return records

    def tail(self) -> list[LogRecord]:
        """Return the records of all entries that are not applied, for a file that begins with what is."""
        return [(ENTRY, record) for record in self._records[self._applied - self._base.index :]]

    def applied(self, index: int) -> None:
        """Note that the entries up to `index` are applied, and forget those that no member needs."""
        self._applied = max(self._applied, index)
        kept = 0 if self.is_alone else METADATA_ENTRIES_KEPT
        # In pieces: each costs as much as what is kept.
        if self._applied - self._base.index >= 2 * kept:
            self._forget(self._applied - kept)

    def forget_unapplied(self) -> None:
        """Forget what could not be written: as if the node had crashed before it was."""
        count = self._applied - self._base.index
        del self._entries[count:], self._records[count:]
        self.take_records()

    @property
    def applied_id(self) -> EntryId:
        """The last entry that is applied."""
        term = self.term(self._applied)
        assert term is not None
        return EntryId(term, self._applied)

    def _forget(self, index: int) -> None:
        """Forget the entries up to `index`, which are applied."""
        count = index - self._base.index
        if count > 0:
            last = self._entries[count - 1]
            del self._entries[:count], self._records[:count]
            self._base = EntryId(last.term, last.index)

    def _cut_from(self, index: int) -> None:
        """Forget the entries from `index` on, which another leader has replaced."""
        count = index - self._base.index - 1
        if count < len(self._entries):
            assert index > self._applied, f"entry {index} is applied and replaced"
            del self._entries[count:], self._records[count:]

    def _receive(self, snapshot: Snapshot) -> None:
        """Replace the whole log by `snapshot`."""
        self.received = snapshot
        self._base = EntryId(snapshot.term, snapshot.index)
        self._applied = snapshot.index
        self._entries.clear()
        self._records.clear()
        self.configuration = snapshot.configuration
        # The new file has term and vote.
        self.take_records()

    def _add(self, kind: int, body: bytes) -> None:
        self.records.append((kind, body))
        self.records_size += len(body)

    def _record_of(self, entry: Entry, commit: int) -> bytes:
        proposal = entry.payload
        if isinstance(proposal, LoggedProposal):
            assert proposal.context.index == entry.index, f"entry {entry.index} has another index"
            return proposal.record
        assert isinstance(proposal, bytes), "the core makes empty entries and changes"
        context, number = self._stamp(entry.index, commit)
        made = MembersChange(proposal) if entry.kind is EntryKind.CHANGE else EmptyEntry()
        return encode_entry(made, context, LogPosition(entry.term, commit, number))
