"""What a Deliver carries: a chunk of a stream, as RabbitMQ has them in its files.

    deliver  │ size u32 │ key u16 │ version u16 │ subscription u8 │ chunk │
    version 2│ size u32 │ key u16 │ version u16 │ subscription u8 │ committed u64 │ chunk │
    chunk    │ 0x50 │ kind u8, 0 │ entries u16 │ messages u32 │ time i64 ms │ epoch u64 │ first offset u64
             │ checksum u32 │ size u32 │ size of a trailer u32 │ 4 octets │ entry … │
    entry    │ size u32, below 2**31 │ message │

The checksum is CRC-32 of all entries. `committed` is the offset at which the last chunk of the stream begins
that can be read, and is there for clients that say that they know version 2.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

from warren.wire.streams.codes import CommandKey, MalformedFrame

_HEAD = Struct(">IHHBBBHIqQQIIII")
_HEAD_2 = Struct(">IHHBQBBHIqQQIIII")
_CHUNK = Struct(">BBHIqQQIIII")
_MAGIC = 0x50
# Of the frame, without the four octets of its size, and of the chunk's entries.
_OVERHEAD = _HEAD.size - 4
_CHUNK_AT = 5
# How much further the chunk of version 2 begins.
_COMMITTED = 8
_VERSION_AT = 2
# What the number of entries can say.
ENTRIES_MAX = 0xFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverFrame:
    """Messages one behind the other."""

    subscription: int
    first: int
    time: int
    epoch: int
    messages: Sequence[bytes]
    # Where the last chunk begins, for those who are told.
    committed: int | None = None


def encode_deliver(delivered: DeliverFrame) -> bytes:
    """The whole frame, with its size; at most ENTRIES_MAX messages."""
    parts: list[bytes] = []
    for message in delivered.messages:
        parts += (len(message).to_bytes(4, "big"), message)
    data = b"".join(parts)
    return deliver_head(delivered, len(delivered.messages), data) + data


def deliver_head(delivered: DeliverFrame, count: int, data: bytes) -> bytes:
    """What stands before `data`, which is `count` entries, in place of the messages of `delivered`."""
    chunk = (
        _MAGIC, 0, count, count, delivered.time, delivered.epoch, delivered.first,
        zlib.crc32(data), len(data), 0, 0,
    )  # fmt: skip
    size = _OVERHEAD + len(data)
    if delivered.committed is None:
        return _HEAD.pack(size, CommandKey.DELIVER, 1, delivered.subscription, *chunk)
    return _HEAD_2.pack(
        size + _COMMITTED, CommandKey.DELIVER, 2, delivered.subscription, delivered.committed, *chunk
    )


def decode_deliver(frame: bytes) -> DeliverFrame:
    """What is in `frame`, a Deliver without its size; Malformed if that is damaged."""
    is_second = frame[_VERSION_AT : _VERSION_AT + 2] == b"\0\2"
    more = _COMMITTED if is_second else 0
    if len(frame) < _OVERHEAD + more:
        raise MalformedFrame("frame cut short")
    magic, kind, count, _, time, epoch, first, checksum, size, _, _ = _CHUNK.unpack_from(
        frame, _CHUNK_AT + more
    )
    data = frame[_OVERHEAD + more :]
    if (magic, kind) != (_MAGIC, 0) or len(data) != size or zlib.crc32(data) != checksum:
        raise MalformedFrame("a damaged chunk")
    messages: list[bytes] = []
    at = 0
    for _ in range(count):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        messages.append(data[at + 4 : end])
        at = end
    if at != size:
        raise MalformedFrame("other entries than it says")
    return DeliverFrame(
        subscription=frame[4], first=first, time=time, epoch=epoch, messages=messages,
        committed=int.from_bytes(frame[_CHUNK_AT : _CHUNK_AT + more], "big") if is_second else None,
    )  # fmt: skip
