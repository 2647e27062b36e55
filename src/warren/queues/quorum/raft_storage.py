"""The log of a group in the store of its virtual host, as the Raft core reads it and the driver writes it.

A configuration is stored in a snapshot as follows, version 1; all integers are big-endian, and the record
around it has a checksum:

    version u8 │ is left by itself u8 │ voters u16 │ outgoing u16 │ learners u16 │ learners next u16
    │ replicas of these four, in this order: replica u32 …
"""

from collections.abc import Sequence
from struct import Struct as Layout

from msgspec import Struct

from warren.limits_raft import CHANGE_MEMBERS_MAX
from warren.model.first_items import drop_first
from warren.model.value import Value
from warren.queues.quorum.batch_codec import VERSION
from warren.queues.quorum.replica_messages import ReplicaMessages
from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_log import entry_bytes
from warren.replication.raft.raft_messages import Entry, EntryKind, HardState, Snapshot
from warren.replication.raft.ready import Ready
from warren.store.group_log import GroupLog
from warren.store.group_record import (
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
PAYLOAD_VERSIONS = PayloadVersions(configuration=_VERSION, machine=VERSION, commands=VERSION)
_HEAD = Layout(">BBHHHH")
_REPLICA = Layout(">I")


class QuorumPayload(Value):
    """What an entry of a quorum queue has: the positions of its messages, and encoded commands."""

    __slots__ = ("commands", "runs")

    def __init__(self, runs: tuple[PositionRun, ...], commands: bytes) -> None:
        self.runs = runs
        self.commands = commands

    def fields(self) -> tuple[object, ...]:
        """Runs and commands."""
        return self.runs, self.commands

    @property
    def size(self) -> int:
        """What the entry takes in the log, in bytes: for `GroupLog.has_space`."""
        return entry_size(self.runs, self.commands)


def new_quorum_payload(runs: tuple[PositionRun, ...], commands: bytes) -> QuorumPayload:
    """Create a QuorumPayload, without what its constructor costs a compiled caller."""
    payload: QuorumPayload = QuorumPayload.__new__(QuorumPayload)
    payload.runs = runs
    payload.commands = commands
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
        # The entries that were written since the start, in order, as they were proposed: with the same sizes.
        self._written: list[Entry] = []

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
        return self._log.first

    def last_index(self) -> int:
        """The index of the last entry, or of the snapshot if there is none."""
        return self._log.last

    def term(self, index: int) -> int | None:
        """The term of entry `index`, or of the one before the first; None if it is neither."""
        if not self._log.first - 1 <= index <= self._log.last:
            return None
        return self._log.term(index)

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
        """The snapshot of the log, behind which it has all entries; None before the first one."""
        if self._log.first > self._log.snapshot.index + 1:
            self._log.shorten()
        snapshot = self._log.snapshot
        if not snapshot.index:
            return None
        configuration = decode_configuration(snapshot.configuration)
        payload = QuorumSnapshot(snapshot.machine, self._log.snapshot_ends)
        return Snapshot(snapshot.index, snapshot.term, configuration, payload)

    # --- what the driver writes -------------------------------------------------------------------

    def write(self, ready: Ready) -> int:
        """Write the hard state, the snapshot and the entries of `ready`; returns the ticket of the log.

        ValueError if the messages of an entry are not those that were placed.
        """
        log, hard = self._log, ready.hard_state
        if hard is not None and (hard.term, hard.vote) != (log.hard.term, log.hard.vote):
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
            log.cut(first)
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
            else:
                assert isinstance(entry.payload, bytes), f"the payload of {entry} is one of another queue"
                stored.commands = entry.payload
            log.append(stored)
            written.append(entry)
        return log.ticket

    def _replace(self, snapshot: Snapshot) -> None:
        """Write `snapshot` instead of everything."""
        payload, messages = snapshot.payload, self._messages
        assert isinstance(payload, QuorumSnapshot), f"snapshot {snapshot.index} is one of another queue"
        assert messages is not None
        self._written.clear()
        messages.replace(
            GroupSnapshot(
                index=snapshot.index, term=snapshot.term,
                configuration=encode_configuration(snapshot.configuration), machine=payload.machine,
            ),
            payload.ends,
        )  # fmt: skip

    def _entry(self, index: int) -> Entry:
        """Entry `index`, as it was proposed or as the log has it."""
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
