"""The replicated state of a quorum queue, beside its messages, which are in the store.

    machine │ version u8 │ reach count u16 │ enqueuer count u32 │ range count u32
            │ reach: position u64 …
            │ enqueuers: node u16 │ incarnation u64 │ last number u64 …
            │ returned: position u64 │ count u32 │ failed attempts u32 │ all u32 │ hold u8 │ ready at u64 …

All integers are big-endian, and each position has its priority level in the highest byte. Every part is in
order, so that equal states are equal bytes. The record around it has a checksum. A change of this format has
another version. Version 1, which is read, knows no hold but the quarantine; in versions 1 and 2 the rows of
returned messages end before the time at which they are ready.

Invariants: the same batches lead to the same bytes: there is no clock, no policy and no consumer here. The
numbers of an enqueuer follow one another, and a number is new once only. Nothing is known about a position
that was settled. The reach of a level goes back only by a RETREAT, with which a leader ends that has handed
out nothing at or above it.
"""

from struct import Struct as Layout

from msgspec import Struct

from warren.limits_raft import QUORUM_ENQUEUERS_MAX, QUORUM_RETURNED_RUNS_MAX
from warren.queues.quorum.batch_codec import (
    HOLD_MAX,
    TIMED_VERSION,
    VERSION,
    Enqueuer,
    HoldReason,
    QuorumBatch,
    QuorumFormatError,
)
from warren.queues.quorum.returned_messages import ReturnedMessages, ReturnedRange, ReturnState
from warren.store.group_record import PositionRun

_HEAD = Layout(">BHII")
_REACH = Layout(">Q")
_ENQUEUER = Layout(">HQQ")
_RETURNED = Layout(">QIIIBQ")
_UNTIMED = Layout(">QIIIB")
_LEVEL_SHIFT = 56
_POSITIONS = (1 << _LEVEL_SHIFT) - 1


class AppliedBatch(Struct, frozen=True):
    """What applying a batch found out."""

    # The positions of messages that were in the queue before, to be released.
    repeats: tuple[PositionRun, ...]


_APPLIED = AppliedBatch(())


