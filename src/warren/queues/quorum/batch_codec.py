"""The commands of one entry in the log of a quorum queue, encoded and decoded.

    commands   │ version u8 │ section …                        nothing at all if there is no command
    section    │ kind u8 │ count u32 │ item …                  each kind once at most, in this order:
    ENQUEUE    │ node u16 │ incarnation u64 │ first number u64 │ count u32
    REACH      │ position u64
    RETURN     │ position u64 │ count u32 │ failed attempts u32 │ all attempts u32 │ ready at u64
    HOLD       │ position u64 │ count u32 │ hold u8              why it is not ready: see `HoldReason`
    SETTLE     │ position u64 │ count u32 │ size u64 │ reason u8
    FORGET     │ node u16 │ incarnation u64
    RETREAT    │ position u64                              the reach goes back to it

All integers are big-endian, and each position has its priority level in the highest byte. The items of
ENQUEUE divide the messages of the entry, in their order; those of SETTLE are in order of position and do not
overlap. The order of the kinds is that in which they are applied: of a position that came back and was then
settled, nothing is left. The time is that of the leader's clock (ms), and 0 if the message was ready at once.

A change of this format has another version. Version 1, which is read, knows no hold but the quarantine; in
versions 1 and 2 the rows of RETURN end before the time. Commands with a RETREAT have version 4, all others 3.
"""

from collections.abc import Iterable
from enum import IntEnum
from struct import Struct as Layout

from msgspec import Struct

from warren.model.value import Value
from warren.store.group_record import PositionRun, message_count_of
from warren.store.packing import copied, put
from warren.store.record import uint16, uint32, uint64

VERSION = 3
# Of commands with a RETREAT.
RETREAT_VERSION = 4

_ENQUEUE, _REACH, _RETURN, _HOLD, _SETTLE, _FORGET, _RETREAT = range(1, 8)
_SECTION = Layout(">BI")
_LAYOUTS = {
    _ENQUEUE: Layout(">HQQI"),
    _REACH: Layout(">Q"),
    _RETURN: Layout(">QIIIQ"),
    _HOLD: Layout(">QIB"),
    _SETTLE: Layout(">QIQB"),
    _FORGET: Layout(">HQ"),
    _RETREAT: Layout(">Q"),
}
_UNTIMED_RETURN = Layout(">QIII")
_LEVEL_SHIFT = 56
_POSITIONS = 0x00FF_FFFF_FFFF_FFFF

# What encoded commands consist of, in bytes: the version and the heads of all sections, and one item.
HEADS_SIZE = 1 + _SECTION.size * len(_LAYOUTS)
ENQUEUE_SIZE = _LAYOUTS[_ENQUEUE].size
REACH_SIZE = _LAYOUTS[_REACH].size
RETURN_SIZE = _LAYOUTS[_RETURN].size
HOLD_SIZE = _LAYOUTS[_HOLD].size
SETTLE_SIZE = _LAYOUTS[_SETTLE].size
FORGET_SIZE = _LAYOUTS[_FORGET].size
# As C values.
_VERSION = VERSION
_SECTION_SIZE = _SECTION.size
_ENQUEUE_SIZE = ENQUEUE_SIZE
_REACH_SIZE = REACH_SIZE
_SETTLE_SIZE = SETTLE_SIZE
# By kind.
_ITEM_SIZES = (0, *(layout.size for layout in _LAYOUTS.values()))
_KINDS_END = len(_ITEM_SIZES)
# A buffer for encoded commands, filled in and copied, if they are not larger.
_COMMANDS = bytearray(1024)


class QuorumFormatError(ValueError):
    """The bytes are not what this version writes.

    They have a checksum around them, so it is more likely that a newer version wrote them than damage.
    """

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(f"byte {at}: {reason}; a newer version of Warren may have written this")


