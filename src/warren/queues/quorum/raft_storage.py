"""The log of a group in the store of its virtual host, as the Raft core reads it and the driver writes it.

A configuration is stored in a snapshot as follows, version 1; all integers are big-endian, and the record
around it has a checksum:

    version u8 │ is left by itself u8 │ voters u16 │ outgoing u16 │ learners u16 │ learners next u16
    │ replicas of these four, in this order: replica u32 …
"""

from collections.abc import Callable, Sequence
from struct import Struct as Layout

from msgspec import Struct

from warren.limits_raft import CHANGE_MEMBERS_MAX
from warren.model.first_items import drop_first
from warren.model.message import StoredMessage
from warren.model.value import Value
from warren.queues.quorum.batch_codec import RETREAT_VERSION, VERSION, QuorumBatch, decode
from warren.queues.quorum.recent_entries import RecentEntries
from warren.queues.quorum.replica_messages import ReplicaMessages
from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_log import entry_bytes
from warren.replication.raft.raft_messages import Entry, EntryKind, HardState, Snapshot
from warren.replication.raft.ready import Ready
from warren.store.group_log import GroupLog
from warren.store.group_record import (
    GroupEntry,
    GroupSnapshot,
    PayloadVersions,
    PositionRun,
    entry_size,
    new_group_entry,
)

# The configuration of a queue with one replica.
ALONE = Configuration(voters=(1,))
_VERSION = 1
# The versions of all that a quorum queue stores in the records of its group.
PAYLOAD_VERSIONS = PayloadVersions(configuration=_VERSION, machine=VERSION, commands=RETREAT_VERSION)
_HEAD = Layout(">BBHHHH")
_REPLICA = Layout(">I")


class QuorumPayload(Value):
    """What an entry of a quorum queue has: the positions of its messages, and encoded commands."""

    __slots__ = ("batch", "commands", "is_placed", "messages", "runs", "sizes")

    def __init__(
        self,
        runs: tuple[PositionRun, ...],
        commands: bytes,
        messages: Sequence[StoredMessage | None] | None = None,
    ) -> None:
        """`messages` are those of an entry of another replica; None is one that is settled."""
        self.runs = runs
        self.commands = commands
        # Until the entry is in the log of this replica; and True if they were placed there before.
        self.messages = messages
        self.is_placed = messages is None
        # The size of the bodies of the messages by run; None if the entry was read from the disk.
        self.sizes: tuple[int, ...] | None = None
        # What the commands are, from when they were checked until they are applied.
        self.batch: QuorumBatch | None = None

    def fields(self) -> tuple[object, ...]:
        """Runs and commands."""
        return self.runs, self.commands

    @property
    def size(self) -> int:
        """What the entry takes in the log, in bytes: for `GroupLog.has_space`."""
        return entry_size(self.runs, self.commands)

    def take_batch(self) -> QuorumBatch:
        """What the commands are. QuorumFormatError if they are not valid."""
        batch, self.batch = self.batch, None
        return decode(self.commands, self.runs) if batch is None else batch


def new_quorum_payload(runs: tuple[PositionRun, ...], commands: bytes) -> QuorumPayload:
    """Create a QuorumPayload, without what its constructor costs a compiled caller."""
    payload: QuorumPayload = QuorumPayload.__new__(QuorumPayload)
    payload.runs = runs
    payload.commands = commands
    payload.messages = None
    payload.is_placed = True
    payload.sizes = None
    payload.batch = None
    return payload


class QuorumSnapshot(Struct, frozen=True):
    """What a snapshot of a quorum queue has; its messages are sent and received one by one, before it."""

    # The machine, encoded; nothing at all before the first entry.
    machine: bytes = b""
    # Priority level -> the position behind the last message.
    ends: dict[int, int] = {}


