"""A chunk: messages of a stream that were written together, column by column.

    chunk    │ mark u32 │ size u32 │ first offset u64 │ time u64 ms │ count u32 │ shapes u32 │ flags u32
             │ body checksum u32 │ head checksum u32 │ body, `size` octets │
    body     │ ends, count + 1 times u32 │ shape of each, count times u32 │ shapes … │ bodies │ tail │
    shape    │ flags u8 │ priority u8 │ address size u16 │ property list size u32 │ address │ property list │

Messages of one shape, which is all but offset and body, have it once; the second column is there only if
there are several. `ends` begins with 0 and says where each body ends among the bodies, as Arrow wants it for
a column of binary values; these two columns are little-endian for that reason, all else is big-endian. The
mark is what a file chose at random, so that the next head can be found behind a damaged one; checksums are
CRC-32C that start from the salt of the file.

FOLLOWS_SYNC among the flags: all before this chunk was synced before it was written. HAS_TAIL: it ends with
what changed of producers and consumers, or, with KNOWS_ALL, everything (`tracking` draws it). A chunk may
have nothing but a tail.
"""

import sys
from array import array
from bisect import bisect_left
from struct import Struct

from google_crc32c import extend

from warren.model.message import BODY_END, Message, new_message
from warren.store.streams.tracking import Tracking

FOLLOWS_SYNC = 1
HAS_TAIL = 2
KNOWS_ALL = 4

_HEAD = Struct(">IIQQIIIII")
HEAD_SIZE = _HEAD.size
_CHECKSUM_AT = HEAD_SIZE - 4
_SHAPE = Struct(">BBHI")
_COLUMN = "I"
_WIDTH = 4
_IS_BIG = sys.byteorder == "big"


class ChunkShape:
    """What messages have in common that differ in their bodies only."""

    __slots__ = ("address", "flags", "priority", "property_list")

    def __init__(self, address: bytes, property_list: bytes, flags: int, priority: int) -> None:
        self.address = address
        self.property_list = property_list
        self.flags = flags
        self.priority = priority


class ChunkBuilder:
    """The chunk that is being gathered; `size` is about what it takes."""

    __slots__ = (
        "_bodies",
        "_ends",
        "_known",
        "_last",
        "_octets",
        "_shape_octets",
        "_shapes",
        "first",
        "time",
        "tracking",
    )

    def __init__(self, first: int) -> None:
        self.first = first
        # When the first of its messages was published, in ms.
        self.time = 0
        # Of one message each, as `Message.content`; or of several that came together, and as they lie.
        self._bodies: list[bytes | memoryview] = []
        self._ends = array(_COLUMN, (0,))
        self._octets = 0
        self._known: dict[tuple[bytes, bytes, int], int] = {}
        self._shapes = array(_COLUMN)
        self._shape_octets: list[bytes] = []
        self._last: Message | None = None
        # What changed of producers and consumers.
        self.tracking = Tracking()

    @property
    def count(self) -> int:
        """How many messages it has."""
        return len(self._ends) - 1

    @property
    def size(self) -> int:
        """About how many octets it will have."""
        return self._octets + 2 * _WIDTH * self.count

    def add(self, message: Message) -> None:
        """Put `message` behind the last."""
        last = self._last
        if (
            last is not None
            and message.property_list is last.property_list
            and message.address is last.address
            and message.flags == last.flags
        ):
            self._shapes.append(self._shapes[-1])
        else:
            if last is None:
                self.time = message.published_at
            self._shapes.append(self._shape_of(message))
        self._last = message
        self._bodies.append(message.content)
        self._octets += len(message.content) - 1
        self._ends.append(self._octets)

    def add_run(self, run: "MessageRun") -> None:
        """Put all messages of `run` behind the last, without looking at each."""
        if self._last is None:
            self.time = run.like.published_at
        self._last = run.like
        self._shapes.extend(array(_COLUMN, (self._shape_of(run.like),)) * run.count)
        begin = run.ends[run.place]
        ends = run.ends[run.place + 1 : run.place + run.count + 1]
        self._ends.extend([self._octets - begin + end for end in ends])
        self._bodies.append(run.bodies[begin : ends[-1]])
        self._octets += ends[-1] - begin

    def encode(self, sync_marker: int, seed: int, flags: int, tail: bytes = b"") -> bytes:
        """The whole chunk, with `tail` behind its bodies."""
        if tail:
            flags |= HAS_TAIL
        columns = [_little(self._ends)]
        if len(self._shape_octets) > 1:
            columns.append(_little(self._shapes))
        bodies = [body[:-1] if type(body) is bytes else body for body in self._bodies]
        parts = [*columns, *self._shape_octets, *bodies, tail]
        body = b"".join(parts)
        fields = (len(body), self.first, self.time, self.count, len(self._shape_octets), flags)
        head = _HEAD.pack(sync_marker, *fields, extend(seed, body), 0)[:_CHECKSUM_AT]
        return b"".join((head, extend(seed, head).to_bytes(4, "big"), body))

    def _shape_of(self, message: Message) -> int:
        key = (message.address, message.property_list, message.flags)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self._shape_octets)
            sizes = _SHAPE.pack(message.flags, message.priority, len(key[0]), len(key[1]))
            self._shape_octets.append(b"".join((sizes, *key[:2])))
        return number