class SettleReason(IntEnum):
    """Why messages left their queue; the numbers are those of the log."""

    ACKNOWLEDGED = 1
    DROPPED = 2
    EXPIRED = 3
    DEAD_LETTERED = 4
    PURGED = 5
    MOVED = 6
    DELETED = 7


class HoldReason(IntEnum):
    """Why a message that is in the queue is not ready; the numbers are those of the log.

    It is in quarantine, or it has died and waits until all targets of its dead letter have confirmed it.
    """

    NONE = 0
    QUARANTINED = 1
    REJECTED = 2
    EXPIRED = 3
    DELIVERY_LIMIT = 4


# Looked up once: an attribute of an enum costs as much as the rest of a run.
_ACKNOWLEDGED = SettleReason.ACKNOWLEDGED
_REASONS = {int(reason): reason for reason in SettleReason}
# By version, the highest hold.
HOLD_MAX = {1: HoldReason.QUARANTINED, 2: max(HoldReason), VERSION: max(HoldReason)}
# The first version in which a message that came back has the time at which it is ready.
TIMED_VERSION = 3


class Enqueuer(Struct, frozen=True, order=True, cache_hash=True):
    """Who numbers the messages that it publishes to a queue: one run of a node."""

    node: int
    incarnation: int


class Enqueue(Value):
    """`count` messages of the entry, numbered by `enqueuer` from `first` on."""

    __slots__ = ("count", "enqueuer", "first")

    def __init__(self, enqueuer: Enqueuer, first: int, count: int) -> None:
        self.enqueuer = enqueuer
        self.first = first
        self.count = count

    def fields(self) -> tuple[object, ...]:
        """Enqueuer, first number and count."""
        return self.enqueuer, self.first, self.count


def new_enqueue(enqueuer: Enqueuer, first: int, count: int) -> Enqueue:
    """Create an Enqueue, without what its constructor costs a compiled caller."""
    enqueue: Enqueue = Enqueue.__new__(Enqueue)
    enqueue.enqueuer = enqueuer
    enqueue.first = first
    enqueue.count = count
    return enqueue


class Reach(Value):
    """No message at or above `position` of `level` was ever handed out."""

    __slots__ = ("level", "position")

    def __init__(self, level: int, position: int) -> None:
        self.level = level
        self.position = position

    def fields(self) -> tuple[object, ...]:
        """Level and position."""
        return self.level, self.position


def new_reach(level: int, position: int) -> Reach:
    """Create a Reach, without what its constructor costs a compiled caller."""
    reach: Reach = Reach.__new__(Reach)
    reach.level = level
    reach.position = position
    return reach


class ReturnedRun(Struct, frozen=True):
    """Messages that came back: failed attempts, and all, of each of them, and when they are ready (ms)."""

    level: int
    first: int
    count: int
    failed: int
    total: int
    ready_at: int = 0


class HeldRun(Struct, frozen=True):
    """Messages that are held from now on, or no longer with `HoldReason.NONE`."""

    level: int
    first: int
    count: int
    hold: HoldReason


class SettledRun(Value):
    """`count` messages that left the queue, `size` bytes in all, from position `first` of `level` on."""

    __slots__ = ("count", "first", "level", "reason", "size")

    def __init__(
        self,
        level: int,
        first: int,
        count: int,
        *,
        size: int = 0,
        reason: SettleReason = SettleReason.ACKNOWLEDGED,
    ) -> None:
        self.level = level
        self.first = first
        self.count = count
        self.size = size
        self.reason = reason

    def fields(self) -> tuple[object, ...]:
        """Level, first position, count, size and reason."""
        return self.level, self.first, self.count, self.size, self.reason


def new_settled_run(level: int, first: int, count: int, size: int) -> SettledRun:
    """Create a run of acknowledged messages, without what the constructor costs a compiled caller."""
    run: SettledRun = SettledRun.__new__(SettledRun)
    run.level = level
    run.first = first
    run.count = count
    run.size = size
    run.reason = _ACKNOWLEDGED
    return run