class QuorumMachine:
    """Applies the committed batches of a quorum queue, in order."""

    __slots__ = ("_enqueuers", "_reach", "_returned")

    def __init__(self) -> None:
        # Priority level -> no message at or above was ever handed out.
        self._reach: dict[int, int] = {}
        # Enqueuer -> the last number that it gave to a message.
        self._enqueuers: dict[Enqueuer, int] = {}
        self._returned = ReturnedMessages()

    # --- what it knows ----------------------------------------------------------------------------

    def reach(self, level: int) -> int:
        """The position of `level` at and above which no message was ever handed out."""
        return self._reach.get(level, 0)

    def last_number(self, enqueuer: Enqueuer) -> int:
        """The number of the last message of `enqueuer`, or 0."""
        return self._enqueuers.get(enqueuer, 0)

    def enqueuers(self) -> list[Enqueuer]:
        """All enqueuers with a last number, in order."""
        return sorted(self._enqueuers)

    def returned(self, level: int, position: int) -> ReturnState:
        """What is known of a message that came back and is not settled."""
        return self._returned.get(level, position)

    def returned_ranges(self) -> list[ReturnedRange]:
        """All messages that came back and are not settled, in order of level and position."""
        return list(self._returned.ranges())

    # --- changes ----------------------------------------------------------------------------------

    def apply(self, batch: QuorumBatch) -> AppliedBatch:
        """Apply a committed batch; AssertionError if it cannot follow those before."""
        repeats = self._enqueue(batch) if batch.enqueued else ()
        for reach in batch.reaches:
            level, position = reach.level, reach.position
            if position > self.reach(level):
                self._reach[level] = position
        returned = self._returned
        for run in batch.returned:
            state = ReturnState(HoldReason.NONE, run.failed, run.total, run.ready_at)
            returned.count_attempts(ReturnedRange(run.level, run.first, run.first + run.count, state))
        for each in batch.held:
            state = ReturnState(each.hold)
            returned.hold(ReturnedRange(each.level, each.first, each.first + each.count, state))
        if returned.run_count:
            for settled in batch.settled:
                returned.remove(settled.level, settled.first, settled.first + settled.count)
        if batch.returned or batch.held:
            while returned.run_count > QUORUM_RETURNED_RUNS_MAX:
                returned.forget_half()
        for enqueuer in batch.forgotten:
            self._enqueuers.pop(enqueuer, None)
        for retreat in batch.retreats:
            if retreat.position < self.reach(retreat.level):
                self._reach[retreat.level] = retreat.position
        return AppliedBatch(repeats) if repeats else _APPLIED

    def _enqueue(self, batch: QuorumBatch) -> tuple[PositionRun, ...]:
        """Note the numbers of the messages; returns the positions of those whose number is not new."""
        repeats: list[PositionRun] = []
        # How many messages of the entry are before these.
        before = 0
        for each in batch.enqueued:
            enqueuer, first, count = each.enqueuer, each.first, each.count
            last, end = self.last_number(enqueuer), first + count
            assert first <= last + 1, f"number {first} of {enqueuer} follows {last}"
            if first <= last:
                repeats += _part(batch.runs, before, before + min(last + 1, end) - first)
            if end - 1 > last:
                self._enqueuers[enqueuer] = end - 1
            before += count
        while len(self._enqueuers) > QUORUM_ENQUEUERS_MAX:
            oldest = min(self._enqueuers, key=lambda each: (each.incarnation, each.node))
            del self._enqueuers[oldest]
        return tuple(repeats)

    # --- snapshots --------------------------------------------------------------------------------

    def encode(self) -> bytes:
        """The whole state."""
        return self._encode(VERSION)

    def _encode(self, version: int) -> bytes:
        """The whole state as `version` has it."""
        ranges = self.returned_ranges()
        parts = [_HEAD.pack(version, len(self._reach), len(self._enqueuers), len(ranges))]
        parts += [_REACH.pack(level << _LEVEL_SHIFT | reach) for level, reach in sorted(self._reach.items())]
        parts += [
            _ENQUEUER.pack(enqueuer.node, enqueuer.incarnation, last)
            for enqueuer, last in sorted(self._enqueuers.items())
        ]
        for run in ranges:
            key, state = run.level << _LEVEL_SHIFT | run.first, run.state
            count = run.end - run.first
            row = (key, count, state.failed, state.total, state.hold)
            timed = version >= TIMED_VERSION
            parts.append(_RETURNED.pack(*row, state.ready_at) if timed else _UNTIMED.pack(*row))
        return b"".join(parts)

    @staticmethod
    def decode(data: bytes) -> "QuorumMachine":
        """The machine with the state that `data` contains; QuorumFormatError if it is invalid."""
        machine = QuorumMachine()
        machine.restore(data)
        return machine

    def restore(self, data: bytes) -> None:
        """Take the state that `data` contains into this new machine; QuorumFormatError if it is invalid."""
        reaches, enqueuers, ranges = _parts(data)
        for (key,) in reaches:
            self._reach[key >> _LEVEL_SHIFT] = key & _POSITIONS
        for node, incarnation, last in enqueuers:
            self._enqueuers[Enqueuer(node, incarnation)] = last
        hold_max = HOLD_MAX[data[0]]
        for key, count, failed, total, hold, *ready_at in ranges:
            if hold > hold_max:
                raise QuorumFormatError(_HEAD.size, f"unknown hold {hold}")
            level, first = key >> _LEVEL_SHIFT, key & _POSITIONS
            state = ReturnState(HoldReason(hold), failed, total, *ready_at)
            self._returned.add(ReturnedRange(level, first, first + count, state))
        if self._encode(data[0]) != data:
            raise QuorumFormatError(_HEAD.size, "the parts are not in order")


def _parts(data: bytes) -> list[list[tuple[int, ...]]]:
    """The rows of all parts of a machine."""
    if data and data[0] not in HOLD_MAX:
        raise QuorumFormatError(0, f"a machine of version {data[0]}, where 1 to {VERSION} are known")
    if len(data) < _HEAD.size:
        raise QuorumFormatError(len(data), "the machine ends within its head")
    _, *counts = _HEAD.unpack_from(data)
    parts, at = [], _HEAD.size
    returned = _RETURNED if data[0] >= TIMED_VERSION else _UNTIMED
    for layout, count in zip((_REACH, _ENQUEUER, returned), counts, strict=True):
        end = at + count * layout.size
        if end > len(data):
            raise QuorumFormatError(at, f"{count} rows of {layout.size} bytes do not fit into the machine")
        parts.append(list(layout.iter_unpack(data[at:end])))
        at = end
    if at < len(data):
        raise QuorumFormatError(at, f"{len(data) - at} bytes behind the machine")
    return parts


def _part(runs: tuple[PositionRun, ...], first: int, end: int) -> list[PositionRun]:
    """The positions of the messages from number `first` up to `end` of an entry with `runs`."""
    found, behind = [], 0
    for run in runs:
        low, high = max(first - behind, 0), min(end - behind, run.count)
        if low < high:
            found.append(PositionRun(run.level, run.first + low, high - low))
        behind += run.count
    return found