class GroupStorage:
    """The port `RaftStorage`, and the `DriverLog` of a replica whose log is a `GroupLog`.

    An entry of kind NORMAL has a `QuorumPayload`, or b"" if it is the first of a leader. Its messages were
    placed in the log before it is written, in its order. Tickets are those of the log, whose listener tells
    the driver what is synced. A snapshot has a `QuorumSnapshot`; its messages were received before it is
    written.
    """

    def __init__(self, log: GroupLog, messages: ReplicaMessages | None = None) -> None:
        """`messages` are those of the replica; without them nothing but entries can be written."""
        self._log = log
        self._messages = messages
        # Makes a snapshot of what is applied now.
        self.make_snapshot: Callable[[], Snapshot | None] | None = None
        # The entries that were written since the start, in order, as they were proposed: with the same sizes.
        self._written: list[Entry] = []
        # Those that a snapshot has replaced, and that other members may lack.
        self._recent = RecentEntries()

    # --- what the core reads ----------------------------------------------------------------------

    def initial(self) -> tuple[HardState, Configuration]:
        """The hard state, and the configuration of the snapshot, behind which nothing is applied.

        The commit index is at most the last index: the first entries of a torn write can tell of a later one.
        """
        log, hard = self._log, self._log.hard
        configuration = decode_configuration(log.snapshot.configuration)
        return HardState(hard.term, hard.vote, min(hard.commit, log.last)), configuration

    def first_index(self) -> int:
        """The index of the first entry that can be read, whether or not there is any."""
        return self._recent.first if self._recent else self._log.first

    def last_index(self) -> int:
        """The index of the last entry, or of the snapshot if there is none."""
        return self._log.last

    def term(self, index: int) -> int | None:
        """The term of entry `index`, or of the one before the first; None if it is neither."""
        if not self.first_index() - 1 <= index <= self._log.last:
            return None
        return self._recent.term(index) if index < self._log.first - 1 else self._log.term(index)

    def entries(self, first: int, last: int, bytes_max: int) -> list[Entry]:
        """The entries from `first` to `last`, as many as `bytes_max` allows, but one at least."""
        found: list[Entry] = []
        size = 0
        for index in range(first, last + 1):
            entry = self._entry(index)
            size += entry_bytes(entry)
            if found and size > bytes_max:
                break
            found.append(entry)
        return found

    def snapshot(self) -> Snapshot | None:
        """The state as of the last applied entry, behind which the log has all; None before the first.

        Of a log without a machine, the snapshot in it.
        """
        if self.make_snapshot is not None:
            return self.make_snapshot()
        snapshot = self._log.snapshot
        if not snapshot.index:
            return None
        configuration = decode_configuration(snapshot.configuration)
        payload = QuorumSnapshot(snapshot.machine, self._log.snapshot_ends)
        return Snapshot(snapshot.index, snapshot.term, configuration, payload)

    def messages(self, index: int) -> list[StoredMessage | None]:
        """The messages of entry `index`, in order; None for each one that is settled or unreadable.

        Not of one that is proposed and not written, whose payload has them.
        """
        if self._recent.has(index):
            return self._recent.messages(index, self._log.reader())
        return self._log.messages(index)

    def contents(self, entry: Entry) -> Sequence[StoredMessage | int] | None:
        """The messages of `entry`, in order: themselves or where they are; 0 for a settled one.

        None if `entry` is not there any more.
        """
        index = entry.index
        if index < self.first_index() or self.term(index) != entry.term:
            return None
        return self._recent.locations(index) if self._recent.has(index) else self._log.contents(index)

    # --- what the group says ----------------------------------------------------------------------

    def retain(self, first: int, last: int) -> None:
        """Keep the entries from `first` to `last`, which a snapshot is about to replace, as far as possible.

        Members that are there may lack entries from `first` on.
        """
        recent, log = self._recent, self._log
        recent.drop(first - 1)
        for index in range(max(first, log.first), last + 1):
            recent.add(self._entry(index), log.entry_runs(index), log.term(index - 1))

    def drop_recent(self, index: int) -> None:
        """Keep no replaced entries up to `index`, since no member lacks them."""
        self._recent.drop(index)

    @property
    def has_recent(self) -> bool:
        """True while replaced entries are kept."""
        return bool(self._recent)

    # --- what the driver writes -------------------------------------------------------------------

    def write(self, ready: Ready) -> int:
        """Write the hard state, the snapshot and the entries of `ready`; returns the ticket of the log.

        ValueError if the messages of an entry are not those that were placed.
        """
        log, hard = self._log, ready.hard_state
        if hard is not None:
            promised = log.hard
            if hard.term != promised.term or hard.vote != promised.vote:
                log.promise(hard.term, hard.vote)
        if ready.snapshot is not None:
            self._replace(ready.snapshot)
        if ready.entries:
            self.append(ready.entries, ready.commit)
        return log.ticket

    def append(self, entries: Sequence[Entry], commit: int) -> int:
        """Write `entries`, and with them that everything up to `commit` is committed; as `write` does."""
        log, written = self._log, self._written
        begin = entries[0]
        first = begin.index
        if log.has_entry(first):
            self._cut(first)
        while written:
            known = written[-1]
            if known.index < first:
                break
            written.pop()
        # The first of them may be in a snapshot by now, or forgotten.
        count = 0
        for known in written:
            if log.has_entry(known.index):
                break
            count += 1
        drop_first(written, count)
        for entry in entries:
            stored = new_group_entry(entry.index, entry.term, commit, entry.kind)
            if isinstance(entry.payload, QuorumPayload):
                payload: QuorumPayload = entry.payload
                stored.runs, stored.commands = payload.runs, payload.commands
                if payload.is_placed:
                    payload.messages = None
                    log.append(stored)
                else:
                    self._append_received(stored, payload)
            else:
                assert isinstance(entry.payload, bytes), f"the payload of {entry} is one of another queue"
                stored.commands = entry.payload
                log.append(stored)
            written.append(entry)
        return log.ticket

    def _append_received(self, stored: GroupEntry, payload: QuorumPayload) -> None:
        """Append an entry of another replica with its messages, which belong to the log from now on."""
        messages, payload.messages = payload.messages, None
        assert messages is not None, f"entry {stored.index} comes without its messages"
        self._log.append(stored, messages)
        if self._messages is not None:
            payload.sizes = self._messages.arrive(messages, stored.runs)

    def _cut(self, first: int) -> None:
        """Make the entries from `first` on void."""
        log, written = self._log, self._written
        if self._messages is not None:
            for index in range(first, written[0].index if written else log.last + 1):
                self._messages.uncount(index)
        log.cut(first)

    def _replace(self, snapshot: Snapshot) -> None:
        """Write `snapshot` instead of everything."""
        payload, messages = snapshot.payload, self._messages
        assert isinstance(payload, QuorumSnapshot), f"snapshot {snapshot.index} is one of another queue"
        assert messages is not None
        self._written.clear()
        self._recent = RecentEntries()
        messages.replace(
            GroupSnapshot(
                index=snapshot.index, term=snapshot.term,
                configuration=encode_configuration(snapshot.configuration), machine=payload.machine,
            ),
            payload.ends,
        )  # fmt: skip

    def _entry(self, index: int) -> Entry:
        """Entry `index`, as it was proposed or as the log has it."""
        if self._recent.has(index):
            return self._recent.entry(index)
        written = self._written
        if written and index >= written[0].index:
            return written[index - written[0].index]
        return _read(self._log, index)