class QuorumBatch(Value):
    """The payload of one entry: the positions of its messages, and commands."""

    __slots__ = ("enqueued", "forgotten", "held", "reaches", "retreats", "returned", "runs", "settled")

    def __init__(
        self,
        *,
        runs: tuple[PositionRun, ...] = (),
        enqueued: tuple[Enqueue, ...] = (),
        reaches: tuple[Reach, ...] = (),
        returned: tuple[ReturnedRun, ...] = (),
        held: tuple[HeldRun, ...] = (),
        settled: tuple[SettledRun, ...] = (),
        forgotten: tuple[Enqueuer, ...] = (),
        retreats: tuple[Reach, ...] = (),
    ) -> None:
        self.runs = runs
        self.enqueued = enqueued
        self.reaches = reaches
        self.returned = returned
        self.held = held
        self.settled = settled
        self.forgotten = forgotten
        self.retreats = retreats

    def fields(self) -> tuple[object, ...]:
        """All fields, in the order of the constructor."""
        return (
            self.runs, self.enqueued, self.reaches, self.returned, self.held, self.settled, self.forgotten,
            self.retreats,
        )  # fmt: skip


def encode(batch: QuorumBatch) -> bytes:
    """The commands of `batch`; its runs are a part of the entry."""
    assert _divides(batch.enqueued, batch.runs), batch
    assert _is_in_order(batch.settled), batch
    enqueued, reaches, settled = batch.enqueued, batch.reaches, batch.settled
    size, at = _encoded_size(batch), 1
    data = _COMMANDS if size <= len(_COMMANDS) else bytearray(size)
    if enqueued:
        at = _put_section(data, at, _ENQUEUE, len(enqueued))
        for numbers in enqueued:
            enqueuer = numbers.enqueuer
            put(data, at, 2, enqueuer.node)
            put(data, at + 2, 8, enqueuer.incarnation)
            put(data, at + 10, 8, numbers.first)
            put(data, at + 18, 4, numbers.count)
            at += _ENQUEUE_SIZE
    if reaches:
        at = _put_section(data, at, _REACH, len(reaches))
        for reach in reaches:
            level, position = reach.level, reach.position
            put(data, at, 8, level << _LEVEL_SHIFT | position)
            at += _REACH_SIZE
    if batch.returned:
        at = _put_rows(data, at, _RETURN, [_returned_row(run) for run in batch.returned])
    if batch.held:
        at = _put_rows(data, at, _HOLD, [_held_row(run) for run in batch.held])
    if settled:
        at = _put_section(data, at, _SETTLE, len(settled))
        for positions in settled:
            level, position = positions.level, positions.first
            put(data, at, 8, level << _LEVEL_SHIFT | position)
            put(data, at + 8, 4, positions.count)
            put(data, at + 12, 8, positions.size)
            data[at + 20] = positions.reason
            at += _SETTLE_SIZE
    if batch.forgotten:
        at = _put_rows(data, at, _FORGET, [(each.node, each.incarnation) for each in batch.forgotten])
    data[0] = _VERSION
    if batch.retreats:
        at = _put_rows(data, at, _RETREAT, [_retreat_row(each) for each in batch.retreats])
        data[0] = RETREAT_VERSION
    if at == 1:
        return b""
    return copied(data, size)


def _encoded_size(batch: QuorumBatch) -> int:
    """The number of bytes that the commands of `batch` take; 1 for none."""
    return (
        1
        + _section_size(batch.enqueued, _ENQUEUE_SIZE)
        + _section_size(batch.reaches, _REACH_SIZE)
        + _section_size(batch.returned, RETURN_SIZE)
        + _section_size(batch.held, HOLD_SIZE)
        + _section_size(batch.settled, _SETTLE_SIZE)
        + _section_size(batch.forgotten, FORGET_SIZE)
        + _section_size(batch.retreats, _REACH_SIZE)
    )


