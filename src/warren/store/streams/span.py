"""Adjacent small chunks read together, as columns joined end to end.

A reader of columns has a cost for each set of columns. A publisher that spreads its messages over several
streams, or waits for each confirm, writes chunks of a few messages, which would cost many times as much as
their messages if read one by one. Compiled, since it visits every head and column.
"""

import sys
from array import array
from struct import Struct

from google_crc32c import extend

from warren.limits import STREAM_CHUNK_SIZE
from warren.store.record import uint32, uint64
from warren.store.streams.chunk import HEAD_SIZE, Chunk, read_head

_SIZE_MAX = STREAM_CHUNK_SIZE
# The layout is drawn in `chunk`.
_HEAD_SIZE = HEAD_SIZE
_SIZE_AT = 4
_FIRST_AT = 8
_TIME_AT = 16
_COUNT_AT = 24
_SHAPES_AT = 28
_BODY_CHECKSUM_AT = 36
_HEAD_CHECKSUM_AT = 40
_SHAPE = Struct(">BBHI")
_SHAPE_SIZE = _SHAPE.size
_WIDTH = 4
_IS_BIG = sys.byteorder == "big"


class Span:
    """Messages of several chunks as columns, like those of one chunk; `times` has one entry per message.

    Equal shapes of adjacent chunks are merged; `kinds` is None if all messages have one shape.
    """

    __slots__ = (
        "_bodies", "_counts", "_ends", "_known", "_last_shape", "_times", "count", "first", "kinds", "shapes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.first = 0
        self.count = 0
        # The address and the property list of each shape.
        self.shapes: list[tuple[bytes, bytes]] = []
        self.kinds: array[int] | None = None
        # For each chunk: number of messages, time, the column of ends without its leading 0, and the bodies.
        self._counts: list[int] = []
        self._times: list[int] = []
        self._ends: list[bytes] = [bytes(_WIDTH)]
        self._bodies: list[bytes] = []
        self._known: dict[tuple[bytes, bytes], int] = {}
        # The encoded shape of all messages so far; empty if there are several shapes.
        self._last_shape = b""

    @property
    def end(self) -> int:
        """The offset behind the last message."""
        return self.first + self.count

    @property
    def bodies(self) -> memoryview:
        """All bodies one after the other; `ends_and_times` says where each of them ends."""
        return memoryview(b"".join(self._bodies))

    def add(self, data: bytes, at: int) -> None:
        """Append the messages of the chunk at `at` of `data`, which must be intact."""
        source = data
        count = uint32(source, at + _COUNT_AT)
        shape_count = uint32(source, at + _SHAPES_AT)
        if not self.count:
            self.first = uint64(source, at + _FIRST_AT)
        self._times.append(uint64(source, at + _TIME_AT))
        at += _HEAD_SIZE
        ends_at = at + _WIDTH
        at = ends_at + _WIDTH * count
        # The reads below stay within the bytes: checked here, and again behind the shapes.
        assert at <= len(data)
        size = _little(source, at - _WIDTH)
        self._ends.append(source[ends_at:at])
        at = self._add_shapes(data, at, count, shape_count)
        assert at + size <= len(data)
        self._bodies.append(source[at : at + size])
        self._counts.append(count)
        self.count += count

    def ends_and_times(self) -> "tuple[array[int], array[int]]":
        """The ends of the bodies in `bodies`, with a leading 0, and the time of each message (ms)."""
        ends = array("I", b"".join(self._ends))
        if _IS_BIG:
            ends.byteswap()
        times = array("q", bytes(8 * self.count))
        self._fill_in(ends, times)
        return ends, times

    def _fill_in(self, ends: "array[int]", times: "array[int]") -> None:
        """Convert `ends`, which start anew in each chunk, to ends in `bodies`, and fill `times`."""
        begin = before = 0
        for number in range(len(self._counts)):
            behind = begin + self._counts[number]
            time = self._times[number]
            for place in range(begin, behind):
                ends[place + 1] += before
                times[place] = time
            begin = behind
            before = ends[begin]

    def _add_shapes(self, data: bytes, at: int, count: int, shape_count: int) -> int:
        """Add the shapes of a chunk with `count` messages; returns the place where its bodies begin."""
        source, last = data, self._last_shape
        end = at + len(last)
        if shape_count == 1 and last and end <= len(data) and source[at:end] == last:
            return end
        column: array[int] | None = None
        if shape_count > 1:
            column = array("I", data[at : at + _WIDTH * count])
            if _IS_BIG:
                column.byteswap()
            at += _WIDTH * count
        begin = at
        numbers = []
        for _ in range(shape_count):
            _, _, address_size, list_size = _SHAPE.unpack_from(data, at)
            list_at = at + _SHAPE_SIZE + address_size
            shape = (data[at + _SHAPE_SIZE : list_at], data[list_at : list_at + list_size])
            at = list_at + list_size
            number = self._known.get(shape)
            if number is None:
                number = self._known[shape] = len(self.shapes)
                self.shapes.append(shape)
            numbers.append(number)
        if not self.count and column is None:
            self._last_shape = data[begin:at]
            return at
        self._last_shape = b""
        if self.kinds is None:
            # All messages before have the first shape.
            self.kinds = array("I", bytes(_WIDTH * self.count))
        if column is None:
            self.kinds.extend(array("I", numbers) * count)
        else:
            self.kinds.extend([numbers[kind] for kind in column])
        return at


class Block:
    """A block of bytes of one segment; `sync_marker` and `seed` come from the salt of the segment."""

    __slots__ = ("_data", "_seed", "_sync_marker", "end")

    def __init__(self, data: bytes, sync_marker: int, seed: int) -> None:
        self._data = data
        self._sync_marker = sync_marker
        self._seed = seed
        # The place behind the last chunk that was taken.
        self.end = 0

    def take(self, at: int, offset: int, end: int) -> Chunk | Span | None:
        """The chunk at `at`, which must have `offset`, or a span of it and the small chunks behind it.

        Chunks from offset `end` on are left out. None if the first chunk is incomplete or damaged.
        """
        data = source = self._data
        span: Span | None = None
        alone = -1
        taken = 0
        while offset < end:
            size = self._size_at(at)
            if not size or (taken and taken + size > _SIZE_MAX):
                break
            first = uint64(source, at + _FIRST_AT)
            count = uint32(source, at + _COUNT_AT)
            if first > offset or (taken and first < offset) or not self._is_intact(at, size):
                break
            if count:
                if first + count <= offset:
                    break
                if span is not None:
                    span.add(data, at)
                elif alone < 0:
                    alone = at
                else:
                    span = Span()
                    span.add(data, alone)
                    span.add(data, at)
                taken += size
                offset = first + count
            at += size
            self.end = at
        if span is not None:
            return span
        return None if alone < 0 else self._chunk(alone)

    def _chunk(self, at: int) -> Chunk:
        head = read_head(self._data, at, self._sync_marker, self._seed)
        assert head is not None
        return Chunk(self._data, at, head)

    def _size_at(self, at: int) -> int:
        """The size in bytes of the chunk at `at`; 0 if there is no complete chunk."""
        source = self._data
        left = len(self._data) - at
        if left < _HEAD_SIZE or uint32(source, at) != self._sync_marker:
            return 0
        size = _HEAD_SIZE + uint32(source, at + _SIZE_AT)
        return size if size <= left else 0

    def _is_intact(self, at: int, size: int) -> bool:
        """True if the checksums of the chunk at `at` are right."""
        source = self._data
        checksum: int = extend(self._seed, source[at : at + _HEAD_CHECKSUM_AT])
        if checksum != uint32(source, at + _HEAD_CHECKSUM_AT):
            return False
        checksum = extend(self._seed, source[at + _HEAD_SIZE : at + size])
        return checksum == uint32(source, at + _BODY_CHECKSUM_AT)


def _little(data: bytes, at: int) -> int:
    """The 32-bit little-endian integer at `at`."""
    high = data[at + 3] << 8 | data[at + 2]
    return high << 16 | data[at + 1] << 8 | data[at]
