"""The log of a replica of the metadata group: what its Raft core can read, and what is to be written.

    snapshot ........... applied ............... last
    |<-- in the file -->|<-- entries in memory -->|
                ^ records that are not written    ^

Entries are kept until they are applied; the file is read at the start only. Records are taken by the next
batch in the order in which they were handed over, term and vote first among those of one Ready.

Invariant: each ENTRY record has the commit index that was known as it was appended, so that knowing the entry
is knowing that.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from warren.journal.codec import LogPosition, VoteState, encode_entry, encode_hard_state
from warren.journal.file_format import ENTRY, HARD
from warren.journal.raft_entry import EmptyEntry, MembersChange
from warren.metadata.commands import CommandContext, MetadataCommand
from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_log import entry_bytes
from warren.replication.raft.raft_messages import Entry, EntryId, EntryKind, HardState
from warren.replication.raft.ready import Ready

# A record for the file: its kind and its body.
LogRecord = tuple[int, bytes]


class LoggedProposal(Struct, frozen=True):
    """The payload of an entry: a command with what its proposer stamped, and its record."""

    command: MetadataCommand
    context: CommandContext
    record: bytes


class MetadataLog:
    """The log of one replica of the metadata group: port `RaftStorage`, and `DriverLog`."""

    __slots__ = (
        "_base", "_entries", "_stamp", "configuration", "hard", "records", "records_size", "ticket",
    )  # fmt: skip

    def __init__(
        self,
        base: EntryId,
        hard: VoteState,
        configuration: Configuration,
        stamp: Callable[[int], tuple[CommandContext, int]],
    ) -> None:
        """The log behind `base`, up to which it is applied.

        `stamp` makes the context of an entry that nobody proposed, and tells the next number of a queue.
        """
        self._base = base
        self._entries: list[Entry] = []
        self._stamp = stamp
        # Term and vote as they were last handed over, and the configuration as of the last applied change.
        self.hard = hard
        self.configuration = configuration
        # What is to be written, and its size in bytes.
        self.records: list[LogRecord] = []
        self.records_size = 0
        # The number of what was last handed over.
        self.ticket = 0

    @property
    def is_alone(self) -> bool:
        """True if the group has one member, so that nobody else can know what this one has not synced."""
        return len(self.configuration.members) == 1

    @property
    def has_unapplied(self) -> bool:
        """True if there are entries that are not applied."""
        return bool(self._entries)

    @property
    def has_only_empty_entries(self) -> bool:
        """True if there are entries that are not applied, all of them empty ones of a new leader."""
        return bool(self._entries) and all(
            entry.kind is EntryKind.NORMAL and not isinstance(entry.payload, LoggedProposal)
            for entry in self._entries
        )

    # The storage of the Raft core.

    def initial(self) -> tuple[HardState, Configuration]:
        """Return what a replica starts with; what is applied is what is known as committed."""
        return HardState(self.hard.term, self.hard.vote, self._base.index), self.configuration

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

    def snapshot(self) -> None:
        """Return None: nobody else is sent a snapshot."""

    # What is to be written.

    def write(self, ready: Ready) -> int:
        """Take term, vote and entries for the next batch; return the number of this write."""
        assert ready.snapshot is None, "nobody sends a snapshot"
        hard = ready.hard_state
        if hard is not None and (hard.term, hard.vote) != (self.hard.term, self.hard.vote):
            self.hard = VoteState(hard.term, hard.vote)
            self._add(HARD, encode_hard_state(self.hard))
        return self.append(ready.entries, ready.commit)

    def append(self, entries: Sequence[Entry], commit: int) -> int:
        """Take entries for the next batch; return the number of this write."""
        for entry in entries:
            assert entry.index == self.last_index() + 1, f"entry {entry.index} behind {self.last_index()}"
            self._entries.append(entry)
            self._add(ENTRY, self._record_of(entry, commit))
        self.ticket += 1
        return self.ticket

    def append_applied(self, entry: EntryId, record: bytes | None) -> None:
        """Add an entry that is applied behind all others, and that nothing has to wait for.

        Without a record, a snapshot that has it is written before any record.
        """
        assert not self._entries
        self._base = entry
        if record is not None:
            self.records.append((ENTRY, record))
            self.records_size += len(record)

    def take_records(self) -> list[LogRecord]:
        """Return what is to be written, which counts as begun."""
        records, self.records, self.records_size = self.records, [], 0
        return records

    def applied(self, index: int) -> None:
        """Forget the entries up to `index`, which are applied."""
        count = index - self._base.index
        if count > 0:
            last = self._entries[count - 1]
            del self._entries[:count]
            self._base = EntryId(last.term, last.index)

    def forget_unapplied(self) -> None:
        """Forget what could not be written: as if the node had crashed before it was."""
        self._entries.clear()
        self.take_records()

    @property
    def base(self) -> EntryId:
        """The last entry that is applied."""
        return self._base

    def _add(self, kind: int, body: bytes) -> None:
        self.records.append((kind, body))
        self.records_size += len(body)

    def _record_of(self, entry: Entry, commit: int) -> bytes:
        proposal = entry.payload
        if isinstance(proposal, LoggedProposal):
            assert proposal.context.index == entry.index, f"entry {entry.index} has another index"
            return proposal.record
        assert isinstance(proposal, bytes), "the core makes empty entries and changes"
        context, number = self._stamp(entry.index)
        made = MembersChange(proposal) if entry.kind is EntryKind.CHANGE else EmptyEntry()
        return encode_entry(made, context, LogPosition(entry.term, commit, number))