def _section_size(items: tuple[object, ...], item_size: int) -> int:
    return _SECTION_SIZE + len(items) * item_size if items else 0


def _put_section(data: bytearray, at: int, kind: int, count: int) -> int:
    """Write the head of a section of `count` items; returns where the items begin."""
    data[at] = kind
    put(data, at + 1, 4, count)
    return at + _SECTION_SIZE


def _put_rows(data: bytearray, at: int, kind: int, rows: list[tuple[int, ...]]) -> int:
    """Write a section of `rows`; returns where it ends."""
    layout = _LAYOUTS[kind]
    at = _put_section(data, at, kind, len(rows))
    for row in rows:
        layout.pack_into(data, at, *row)
        at += layout.size
    return at


def _returned_row(run: ReturnedRun) -> tuple[int, ...]:
    return run.level << _LEVEL_SHIFT | run.first, run.count, run.failed, run.total, run.ready_at


def _retreat_row(retreat: Reach) -> tuple[int, ...]:
    return (retreat.level << _LEVEL_SHIFT | retreat.position,)


def _held_row(run: HeldRun) -> tuple[int, ...]:
    return run.level << _LEVEL_SHIFT | run.first, run.count, run.hold


def decode(commands: bytes, runs: tuple[PositionRun, ...]) -> QuorumBatch:
    """The payload of an entry with `commands` and messages at `runs`; QuorumFormatError if invalid."""
    batch = QuorumBatch(runs=runs)
    if commands:
        _take_sections(batch, commands)
    if not _divides(batch.enqueued, runs):
        raise QuorumFormatError(1, f"{message_count_of(runs)} messages, and numbers for another count")
    return batch


def _take_sections(batch: QuorumBatch, commands: bytes) -> None:
    """Set what `batch` has of each kind of command."""
    data = commands
    end = len(commands)
    version = data[0]
    hold_max = HOLD_MAX.get(VERSION if version == RETREAT_VERSION else version)
    if hold_max is None:
        raise QuorumFormatError(0, f"commands of version {version}, where 1 to {RETREAT_VERSION} are known")
    at, before = 1, 0
    while at < end:
        if end - at < _SECTION_SIZE:
            raise QuorumFormatError(at, "the commands end within a section")
        kind, count = data[at], uint32(data, at + 1)
        size = _item_size(kind, version)
        if not size:
            raise QuorumFormatError(at, f"unknown kind of command {kind}")
        if kind <= before or not count:
            raise QuorumFormatError(at, f"{count} commands of kind {kind} after those of kind {before}")
        first = at + _SECTION_SIZE
        at, before = first + count * size, kind
        if at > end:
            raise QuorumFormatError(first, f"{count} commands of kind {kind} do not fit into the entry")
        # Most entries have these three and no other.
        if kind == _ENQUEUE:
            batch.enqueued = _enqueued(commands, first, count)
        elif kind == _REACH:
            batch.reaches = _reaches(commands, first, count)
        elif kind == _SETTLE:
            batch.settled = _settled(commands, first, count)
        else:
            layout = _UNTIMED_RETURN if size == _UNTIMED_RETURN.size else _LAYOUTS[kind]
            rows = list(layout.iter_unpack(commands[first:at]))
            _check(kind, rows, first, size, hold_max=hold_max)
            _take(batch, kind, rows)
    if not before:
        raise QuorumFormatError(1, "no command")
    if version == RETREAT_VERSION and before != _RETREAT:
        raise QuorumFormatError(0, f"commands of version {version} without a retreat")


def _item_size(kind: int, version: int) -> int:
    """The bytes of an item of `kind` in commands of `version`; 0 for a kind that is not known there."""
    if kind >= _KINDS_END or (kind == _RETREAT and version < RETREAT_VERSION):
        return 0
    if kind == _RETURN and version < TIMED_VERSION:
        return _UNTIMED_RETURN.size
    size: int = _ITEM_SIZES[kind]
    return size