class ChunkHead:
    """What a chunk says of itself before its body."""

    __slots__ = ("checksum", "count", "first", "flags", "shape_count", "size", "time")

    def __init__(self, fields: tuple[int, ...]) -> None:
        _, self.size, self.first, self.time, self.count, self.shape_count, self.flags, self.checksum, _ = (
            fields
        )

    @property
    def end(self) -> int:
        """The offset behind its last message."""
        return self.first + self.count


def read_head(octets: bytes, at: int, sync_marker: int, seed: int) -> ChunkHead | None:
    """The head at `at`; None if no chunk of the file with this `sync_marker` and `seed` begins there."""
    if at + HEAD_SIZE > len(octets):
        return None
    fields = _HEAD.unpack_from(octets, at)
    if fields[0] != sync_marker or extend(seed, octets[at : at + _CHECKSUM_AT]) != fields[-1]:
        return None
    return ChunkHead(fields)


def is_whole(octets: bytes, at: int, head: ChunkHead, seed: int) -> bool:
    """Whether the body behind `head`, which is at `at`, is there and unharmed."""
    begin = at + HEAD_SIZE
    body = octets[begin : begin + head.size]
    return len(body) == head.size and extend(seed, body) == head.checksum


class Chunk:
    """A chunk that was read: message by message, or its columns."""

    __slots__ = ("_bodies_at", "_octets", "count", "ends", "first", "kinds", "shapes", "size", "time")

    def __init__(self, octets: bytes, at: int, head: ChunkHead) -> None:
        """The chunk at `at`, which is whole."""
        self.first = head.first
        self.count = head.count
        self.time = head.time
        self.size = HEAD_SIZE + head.size
        self._octets = octets
        at += HEAD_SIZE
        self.ends = _column(octets, at, head.count + 1)
        at += _WIDTH * (head.count + 1)
        # The shape of each; None if all have the first.
        self.kinds: array[int] | None = None
        if head.shape_count > 1:
            self.kinds = _column(octets, at, head.count)
            at += _WIDTH * head.count
        self.shapes: list[ChunkShape] = []
        for _ in range(head.shape_count):
            flags, priority, address_size, list_size = _SHAPE.unpack_from(octets, at)
            at += _SHAPE.size
            list_at = at + address_size
            end = list_at + list_size
            self.shapes.append(ChunkShape(octets[at:list_at], octets[list_at:end], flags, priority))
            at = end
        self._bodies_at = at

    @property
    def end(self) -> int:
        """The offset behind its last message."""
        return self.first + self.count

    @property
    def bodies(self) -> memoryview:
        """All bodies; see `ends`."""
        at = self._bodies_at
        return memoryview(self._octets)[at : at + self.ends[-1]]

    def run(self, place: int, like: Message) -> "MessageRun":
        """All from `place` on, which are all `like` one: there is one shape."""
        return MessageRun(like, self.ends, self.bodies, place=place, count=self.count - place)

    def shape_at(self, place: int) -> int:
        """The number of the shape of the message at `place`."""
        return 0 if self.kinds is None else self.kinds[place]

    def content(self, place: int) -> bytes:
        """The body of the message at `place`, as `Message.content`."""
        at = self._bodies_at
        return self._octets[at + self.ends[place] : at + self.ends[place + 1]] + BODY_END

    def message(self, place: int) -> Message:
        """The message at `place`, counted from the chunk's first."""
        shape = self.shapes[self.shape_at(place)]
        message = new_message(shape.address, shape.property_list, self.content(place), self.time)
        message.flags = shape.flags
        message.priority = shape.priority
        return message


class MessageRun:
    """`count` messages, one at least, that are all `like` one but for their bodies.

    These end at `ends` among `bodies`, from the one at `place` on, which begins where the one before it ends.
    """

    __slots__ = ("bodies", "count", "ends", "like", "place")

    def __init__(
        self, like: Message, ends: "array[int]", bodies: memoryview, *, place: int, count: int
    ) -> None:
        self.like = like
        self.ends = ends
        self.bodies = bodies
        self.place = place
        self.count = count

    @property
    def octets(self) -> int:
        """Of all bodies."""
        return self.ends[self.place + self.count] - self.ends[self.place]

    def without(self, count: int) -> "MessageRun":
        """All but the first `count`, of which there are more."""
        return self._part(self.place + count, self.count - count)

    def within(self, octets_max: int, count_max: int) -> "MessageRun":
        """The first of them: up to the one with which there are so many octets, or so many messages."""
        end = self.place + min(self.count, count_max)
        at = bisect_left(self.ends, self.ends[self.place] + octets_max, self.place + 1, end)
        return self._part(self.place, at - self.place)

    def _part(self, place: int, count: int) -> "MessageRun":
        return MessageRun(self.like, self.ends, self.bodies, place=place, count=count)


def _column(octets: bytes, at: int, count: int) -> "array[int]":
    column = array(_COLUMN, octets[at : at + _WIDTH * count])
    if _IS_BIG:
        column.byteswap()
    return column


def _little(column: "array[int]") -> bytes:
    if _IS_BIG:
        column = column[:]
        column.byteswap()
    return column.tobytes()
