"""The Deliver frame: a chunk of a stream, in the format of RabbitMQ's segment files.

    deliver  │ size u32 │ key u16 │ version u16 │ subscription u8 │ chunk │
    version 2│ size u32 │ key u16 │ version u16 │ subscription u8 │ committed u64 │ chunk │
    chunk    │ 0x50 │ kind u8, 0 │ entries u16 │ messages u32 │ time i64 ms │ epoch u64 │ first offset u64
             │ checksum u32 │ size u32 │ size of a trailer u32 │ 4 bytes │ entry … │
    entry    │ size u32, below 2**31 │ message │

The checksum is CRC-32 of all entries. `committed` is the offset at which the last readable chunk of the
stream begins; it is sent to clients that support version 2.
"""

import zlib
from collections.abc import Sequence
from struct import Struct

import msgspec

from warren.wire.streams.codes import CommandKey

_HEAD = Struct(">IHHBBBHIqQQIIII")
_HEAD_2 = Struct(">IHHBQBBHIqQQIIII")
_MAGIC = 0x50
# The size of the frame without its four size bytes and without the chunk's entries.
_OVERHEAD = _HEAD.size - 4
# The additional bytes before the chunk in version 2.
_COMMITTED = 8


class DeliverFrame(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk of consecutive messages."""

    subscription: int
    first: int
    time: int
    epoch: int
    messages: Sequence[bytes]
    # The offset at which the last chunk begins; None in version 1.
    committed: int | None = None


def deliver_head(delivered: DeliverFrame, count: int, data: bytes) -> bytes:
    """Encode the frame up to `data`, which is `count` entries that replace the messages of `delivered`."""
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