def encode_configuration(configuration: Configuration) -> bytes:
    """The bytes of a configuration in a snapshot."""
    groups = (
        configuration.voters, configuration.outgoing, configuration.learners, configuration.learners_next,
    )  # fmt: skip
    assert all(len(group) <= CHANGE_MEMBERS_MAX for group in groups), f"too many members: {configuration}"
    head = _HEAD.pack(_VERSION, configuration.auto_leave, *map(len, groups))
    return head + b"".join(_REPLICA.pack(replica) for group in groups for replica in group)


def decode_configuration(data: bytes) -> Configuration:
    """The configuration in `data`; ValueError if it is of another version, or incomplete."""
    if len(data) < _HEAD.size:
        raise ValueError(f"a configuration has at least {_HEAD.size} bytes, not {len(data)}")
    version, auto_leave, *counts = _HEAD.unpack_from(data)
    if version != _VERSION or len(data) != _HEAD.size + sum(counts) * _REPLICA.size:
        raise ValueError(f"a configuration is not of version {_VERSION}: {data[:64].hex()}")
    groups: list[tuple[int, ...]] = []
    at = _HEAD.size
    for count in counts:
        end = at + count * _REPLICA.size
        groups.append(tuple(replica for (replica,) in _REPLICA.iter_unpack(data[at:end])))
        at = end
    voters, outgoing, learners, learners_next = groups
    return Configuration(voters, outgoing, learners, learners_next, bool(auto_leave))


def _read(log: GroupLog, index: int) -> Entry:
    """Entry `index` as the log has it."""
    [found] = log.entries(index, index, 0)
    kind = EntryKind(found.kind)
    if kind is EntryKind.NORMAL and (found.runs or found.commands):
        payload = QuorumPayload(found.runs, found.commands)
        return Entry(found.term, index, kind, payload, size=payload.size)
    return Entry(found.term, index, kind, found.commands, size=len(found.commands))


# The bytes of the configuration of a replica that has to hear of the members of its group.
NO_MEMBERS = encode_configuration(Configuration())
