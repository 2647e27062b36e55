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

from warren.wire.streams.codes import CommandKey

_HEAD = Struct(">IHHBBBHIqQQIIII")
_HEAD_2 = Struct(">IHHBQBBHIqQQIIII")
_MAGIC = 0x50
# Of the frame, without the four octets of its size, and of the chunk's entries.
_OVERHEAD = _HEAD.size - 4
# How much further the chunk of version 2 begins.
_COMMITTED = 8


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
