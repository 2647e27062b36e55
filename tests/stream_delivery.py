"""Encodes and decodes Deliver frames of the stream protocol, as a client does."""

import zlib
from struct import Struct

from warren.wire.streams.codes import MalformedFrame
from warren.wire.streams.delivery import DeliverFrame, deliver_head

_CHUNK = Struct(">BBHIqQQIIII")
_MAGIC = 0x50
_VERSION_AT = 2
_CHUNK_AT = 5
# Additional bytes before the chunk in version 2.
_COMMITTED = 8


def encode_deliver(delivered: DeliverFrame) -> bytes:
    """Return a complete frame with its size; at most 65,535 messages."""
    parts: list[bytes] = []
    for message in delivered.messages:
        parts += (len(message).to_bytes(4, "big"), message)
    data = b"".join(parts)
    return deliver_head(delivered, len(delivered.messages), data) + data


def decode_deliver(frame: bytes) -> DeliverFrame:
    """Return the contents of `frame`, a Deliver without its size. Raises Malformed if it is damaged."""
    is_second = frame[_VERSION_AT : _VERSION_AT + 2] == b"\0\2"
    more = _COMMITTED if is_second else 0
    if len(frame) < _CHUNK_AT + _CHUNK.size + more:
        raise MalformedFrame("frame cut short")
    magic, kind, count, _, time, epoch, first, checksum, size, _, _ = _CHUNK.unpack_from(
        frame, _CHUNK_AT + more
    )
    data = frame[_CHUNK_AT + _CHUNK.size + more :]
    if (magic, kind) != (_MAGIC, 0) or len(data) != size or zlib.crc32(data) != checksum:
        raise MalformedFrame("a damaged chunk")
    messages: list[bytes] = []
    at = 0
    for _ in range(count):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        messages.append(data[at + 4 : end])
        at = end
    if at != size:
        raise MalformedFrame("the number of entries does not match the header")
    return DeliverFrame(
        subscription=frame[4], first=first, time=time, epoch=epoch, messages=messages,
        committed=int.from_bytes(frame[_CHUNK_AT : _CHUNK_AT + more], "big") if is_second else None,
    )  # fmt: skip
