"""The records of a Raft group in the log of a store: what they contain, encoded and decoded.

    STATE    group u32 │ replica u32 │ since u32 │ term u64 │ vote u32 │ commit u64 │ index u64
             │ term of index u64 │ reason size u16 │ level count u16 │ offset count u32
             │ configuration size u32 │ machine size u32 │ entry count u32
             │ reason │ ends: position u64 … │ offsets: ( position u64 │ offset u64 ) …
             │ configuration │ machine │ entries: ( size u32 │ body of an ENTRY ) …

ENTRY, HARD and CUT are drawn in `record`. All integers are big-endian, and each position has its priority
level in the highest byte. `ends` are the positions behind the last message of each level as of `index`;
`since` is the number of the segment before which nothing concerns this replica; and `reason` says why the
replica is not trusted, and is empty if it is.

What others store here begins with the version of its format, or is empty: configuration, machine, and the
commands of an entry that is not a change of the configuration.
"""

from collections.abc import Iterator
from struct import Struct as Layout

from msgspec import Struct

from warren.model.value import Value
from warren.store.packing import copied, put
from warren.store.record import ENTRY, STATE

_ENTRY = Layout(">IQQQBH")
_RUN = Layout(">QI")
_HARD = Layout(">IIQIQ")
_CUT = Layout(">IQ")
_OFFSET = Layout(">QQ")
_END = Layout(">Q")
_STATE = Layout(">IIIQIQQQHHIIII")
_SIZE = Layout(">I")
_GROUP = Layout(">I")
# The kind of an entry whose commands are those of the queue.
_NORMAL = 0
_LEVEL_SHIFT = 56
_POSITIONS = 0x00FF_FFFF_FFFF_FFFF
_ENTRY_SIZE = _ENTRY.size
_RUN_SIZE = _RUN.size
# A buffer for the part of an ENTRY before its commands, filled in and copied, if that is not larger.
_HEAD = bytearray(_ENTRY_SIZE + 16 * _RUN_SIZE)


class PositionRun(Value):
    """`count` messages of one priority level, from position `first` on."""

    __slots__ = ("count", "first", "level")

    def __init__(self, level: int, first: int, count: int) -> None:
        self.level = level
        self.first = first
        self.count = count

    def fields(self) -> tuple[object, ...]:
        """Level, first position and count."""
        return self.level, self.first, self.count


def new_position_run(level: int, first: int, count: int) -> PositionRun:
    """Create a PositionRun, without what its constructor costs a compiled caller."""
    run: PositionRun = PositionRun.__new__(PositionRun)
    run.level = level
    run.first = first
    run.count = count
    return run


class GroupEntry(Value):
    """One entry of the Raft log of a group: the positions of its messages, and commands."""

    __slots__ = ("commands", "commit", "index", "kind", "runs", "term")

    def __init__(
        self,
        index: int,
        term: int,
        commit: int = 0,
        kind: int = 0,
        *,
        runs: tuple[PositionRun, ...] = (),
        commands: bytes = b"",
    ) -> None:
        self.index = index
        self.term = term
        # The highest index known as committed when the entry was appended.
        self.commit = commit
        # What it is for: a number of one byte, that of the Raft core.
        self.kind = kind
        self.runs = runs
        self.commands = commands

    def fields(self) -> tuple[object, ...]:
        """All fields, in the order of the constructor."""
        return self.index, self.term, self.commit, self.kind, self.runs, self.commands

    @property
    def size(self) -> int:
        """Its size in bytes, without messages."""
        return entry_size(self.runs, self.commands)


def new_group_entry(index: int, term: int, commit: int, kind: int) -> GroupEntry:
    """Create an entry without messages and commands, and without what its constructor costs."""
    entry: GroupEntry = GroupEntry.__new__(GroupEntry)
    entry.index = index
    entry.term = term
    entry.commit = commit
    entry.kind = kind
    entry.runs = ()
    entry.commands = b""
    return entry


class GroupHardState(Struct, frozen=True):
    """What a replica must not forget between two elections; a vote of 0 is none."""

    term: int = 0
    vote: int = 0
    # The highest index known as committed. It is written with the term, and with each entry.
    commit: int = 0


