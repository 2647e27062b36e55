"""The positions of one source queue whose messages were published here, as ranges, for a commit marker.

A queue that is drained in order is one range for each start of its broker and each priority level, whatever
its length. There is a bound on the ranges; beyond it the lower half of the line with the most is forgotten,
which can only make duplicates of messages that the source delivers again.

    value │ version u8 │ used at u64 ms │ line … │
    line  │ start u64 │ rank u16 │ ranges u16 │ ( gap varint │ size varint ) … │
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from struct import Struct

from warren.limits_relay import POSITION_RANGES_MAX
from warren.model.message_position import RANK_SHIFT

_VERSION = 1
_HEAD = Struct(">BQ")
_LINE = Struct(">QHH")
_PLACE_MASK = (1 << RANK_SHIFT) - 1


class _Line:
    """The ranges of one start and one priority level, in order and with gaps between them."""

    __slots__ = ("ends", "firsts")

    def __init__(self) -> None:
        self.firsts = array("Q")
        self.ends = array("Q")

    def has(self, place: int) -> bool:
        """True if `place` is in a range."""
        at = bisect_right(self.firsts, place) - 1
        return at >= 0 and place < self.ends[at]

    def add(self, place: int) -> int:
        """Add `place`, which is in no range; returns how many ranges there are more than before."""
        firsts, ends = self.firsts, self.ends
        at = bisect_right(firsts, place)
        extends = at > 0 and ends[at - 1] == place
        if at < len(firsts) and firsts[at] == place + 1:
            if not extends:
                firsts[at] = place
                return 0
            ends[at - 1] = ends[at]
            del firsts[at], ends[at]
            return -1
        if extends:
            ends[at - 1] = place + 1
            return 0
        firsts.insert(at, place)
        ends.insert(at, place + 1)
        return 1


class PositionRanges:
    """A bounded set of the positions of one source queue."""

    __slots__ = ("_count", "_lines", "used_at")

    def __init__(self, used_at: int) -> None:
        # (number of the start, rank) -> its ranges; and how many ranges there are.
        self._lines: dict[tuple[int, int], _Line] = {}
        self._count = 0
        # The time of the last publish (Unix time, ms).
        self.used_at = used_at

    def has(self, start: int, place: int) -> bool:
        """True if the message at `place`, published in the start with number `start`, is in the set."""
        line = self._lines.get((start, place >> RANK_SHIFT))
        return line is not None and line.has(place & _PLACE_MASK)

    def add(self, start: int, place: int) -> None:
        """Add a position that is not in the set; another one may be forgotten for it."""
        key = start, place >> RANK_SHIFT
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line()
        self._count += line.add(place & _PLACE_MASK)
        if self._count > POSITION_RANGES_MAX:
            self._forget_some()

    def encode(self) -> bytes:
        """Return the value of the marker."""
        parts = [_HEAD.pack(_VERSION, self.used_at)]
        for (start, rank), line in self._lines.items():
            parts.append(_LINE.pack(start, rank, len(line.firsts)))
            behind = 0
            for first, end in zip(line.firsts, line.ends, strict=True):
                parts += _varint(first - behind), _varint(end - first)
                behind = end
        return b"".join(parts)

    @classmethod
    def decode(cls, value: bytes) -> "PositionRanges":
        """Return the set that `value` encodes."""
        version, used_at = _HEAD.unpack_from(value)
        assert version == _VERSION
        ranges = cls(used_at)
        at = _HEAD.size
        while at < len(value):
            start, rank, count = _LINE.unpack_from(value, at)
            numbers = _varints(value, at + _LINE.size, 2 * count)
            line = ranges._lines[start, rank] = _Line()
            behind = 0
            for _ in range(count):
                _, gap = next(numbers)
                at, size = next(numbers)
                line.firsts.append(behind + gap)
                behind += gap + size
                line.ends.append(behind)
            ranges._count += count
        return ranges

    def _forget_some(self) -> None:
        """Forget the lower half of the line with the most ranges; if all have one, the older half of them."""
        key = max(self._lines, key=lambda key: len(self._lines[key].firsts))
        line = self._lines[key]
        half = len(line.firsts) // 2
        if half:
            del line.firsts[:half], line.ends[:half]
            self._count -= half
            return
        for key in list(self._lines)[: len(self._lines) // 2]:
            del self._lines[key]
            self._count -= 1


def used_at(value: bytes) -> int:
    """Return the time of the last publish (Unix time, ms) in the encoded set `value`."""
    time: int = _HEAD.unpack_from(value)[1]
    return time


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def _varints(value: bytes, at: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield `count` numbers from place `at` on, each with the place behind it."""
    for _ in range(count):
        number = shift = 0
        while value[at] & 0x80:
            number |= (value[at] & 0x7F) << shift
            shift += 7
            at += 1
        number |= value[at] << shift
        at += 1
        yield at, number
