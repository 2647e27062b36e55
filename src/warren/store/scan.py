"""Collects the records of segments by queue and priority level, in one pass in the order of writing."""

from warren.limits import SCANNED_AT_ONCE
from warren.model.column import Column
from warren.model.message import BODY_END, HAS_EXPIRATION
from warren.store.cursor import QueueCursor
from warren.store.group_record import PayloadVersions
from warren.store.group_state import GroupScan
from warren.store.markers import CommitMarker
from warren.store.record import (
    DELIVERED,
    ENTRY,
    GROUP,
    HEAD_SIZE,
    MESSAGE,
    MESSAGE_OVERHEAD,
    REFERENCE_SIZE,
    RELEASE,
    RUN_SIZE,
    SEAL,
    content_size,
    decode_marker,
    first_reference,
    group_size,
    is_intact,
    reference_count,
    uint32,
    uint64,
)
from warren.store.recovered_queue import RecoveredQueue
from warren.store.segment import Segment
from warren.store.sorting import in_order

_AT_ONCE = SCANNED_AT_ONCE
_HEAD_SIZE = HEAD_SIZE
_REFERENCE_SIZE = REFERENCE_SIZE
_RUN_SIZE = RUN_SIZE
_MESSAGE = MESSAGE
_RELEASE = RELEASE
_DELIVERED = DELIVERED
_SEAL = SEAL
_GROUP = GROUP
_ENTRY = ENTRY
_HAS_EXPIRATION = HAS_EXPIRATION
_LEVEL_SHIFT = 56
_SEGMENT_SHIFT = 32
# The size of a message beside its body, as the log counts it.
_BESIDE_BODY = MESSAGE_OVERHEAD + len(BODY_END)

CursorKey = tuple[int, int]


class CursorScan:
    """The records of one priority level of a queue."""

    __slots__ = (
        "delivered_up_to", "expiring", "in_order", "last", "locations", "positions", "runs", "segments",
        "sizes",
    )  # fmt: skip

    def __init__(self) -> None:
        # For each message its position, its location, and the size of its body in bytes.
        self.positions = Column()
        self.locations = Column()
        self.sizes = Column()
        self.in_order = True
        # The position behind the last message.
        self.last = 0
        # Positions of messages with an expiration of their own.
        self.expiring: list[int] = []
        # Settled positions as (first, end).
        self.runs: list[tuple[int, int]] = []
        self.delivered_up_to = 0
        # Numbers of the segments that hold its state.
        self.segments: set[int] = set()

    @property
    def end(self) -> int:
        """The position behind all messages, which must have been sorted."""
        count = self.positions.count
        return self.positions.get(count - 1) + 1 if count else 0


class SegmentScan:
    """The records read so far, by (number of the queue, priority level), all commit markers and groups."""

    __slots__ = ("_last", "_level", "_queue", "cursors", "groups", "markers")

    def __init__(self, newest: PayloadVersions | None = None) -> None:
        self.cursors: dict[CursorKey, CursorScan] = {}
        # By key.
        self.markers: dict[bytes, CommitMarker] = {}
        self.groups = GroupScan(newest)
        self._last: CursorScan | None = None
        self._queue = 0
        self._level = 0

    def take_some(self, segment: Segment, data: bytes, at: int) -> int:
        """Collect intact records of `segment` from `at` on; returns the place where it stopped.

        It stops at a SEAL, at a damaged record, at a GROUP that is not whole, or after a bounded number of
        records.
        """
        seed = segment.seed
        for _ in range(_AT_ONCE):
            size = is_intact(data, at, seed)
            if not size or data[at + 8] == _SEAL:
                break
            if data[at + 8] == _GROUP and not _is_whole(data, at, size, seed):
                break
            self.take(segment, data, at, size)
            at += size
        return at

    def take(self, segment: Segment, data: bytes, at: int, size: int) -> None:
        """Collect the intact record of `size` bytes at `at` in `data`, the bytes of `segment`."""
        source = data
        kind = source[at + 8]
        if kind == _MESSAGE:
            self._take_message(segment, source, at, size)
        elif kind == _RELEASE:
            assert (size - _HEAD_SIZE) % _RUN_SIZE == 0
            for begin in range(at + _HEAD_SIZE, at + size, _RUN_SIZE):
                key = uint64(source, begin + 4)
                cursor = self._cursor(uint32(source, begin), key >> _LEVEL_SHIFT)
                first = _position(key)
                cursor.runs.append((first, first + uint64(source, begin + 12)))
                cursor.segments.add(segment.number)
        elif kind == _DELIVERED:
            assert (size - _HEAD_SIZE) % _REFERENCE_SIZE == 0
            for begin in range(at + _HEAD_SIZE, at + size, _REFERENCE_SIZE):
                key = uint64(source, begin + 4)
                cursor = self._cursor(uint32(source, begin), key >> _LEVEL_SHIFT)
                cursor.delivered_up_to = max(cursor.delivered_up_to, _position(key))
                cursor.segments.add(segment.number)
        elif kind == _GROUP:
            name, value = decode_marker(data, at, size)
            self.markers[name] = CommitMarker(name, value, segment.number)
        elif kind >= _ENTRY:
            self.groups.take(kind, data[at + _HEAD_SIZE : at + size], segment.number, at + _HEAD_SIZE)

    def _take_message(self, segment: Segment, data: bytes, at: int, size: int) -> None:
        location = (segment.number << _SEGMENT_SHIFT) | at
        body_size = content_size(data, at, size) - 1
        # Guarantees that the reads below stay within the record.
        assert body_size >= 0
        expires = data[at + _HEAD_SIZE + 8] & _HAS_EXPIRATION
        references = reference_count(data, at)
        begin = first_reference(at)
        for _ in range(references):
            key = uint64(data, begin + 4)
            cursor = self._cursor(uint32(data, begin), key >> _LEVEL_SHIFT)
            position = _position(key)
            if position < cursor.last:
                cursor.in_order = False
            cursor.last = position + 1
            cursor.positions.append(position)
            cursor.locations.append(location)
            cursor.sizes.append(body_size)
            if expires:
                cursor.expiring.append(position)
            begin += _REFERENCE_SIZE
        segment.count += 1
        segment.byte_count += references * (body_size + _BESIDE_BODY)

    def _cursor(self, queue: int, level: int) -> CursorScan:
        cursor = self._last
        if cursor is None or queue != self._queue or level != self._level:
            key = (queue, level)
            cursor = self.cursors.get(key)
            if cursor is None:
                cursor = self.cursors[key] = CursorScan()
            self._last = cursor
            self._queue = queue
            self._level = level
        return cursor