class GroupSnapshot(Struct, frozen=True, kw_only=True):
    """The state of a group as of `index`, without its messages, which are in the store."""

    index: int = 0
    term: int = 0
    configuration: bytes = b""
    machine: bytes = b""


class PositionOffset(Struct, frozen=True):
    """From position `first` of `level` on, messages are kept at their position + `offset`."""

    level: int
    first: int
    offset: int


class GroupRecord(Struct, frozen=True, kw_only=True):
    """The content of a STATE."""

    group: int
    replica: int
    since: int
    reason: str
    hard: GroupHardState
    snapshot: GroupSnapshot
    # Priority level -> position behind the last message, as of the snapshot.
    ends: dict[int, int]
    offsets: list[PositionOffset]
    entries: list[GroupEntry]


class PayloadVersions(Struct, frozen=True, kw_only=True):
    """The newest versions of what others store in the records of a group."""

    configuration: int
    machine: int
    commands: int


def message_count_of(runs: tuple[PositionRun, ...]) -> int:
    """The number of messages at the positions of `runs`."""
    count = 0
    for run in runs:
        count += run.count
    return count


def entry_size(runs: tuple[PositionRun, ...], commands: bytes) -> int:
    """The size in bytes of an entry with `runs` and `commands`, without messages."""
    return _ENTRY_SIZE + _RUN_SIZE * len(runs) + len(commands)


def group_of(body: bytes) -> int:
    """The number of the group of an ENTRY, HARD, STATE or CUT."""
    number: int = _GROUP.unpack_from(body)[0]
    return number


def encode_entry(group: int, entry: GroupEntry) -> bytes:
    """The body of an ENTRY."""
    runs = entry.runs
    at = _ENTRY_SIZE
    size = at + _RUN_SIZE * len(runs)
    head = _HEAD if size <= len(_HEAD) else bytearray(size)
    put(head, 0, 4, group)
    put(head, 4, 8, entry.index)
    put(head, 12, 8, entry.term)
    put(head, 20, 8, entry.commit)
    head[28] = entry.kind
    put(head, 29, 2, len(runs))
    for run in runs:
        level, first = run.level, run.first
        put(head, at, 8, level << _LEVEL_SHIFT | first)
        put(head, at + 8, 4, run.count)
        at += _RUN_SIZE
    return copied(head, size) + entry.commands


def decode_entry(body: bytes) -> GroupEntry:
    """The entry in the body of an ENTRY."""
    _, index, term, commit, kind, count = _ENTRY.unpack_from(body)
    behind = _ENTRY.size + count * _RUN.size
    runs = tuple(
        PositionRun(key >> _LEVEL_SHIFT, key & _POSITIONS, length)
        for key, length in _RUN.iter_unpack(body[_ENTRY.size : behind])
    )
    return GroupEntry(index, term, commit, kind, runs=runs, commands=body[behind:])


def encode_hard(group: int, replica: int, hard: GroupHardState) -> bytes:
    """The body of a HARD."""
    return _HARD.pack(group, replica, hard.term, hard.vote, hard.commit)


def decode_hard(body: bytes) -> tuple[int, GroupHardState]:
    """The number of the replica, and its hard state."""
    _, replica, term, vote, commit = _HARD.unpack(body)
    return replica, GroupHardState(term, vote, commit)


def encode_cut(group: int, index: int, offsets: list[PositionOffset]) -> bytes:
    """The body of a CUT of the entries from `index` on."""
    return _CUT.pack(group, index) + _encode_offsets(offsets)


def decode_cut(body: bytes) -> tuple[int, list[PositionOffset]]:
    """The first index that is void, and where messages are kept from now on."""
    _, index = _CUT.unpack_from(body)
    return index, _decode_offsets(body[_CUT.size :])


