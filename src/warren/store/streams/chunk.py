"""A chunk: messages of a stream that were written together, in columns.

    chunk    │ mark u32 │ size u32 │ first offset u64 │ time u64 ms │ count u32 │ shapes u32 │ flags u32
             │ body checksum u32 │ head checksum u32 │ body, `size` bytes │
    body     │ ends, count + 1 times u32 │ shape of each, count times u32 │ shapes … │ bodies │ tail │
    shape    │ flags u8 │ priority u8 │ address size u16 │ property list size u32 │ address │ property list │

A shape is everything of a message but its offset and body, and is stored once for all messages that share it;
the second column is present only if there are several shapes. `ends` begins with 0 and has the end of each
body within the bodies, which is Arrow's layout of a column of binary values; for this reason these two
columns are little-endian, and everything else is big-endian. The mark is chosen at random for each file, so
that the next head can be found behind a damaged one; checksums are CRC-32C that start from the salt of the
file.

Flags: FOLLOWS_SYNC means that everything before this chunk was synced before it was written. HAS_TAIL means
that it ends with changes of producers and consumers, or, with KNOWS_ALL, with all of them (`tracking` draws
the format). A chunk can consist of a tail only.
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
    """The properties shared by messages that differ only in their bodies."""

    __slots__ = ("address", "flags", "priority", "property_list")

    def __init__(self, address: bytes, property_list: bytes, flags: int, priority: int) -> None:
        self.address = address
        self.property_list = property_list
        self.flags = flags
        self.priority = priority


class ChunkBuilder:
    """The chunk that is being assembled; `size` is its approximate size in bytes."""

    __slots__ = (
        "_bodies",
        "_body_bytes",
        "_ends",
        "_known",
        "_last",
        "_shape_bytes",
        "_shapes",
        "first",
        "time",
        "tracking",
    )

    def __init__(self, first: int) -> None:
        self.first = first
        # When its first message was published (Unix time, ms).
        self.time = 0
        # Bodies of single messages, as in `Message.content`, and of runs of messages, as they lie in memory.
        self._bodies: list[bytes | memoryview] = []
        self._ends = array(_COLUMN, (0,))
        self._body_bytes = 0
        self._known: dict[tuple[bytes, bytes, int], int] = {}
        self._shapes = array(_COLUMN)
        self._shape_bytes: list[bytes] = []
        self._last: Message | None = None
        # Changes of producers and consumers since the last chunk.
        self.tracking = Tracking()

    @property
    def count(self) -> int:
        """The number of messages in it."""
        return len(self._ends) - 1

    @property
    def size(self) -> int:
        """The approximate size of the encoded chunk in bytes."""
        return self._body_bytes + 2 * _WIDTH * self.count

    def add(self, message: Message) -> None:
        """Append `message`."""
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
        self._body_bytes += len(message.content) - 1
        self._ends.append(self._body_bytes)

    def add_run(self, run: "MessageRun") -> None:
        """Append all messages of `run` at once."""
        if self._last is None:
            self.time = run.like.published_at
        self._last = run.like
        self._shapes.extend(array(_COLUMN, (self._shape_of(run.like),)) * run.count)
        begin = run.ends[run.place]
        ends = run.ends[run.place + 1 : run.place + run.count + 1]
        self._ends.extend([self._body_bytes - begin + end for end in ends])
        self._bodies.append(run.bodies[begin : ends[-1]])
        self._body_bytes += ends[-1] - begin

    def encode(self, sync_marker: int, seed: int, flags: int, tail: bytes = b"") -> bytes:
        """The encoded chunk, with `tail` behind its bodies."""
        if tail:
            flags |= HAS_TAIL
        columns = [_little(self._ends)]
        if len(self._shape_bytes) > 1:
            columns.append(_little(self._shapes))
        bodies = [body[:-1] if type(body) is bytes else body for body in self._bodies]
        parts = [*columns, *self._shape_bytes, *bodies, tail]
        body = b"".join(parts)
        fields = (len(body), self.first, self.time, self.count, len(self._shape_bytes), flags)
        head = _HEAD.pack(sync_marker, *fields, extend(seed, body), 0)[:_CHECKSUM_AT]
        return b"".join((head, extend(seed, head).to_bytes(4, "big"), body))

    def _shape_of(self, message: Message) -> int:
        key = (message.address, message.property_list, message.flags)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self._shape_bytes)
            sizes = _SHAPE.pack(message.flags, message.priority, len(key[0]), len(key[1]))
            self._shape_bytes.append(b"".join((sizes, *key[:2])))
        return number


class ChunkHead:
    """The decoded head of a chunk."""

    __slots__ = ("checksum", "count", "first", "flags", "shape_count", "size", "time")

    def __init__(self, fields: tuple[int, ...]) -> None:
        _, self.size, self.first, self.time, self.count, self.shape_count, self.flags, self.checksum, _ = (
            fields
        )

    @property
    def end(self) -> int:
        """The offset behind the last message."""
        return self.first + self.count


def read_head(data: bytes, at: int, sync_marker: int, seed: int) -> ChunkHead | None:
    """The head at `at`; None if there is no head of a chunk with this `sync_marker` and `seed`."""
    if at + HEAD_SIZE > len(data):
        return None
    fields = _HEAD.unpack_from(data, at)
    if fields[0] != sync_marker or extend(seed, data[at : at + _CHECKSUM_AT]) != fields[-1]:
        return None
    return ChunkHead(fields)


def is_whole(data: bytes, at: int, head: ChunkHead, seed: int) -> bool:
    """True if the body of the chunk at `at` with `head` is complete and intact."""
    begin = at + HEAD_SIZE
    body = data[begin : begin + head.size]
    return len(body) == head.size and extend(seed, body) == head.checksum


class Chunk:
    """A chunk that was read; its messages can be taken one by one or as columns."""

    __slots__ = ("_bodies_at", "_data", "count", "ends", "first", "kinds", "shapes", "size", "time")

    def __init__(self, data: bytes, at: int, head: ChunkHead) -> None:
        """The chunk at `at`, which must be intact."""
        self.first = head.first
        self.count = head.count
        self.time = head.time
        self.size = HEAD_SIZE + head.size
        self._data = data
        at += HEAD_SIZE
        self.ends = _column(data, at, head.count + 1)
        at += _WIDTH * (head.count + 1)
        # The shape number of each message; None if all have the first shape.
        self.kinds: array[int] | None = None
        if head.shape_count > 1:
            self.kinds = _column(data, at, head.count)
            at += _WIDTH * head.count
        self.shapes: list[ChunkShape] = []
        for _ in range(head.shape_count):
            flags, priority, address_size, list_size = _SHAPE.unpack_from(data, at)
            at += _SHAPE.size
            list_at = at + address_size
            end = list_at + list_size
            self.shapes.append(ChunkShape(data[at:list_at], data[list_at:end], flags, priority))
            at = end
        self._bodies_at = at

    @property
    def end(self) -> int:
        """The offset behind the last message."""
        return self.first + self.count

    @property
    def bodies(self) -> memoryview:
        """All bodies one after the other; `ends` says where each of them ends."""
        at = self._bodies_at
        return memoryview(self._data)[at : at + self.ends[-1]]

    def run(self, place: int, like: Message) -> "MessageRun":
        """The messages from `place` on as a run; `like` has their common properties.

        The chunk must have one shape.
        """
        return MessageRun(like, self.ends, self.bodies, place=place, count=self.count - place)

    def shape_at(self, place: int) -> int:
        """The number of the shape of the message at `place`."""
        return 0 if self.kinds is None else self.kinds[place]

    def content(self, place: int) -> bytes:
        """The body of the message at `place`, as in `Message.content`."""
        at = self._bodies_at
        return self._data[at + self.ends[place] : at + self.ends[place + 1]] + BODY_END

    def message(self, place: int) -> Message:
        """The message at `place`, counted from the first message of the chunk."""
        shape = self.shapes[self.shape_at(place)]
        message = new_message(shape.address, shape.property_list, self.content(place), self.time)
        message.flags = shape.flags
        message.priority = shape.priority
        return message


class MessageRun:
    """`count` messages, at least one, that differ from `like` only in their bodies.

    The body at `place` ends at `ends[place + 1]` in `bodies`, and begins where the one before ends.
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
    def byte_count(self) -> int:
        """The size of all bodies in bytes."""
        return self.ends[self.place + self.count] - self.ends[self.place]

    def without(self, count: int) -> "MessageRun":
        """The run without its first `count` messages; `count` must be less than the length of the run."""
        return self._part(self.place + count, self.count - count)

    def within(self, bytes_max: int, count_max: int) -> "MessageRun":
        """The first messages of the run: up to `count_max`, ending with the one that reaches `bytes_max`
        bytes.
        """
        end = self.place + min(self.count, count_max)
        at = bisect_left(self.ends, self.ends[self.place] + bytes_max, self.place + 1, end)
        return self._part(self.place, at - self.place)

    def _part(self, place: int, count: int) -> "MessageRun":
        return MessageRun(self.like, self.ends, self.bodies, place=place, count=count)


def _column(data: bytes, at: int, count: int) -> "array[int]":
    column = array(_COLUMN, data[at : at + _WIDTH * count])
    if _IS_BIG:
        column.byteswap()
    return column


def _little(column: "array[int]") -> bytes:
    if _IS_BIG:
        column = column[:]
        column.byteswap()
    return column.tobytes()