def _is_whole(data: bytes, at: int, size: int, seed: int) -> bool:
    """True if all records of the GROUP of `size` bytes at `at` are present and intact."""
    end = at + size + group_size(data, at)
    at += size
    while at < end:
        size = is_intact(data, at, seed)
        if not size:
            return False
        at += size
    return True


def _position(key: int) -> int:
    """The position in `key`, without the priority level."""
    return key - (key >> _LEVEL_SHIFT << _LEVEL_SHIFT)


def recovered_cursor(scan: CursorScan, queue: int, level: int) -> QueueCursor:
    """The cursor with the state that `scan` collected."""
    cursor = QueueCursor(queue, level)
    for first, end in sorted(scan.runs):
        cursor.add(first, end)
    cursor.delivered_up_to = scan.delivered_up_to
    return cursor


class LiveMessages:
    """Determines the live messages of one cursor from its scan, a part with each call."""

    __slots__ = ("_byte_count", "_cursor", "_expires", "_expiring", "_kept", "_place", "_scan", "_segments")

    def __init__(self, scan: CursorScan, cursor: QueueCursor, segments: dict[int, Segment]) -> None:
        if not scan.in_order:
            scan.positions, scan.locations, scan.sizes = in_order(scan.positions, scan.locations, scan.sizes)
        self._scan = scan
        self._cursor = cursor
        self._segments = segments
        # Messages examined, and those of them that are live: the columns begin with these.
        self._place = 0
        self._kept = 0
        self._byte_count = 0
        self._expires = set(scan.expiring)
        self._expiring: list[tuple[int, int]] = []

    def take_some(self) -> bool:
        """Examine a bounded number of messages; True if there are more."""
        positions, locations = self._scan.positions, self._scan.locations
        cursor, segment = self._cursor, None
        start = self._place
        self._place = min(start + _AT_ONCE, positions.count)
        for place in range(start, self._place):
            position = positions.get(place)
            if cursor.has(position):
                continue
            location = locations.get(place)
            size = self._scan.sizes.get(place)
            positions.put(self._kept, position)
            locations.put(self._kept, location)
            self._kept += 1
            self._byte_count += size
            if self._expires and position in self._expires:
                self._expiring.append((position, location))
            if segment is None or location >> _SEGMENT_SHIFT != segment.number:
                segment = self._segments[location >> _SEGMENT_SHIFT]
            segment.live += 1
            segment.live_bytes += size + _BESIDE_BODY
        return self._place < positions.count

    def found(self) -> RecoveredQueue:
        """The live messages, once all have been examined."""
        positions, locations, cursor = self._scan.positions, self._scan.locations, self._cursor
        ends = [cursor.delivered_up_to, cursor.end]
        if positions.count:
            # The last message may be settled; its position is used all the same.
            ends.append(positions.get(positions.count - 1) + 1)
        positions.cut(self._kept)
        locations.cut(self._kept)
        return RecoveredQueue(
            positions=positions,
            locations=locations,
            byte_count=self._byte_count,
            expiring=self._expiring,
            delivered_up_to=cursor.delivered_up_to,
            end=max(ends),
        )
