"""Opens a store: reads its segments, and says what is still there and what is damaged.

Each segment is read once for what happened in it, in order; then those with messages that are still needed
are read again for these. A log may end in the middle of a record: what a power cut has torn was never
confirmed. Behind a BATCH record nothing is torn, as all before it was synced; there, what fails its checksum
is damage, which is reported with its place, and everything that can be read is kept. A damaged file is never
written to or used again.

What was torn is not written over: the last segment is sealed where its records end, and a new one is begun.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from warren.limits import SEGMENT_SIZE
from warren.model.message import StoredMessage
from warren.store.disk import Disk, Step, Sync, Write
from warren.store.lane import Lane
from warren.store.log import Log
from warren.store.message_store import MessageStore, StorePort
from warren.store.record import (
    BATCH,
    MESSAGE,
    REACHED,
    RELEASE,
    SEAL,
    decode_message,
    decode_reached,
    decode_references,
    decode_runs,
    encode,
    is_intact,
)
from warren.store.record import HEAD_SIZE as RECORD_HEAD_SIZE
from warren.store.segment import (
    HEAD_SIZE,
    SPARE_PREFIX,
    SUFFIX,
    NewerFormatError,
    Segment,
    SegmentError,
    seed_of,
)

_LEVEL_SHIFT = 56
_POSITION_MASK = (1 << _LEVEL_SHIFT) - 1
# Behind the last run: no position comes before its first, and none after its end.
_NO_RUN = (1 << 63, 1 << 63)

LaneKey = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was kept of a queue, or of one priority level of it."""

    # By position, in order.
    messages: list[tuple[int, StoredMessage]]
    # All before this position were handed out at least once.
    reached: int
    # No position from here on was ever used.
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What was found in a store."""

    store: MessageStore
    # Number of a queue -> priority level -> what was found.
    queues: dict[int, dict[int, Found]]
    damage: list[SegmentError]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningWorld:
    """What opening a store needs from above the waterline."""

    random_octets: Callable[[int], bytes]
    # Whether a queue with this number exists: what others left behind is dead.
    has_queue: Callable[[int], bool]
    # Called with octets read and octets to be read, as it goes.
    progress: Callable[[int, int], None]


def open_store(disk: Disk, port: StorePort, world: OpeningWorld) -> Recovered:
    """Open the store in `disk`, or make one. SegmentError for a newer format, OSError from the disk."""
    names = disk.names()
    reading = _Reading(disk, world, {name: size for name, size in names.items() if name.endswith(SUFFIX)})
    reading.read_all()
    spares = [name for name, size in names.items() if name.startswith(SPARE_PREFIX) and size == SEGMENT_SIZE]
    log = Log(reading.segments, spares, world.random_octets)
    disk.perform([*reading.seal(), *log.begin()])
    reading.fill()
    store = MessageStore(disk, log, port, reading.lanes)
    return Recovered(store=store, queues=reading.queues, damage=reading.damage)


class _Reading:
    """One pass over the segments of a store, and a second one for what is still needed."""

    def __init__(self, disk: Disk, world: OpeningWorld, sizes: dict[str, int]) -> None:
        self._disk = disk
        self._world = world
        self._sizes = sizes
        self._read = 0
        self._total = sum(sizes.values())
        self.segments: dict[int, Segment] = {}
        self.damage: list[SegmentError] = []
        self.lanes: dict[LaneKey, Lane] = {}
        self.queues: dict[int, dict[int, Found]] = {}
        # (queue, level) -> position -> location, and what is said of its positions.
        self._found: dict[LaneKey, dict[int, int]] = {}
        self._released: dict[LaneKey, list[tuple[int, int]]] = {}
        self._reached: dict[LaneKey, int] = {}
        # (queue, level) -> the segments in which something is said of it.
        self._states: dict[LaneKey, set[int]] = {}
        # Segments whose records end without a seal, and what their checksums start from.
        self._unsealed: list[tuple[Segment, int]] = []

    def read_all(self) -> None:
        """The first pass."""
        numbers = sorted(int(name.removesuffix(SUFFIX)) for name in self._sizes)
        for number in numbers:
            segment = Segment(number)
            octets = self._disk.read(segment.name, 0, self._sizes[segment.name])
            segment.capacity = len(octets)
            self._read += len(octets)
            self._world.progress(self._read, self._total)
            try:
                seed = seed_of(octets[:HEAD_SIZE], number)
            except NewerFormatError:
                raise
            except SegmentError as error:
                # The last one may have been made, and never begun.
                if number != numbers[-1]:
                    self.damage.append(error)
                continue
            self.segments[number] = segment
            self._read_segment(segment, octets, seed)

    def seal(self) -> list[Step]:
        """The steps that end the last segment where its records end."""
        steps: list[Step] = []
        damaged = {error.name for error in self.damage}
        for segment, seed in self._unsealed:
            if segment.number != max(self.segments):
                self.damage.append(SegmentError(segment.name, segment.size, "the records end without a seal"))
            elif segment.name not in damaged:
                record = encode(SEAL, b"", seed)
                steps += [Write(segment.name, segment.size, [record]), Sync(segment.name)]
                segment.is_sealed = True
        return steps

    def fill(self) -> None:
        """The second pass: lanes as they were, and the messages that they still hold."""
        by_segment: dict[int, list[tuple[int, LaneKey, int]]] = {}
        for key in self._released.keys() | self._found.keys() | self._reached.keys():
            if not self._world.has_queue(key[0]):
                continue
            lane = self.lanes[key] = Lane(*key)
            for first, end in _merged(self._released.get(key, [])):
                lane.release(first, end)
            lane.reached = self._reached.get(key, 0)
            positions = self._found.get(key, {})
            for position in _not_released(sorted(positions), lane):
                location = positions[position]
                by_segment.setdefault(location >> 32, []).append((location & 0xFFFFFFFF, key, position))
            for number in self._states.get(key, ()):
                self.segments[number].lanes.add(lane)
            runs = lane.runs()
            ends = [lane.reached, runs[-1][1] if runs else 0, max(positions, default=-1) + 1]
            found = Found(messages=[], reached=lane.reached, end=max(ends))
            self.queues.setdefault(key[0], {})[key[1]] = found
        for number in sorted(by_segment):
            self._fill_from(number, by_segment[number])
        for levels in self.queues.values():
            for found in levels.values():
                found.messages.sort(key=_position_of)

    def _fill_from(self, number: int, wanted: list[tuple[int, LaneKey, int]]) -> None:
        segment = self.segments[number]
        octets = self._disk.read(segment.name, 0, segment.capacity)
        message: StoredMessage | None = None
        last_at = -1
        for at, key, position in sorted(wanted):
            if message is None or at != last_at:
                size = RECORD_HEAD_SIZE + int.from_bytes(octets[at : at + 4], "big")
                message = decode_message(octets, at, size)
                message.location = (number << 32) | at
                last_at = at
            message.references += 1
            segment.live += 1
            self.queues[key[0]][key[1]].messages.append((position, message))

    def _read_segment(self, segment: Segment, octets: bytes, seed: int) -> None:
        """Take note of every record of `segment`."""
        at = HEAD_SIZE
        is_damaged = False
        batch = encode(BATCH, b"", seed)
        while True:
            size = is_intact(octets, at, seed)
            if size:
                kind = octets[at + 8]
                if kind == SEAL:
                    # A damaged one is kept as it is: it never counts as dead.
                    segment.is_sealed = not is_damaged
                    segment.size = at + size
                    return
                self._take(segment, octets, at, size)
                at += size
                continue
            # All before a BATCH was synced: if there is one behind, this is damage and not a torn end.
            synced = octets.find(batch, at + 1)
            if synced < 0:
                break
            self.damage.append(SegmentError(segment.name, at, "a record is damaged"))
            is_damaged = True
            at = synced
        segment.size = at
        self._unsealed.append((segment, seed))

    def _take(self, segment: Segment, octets: bytes, at: int, size: int) -> None:
        """Take note of the intact record at `at`."""
        kind = octets[at + 8]
        if kind == MESSAGE:
            location = (segment.number << 32) | at
            for queue, position in decode_references(octets, at):
                key = (queue, position >> _LEVEL_SHIFT)
                self._found.setdefault(key, {})[position & _POSITION_MASK] = location
        elif kind == RELEASE:
            for queue, first, count in decode_runs(octets, at, size):
                key = (queue, first >> _LEVEL_SHIFT)
                begin = first & _POSITION_MASK
                self._released.setdefault(key, []).append((begin, begin + count))
                self._states.setdefault(key, set()).add(segment.number)
        elif kind == REACHED:
            for queue, position in decode_reached(octets, at, size):
                key = (queue, position >> _LEVEL_SHIFT)
                self._reached[key] = max(self._reached.get(key, 0), position & _POSITION_MASK)
                self._states.setdefault(key, set()).add(segment.number)


def _merged(runs: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """`runs` in order, those that overlap or touch made one."""
    first, end = 0, 0
    for begin, behind in sorted(runs):
        if begin > end:
            if end > first:
                yield first, end
            first = begin
        end = max(end, behind)
    if end > first:
        yield first, end


def _not_released(positions: list[int], lane: Lane) -> Iterator[int]:
    """Those of the sorted `positions` that `lane` still needs."""
    runs = iter(lane.runs())
    first, end = next(runs, _NO_RUN)
    for position in positions:
        while position >= end:
            first, end = next(runs, _NO_RUN)
        if position < first:
            yield position


def _position_of(entry: tuple[int, StoredMessage]) -> int:
    return entry[0]
