"""What the records of segments say of each lane: read once, in the order in which they were written."""

from array import array
from collections.abc import Iterator

from warren.model.message import HAS_EXPIRATION
from warren.store.found import Found
from warren.store.lane import Lane
from warren.store.record import (
    HEAD_SIZE,
    MESSAGE,
    REACHED,
    REFERENCE_SIZE,
    RELEASE,
    RUN_SIZE,
    content_size,
    first_reference,
    reference_count,
    uint32,
    uint64,
)

_HEAD_SIZE = HEAD_SIZE
_REFERENCE_SIZE = REFERENCE_SIZE
_RUN_SIZE = RUN_SIZE
_MESSAGE = MESSAGE
_RELEASE = RELEASE
_REACHED = REACHED
_HAS_EXPIRATION = HAS_EXPIRATION
_LEVEL_SHIFT = 56
_SEGMENT_SHIFT = 32
# Behind the last run: no position comes before its first, and none after its end.
_NO_RUN = (1 << 62, 1 << 62)

LaneKey = tuple[int, int]


class LaneScan:
    """What was said of one lane so far."""

    __slots__ = ("expiring", "in_order", "locations", "positions", "reached", "runs", "segments", "sizes")

    def __init__(self) -> None:
        # Of each message: its position, where it lies, and the octets of its body.
        self.positions = array("Q")
        self.locations = array("Q")
        self.sizes = array("I")
        self.in_order = True
        # Positions of messages that carry an expiration of their own.
        self.expiring: list[int] = []
        # What it is done with: (first, behind the last).
        self.runs: list[tuple[int, int]] = []
        self.reached = 0
        # Numbers of the segments in which its state stands.
        self.segments: set[int] = set()


class Scan:
    """What was said of all lanes so far: (number of a queue, priority level) -> its scan."""

    __slots__ = ("_key", "_last", "lanes")

    def __init__(self) -> None:
        self.lanes: dict[LaneKey, LaneScan] = {}
        self._last: LaneScan | None = None
        self._key = (0, 0)

    def take(self, segment: int, octets: bytes, at: int, size: int) -> None:
        """Take note of the intact record of `size` octets at `at` in `octets`, all of `segment`."""
        kind = octets[at + 8]
        if kind == _MESSAGE:
            self._take_message((segment << _SEGMENT_SHIFT) | at, octets, at, size)
        elif kind == _RELEASE:
            for begin in range(at + _HEAD_SIZE, at + size, _RUN_SIZE):
                key = uint64(octets, begin + 4)
                lane = self._lane(uint32(octets, begin), key >> _LEVEL_SHIFT)
                first = _position(key)
                lane.runs.append((first, first + uint64(octets, begin + 12)))
                lane.segments.add(segment)
        elif kind == _REACHED:
            for begin in range(at + _HEAD_SIZE, at + size, _REFERENCE_SIZE):
                key = uint64(octets, begin + 4)
                lane = self._lane(uint32(octets, begin), key >> _LEVEL_SHIFT)
                lane.reached = max(lane.reached, _position(key))
                lane.segments.add(segment)

    def _take_message(self, location: int, octets: bytes, at: int, size: int) -> None:
        body_size = content_size(octets, at, size) - 1
        expires = octets[at + _HEAD_SIZE + 8] & _HAS_EXPIRATION
        begin = first_reference(at)
        for _ in range(reference_count(octets, at)):
            key = uint64(octets, begin + 4)
            lane = self._lane(uint32(octets, begin), key >> _LEVEL_SHIFT)
            position = _position(key)
            count = len(lane.positions)
            if count and position <= lane.positions[count - 1]:
                lane.in_order = False
            lane.positions.append(position)
            lane.locations.append(location)
            lane.sizes.append(body_size)
            if expires:
                lane.expiring.append(position)
            begin += _REFERENCE_SIZE

    def _lane(self, queue: int, level: int) -> LaneScan:
        key = (queue, level)
        lane = self._last
        if lane is None or key != self._key:
            lane = self.lanes.get(key)
            if lane is None:
                lane = self.lanes[key] = LaneScan()
            self._last = lane
            self._key = key
        return lane


def _position(key: int) -> int:
    """The position that stands with its level in `key`."""
    return key - (key >> _LEVEL_SHIFT << _LEVEL_SHIFT)


def released(scan: LaneScan, queue: int, level: int) -> Lane:
    """The lane of `scan` as it was."""
    lane = Lane(queue, level)
    for first, end in _merged(scan.runs):
        lane.release(first, end)
    lane.reached = scan.reached
    return lane


def remaining(scan: LaneScan, lane: Lane) -> Found:
    """What `lane`, which was made of `scan`, still needs."""
    positions, locations = array("Q"), array("Q")
    if not scan.in_order:
        _put_in_order(scan)
    runs = lane.runs()
    ahead = iter(runs)
    first, end = next(ahead, _NO_RUN)
    expires = set(scan.expiring)
    expiring = []
    octets = 0
    for place in range(len(scan.positions)):
        position = scan.positions[place]
        while position >= end:
            first, end = next(ahead, _NO_RUN)
        if position < first:
            positions.append(position)
            locations.append(scan.locations[place])
            octets += scan.sizes[place]
            if position in expires:
                expiring.append((position, scan.locations[place]))
    ends = [lane.reached, runs[-1][1] if runs else 0]
    if len(scan.positions):
        ends.append(scan.positions[-1] + 1)
    return Found(
        positions=positions,
        locations=locations,
        octets=octets,
        expiring=expiring,
        reached=lane.reached,
        end=max(ends),
    )


def _put_in_order(scan: LaneScan) -> None:
    """Sort by position; of what was written twice, the later counts."""
    latest = dict(zip(scan.positions, zip(scan.locations, scan.sizes, strict=True), strict=True))
    order = sorted(latest)
    scan.positions = array("Q", order)
    scan.locations = array("Q", [latest[position][0] for position in order])
    scan.sizes = array("I", [latest[position][1] for position in order])
    scan.in_order = True


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