def _enqueued(data: bytes, at: int, count: int) -> tuple[Enqueue, ...]:
    found: list[Enqueue] = []
    for _ in range(count):
        messages = uint32(data, at + 18)
        if not messages:
            raise QuorumFormatError(at, "an empty run of numbers")
        enqueuer = Enqueuer(uint16(data, at), uint64(data, at + 2))
        found.append(new_enqueue(enqueuer, uint64(data, at + 10), messages))
        at += _ENQUEUE_SIZE
    return tuple(found)


def _reaches(data: bytes, at: int, count: int) -> tuple[Reach, ...]:
    found: list[Reach] = []
    for _ in range(count):
        key = uint64(data, at)
        found.append(new_reach(key >> _LEVEL_SHIFT, key & _POSITIONS))
        at += _REACH_SIZE
    return tuple(found)


def _settled(data: bytes, at: int, count: int) -> tuple[SettledRun, ...]:
    found: list[SettledRun] = []
    behind = 0
    for _ in range(count):
        key, messages = uint64(data, at), uint32(data, at + 8)
        position = key & _POSITIONS
        if not messages or position + messages > _POSITIONS:
            raise QuorumFormatError(at, f"{messages} positions from {key:#x} on")
        reason = _REASONS.get(data[at + 20])
        if reason is None:
            raise QuorumFormatError(at, f"unknown reason {data[at + 20]} for settling")
        if key < behind:
            raise QuorumFormatError(at, f"position {key:#x} is settled behind {behind:#x}")
        behind = key + messages
        run = new_settled_run(key >> _LEVEL_SHIFT, position, messages, uint64(data, at + 12))
        run.reason = reason
        found.append(run)
        at += _SETTLE_SIZE
    return tuple(found)


def _take(batch: QuorumBatch, kind: int, rows: list[tuple[int, ...]]) -> None:
    """Set what `batch` has of one of the other kinds: its fields are `rows`."""
    if kind == _RETURN:
        batch.returned = tuple([ReturnedRun(*_place(key), *rest) for key, *rest in rows])
    elif kind == _HOLD:
        batch.held = tuple([HeldRun(*_place(row[0]), row[1], HoldReason(row[2])) for row in rows])
    elif kind == _FORGET:
        batch.forgotten = tuple([Enqueuer(row[0], row[1]) for row in rows])
    else:
        assert kind == _RETREAT, kind
        batch.retreats = tuple([Reach(*_place(row[0])) for row in rows])


def _check(kind: int, rows: list[tuple[int, ...]], at: int, size: int, *, hold_max: int) -> None:
    """QuorumFormatError if one of `rows`, each of `size` from byte `at` on, is not what `kind` allows."""
    for index, row in enumerate(rows):
        reason = ""
        if kind in (_RETURN, _HOLD):
            key, count = row[:2]
            if not count or (key & _POSITIONS) + count > _POSITIONS:
                reason = f"{count} positions from {key:#x} on"
            elif kind == _HOLD and row[2] > hold_max:
                reason = f"unknown hold {row[2]}"
        if reason:
            raise QuorumFormatError(at + index * size, reason)


def _divides(enqueued: Iterable[Enqueue], runs: tuple[PositionRun, ...]) -> bool:
    """True if as many messages are enqueued as there are positions."""
    count = 0
    for each in enqueued:
        count += each.count
    return count == message_count_of(runs)


def _is_in_order(settled: Iterable[SettledRun]) -> bool:
    """True if the runs are in order of position and do not overlap."""
    behind = 0
    for run in settled:
        first = run.level << _LEVEL_SHIFT | run.first
        if first < behind:
            return False
        behind = first + run.count
    return True


def _place(key: int) -> tuple[int, int]:
    """The level and the position that `key` contains."""
    return key >> _LEVEL_SHIFT, key & _POSITIONS