def encode_state(record: GroupRecord) -> bytes:
    """The body of a STATE."""
    hard, snapshot = record.hard, record.snapshot
    reason = record.reason.encode()
    entries = [encode_entry(record.group, entry) for entry in record.entries]
    head = _STATE.pack(
        record.group, record.replica, record.since, hard.term, hard.vote, hard.commit, snapshot.index,
        snapshot.term, len(reason), len(record.ends), len(record.offsets), len(snapshot.configuration),
        len(snapshot.machine), len(entries),
    )  # fmt: skip
    ends = [_END.pack(level << _LEVEL_SHIFT | end) for level, end in sorted(record.ends.items())]
    parts = [head, reason, *ends, _encode_offsets(record.offsets), snapshot.configuration, snapshot.machine]
    for entry in entries:
        parts += (_SIZE.pack(len(entry)), entry)
    return b"".join(parts)


def decode_state(body: bytes) -> GroupRecord:
    """The content of the body of a STATE."""
    (
        group, replica, since, term, vote, commit, index, index_term, reason_size, end_count, offset_count,
        configuration_size, machine_size, entry_count,
    ) = _STATE.unpack_from(body)  # fmt: skip
    at = _STATE.size
    sizes = (
        reason_size, end_count * _END.size, offset_count * _OFFSET.size, configuration_size, machine_size,
    )  # fmt: skip
    parts = []
    for size in sizes:
        parts.append(body[at : at + size])
        at += size
    reason, ends, offsets, configuration, machine = parts
    entries = []
    for _ in range(entry_count):
        size = _SIZE.unpack_from(body, at)[0]
        at += _SIZE.size
        entries.append(decode_entry(body[at : at + size]))
        at += size
    return GroupRecord(
        group=group,
        replica=replica,
        since=since,
        reason=reason.decode(errors="replace"),
        hard=GroupHardState(term, vote, commit),
        snapshot=GroupSnapshot(index=index, term=index_term, configuration=configuration, machine=machine),
        ends={key >> _LEVEL_SHIFT: key & _POSITIONS for (key,) in _END.iter_unpack(ends)},
        offsets=_decode_offsets(offsets),
        entries=entries,
    )


def newer_payload(kind: int, body: bytes, newest: PayloadVersions) -> tuple[int, str] | None:
    """Find a version above `newest` in the body of an ENTRY or a STATE.

    Returns where it is in the body, and what it is; None if there is none.
    """
    for at, name, version_max in _payloads(kind, body, newest):
        if body[at] > version_max:
            return at, f"format {body[at]} of the {name} is newer than {version_max}"
    return None


def _payloads(kind: int, body: bytes, newest: PayloadVersions) -> Iterator[tuple[int, str, int]]:
    """Where each payload begins that is not empty, what it is, and its newest version."""
    if kind == ENTRY:
        yield from _commands(body, 0, len(body), newest)
    elif kind == STATE:
        *_, reason_size, end_count, offset_count, configuration_size, machine_size, count = (
            _STATE.unpack_from(body)
        )
        at = _STATE.size + reason_size + end_count * _END.size + offset_count * _OFFSET.size
        if configuration_size:
            yield at, "configuration", newest.configuration
        at += configuration_size
        if machine_size:
            yield at, "machine", newest.machine
        at += machine_size
        for _ in range(count):
            size = _SIZE.unpack_from(body, at)[0]
            at += _SIZE.size
            yield from _commands(body, at, at + size, newest)
            at += size


def _commands(body: bytes, at: int, end: int, newest: PayloadVersions) -> Iterator[tuple[int, str, int]]:
    """Where the commands begin in the body of an ENTRY from `at` up to `end`."""
    *_, kind, count = _ENTRY.unpack_from(body, at)
    begin = at + _ENTRY.size + count * _RUN.size
    if kind == _NORMAL and begin < end:
        yield begin, "commands", newest.commands


def _encode_offsets(offsets: list[PositionOffset]) -> bytes:
    return b"".join(_OFFSET.pack(each.level << _LEVEL_SHIFT | each.first, each.offset) for each in offsets)


def _decode_offsets(data: bytes) -> list[PositionOffset]:
    return [
        PositionOffset(key >> _LEVEL_SHIFT, key & _POSITIONS, offset)
        for key, offset in _OFFSET.iter_unpack(data)
    ]
