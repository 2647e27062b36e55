"""Where a message stands in the queue of another broker, as a header that is added and removed byte for byte.

A queue gives each of its messages a position, and never gives it to another one. A shovel that delivers
exactly once passes it on: the source adds it to what it delivers, and the destination removes it before the
message is routed, so that the message is the same as before.

    header `x-warren-position`, always the first, a byte array of 33 bytes:

    │ had headers u8 │ origin, 16 bytes │ start u64 │ place u64 │

`origin` identifies the queue: random, and new when a queue is declared again. `start` identifies the start
of the broker in which the message was published, and is random, too: messages that were never synced are lost
with a crash, and their places may be used again after it, but not with the same start. `place` is the place
in the queue, with the number of higher priority levels from bit 48 on.
"""

import struct

from msgspec import Struct

from warren.model.message import HAS_HEADERS, Message, new_message, published_at_of

# The argument of basic.consume that asks for positions, and the realm of access.request, which RabbitMQ
# ignores, that announces publishes with positions.
POSITIONS_ARGUMENT = "x-warren-positions"
POSITIONS_REALM = "x-warren-positions"
# In the server properties of a broker that knows both.
POSITIONS_CAPABILITY = "warren_positions"

ORIGIN_SIZE = 16
START_SIZE = 8
RANK_SHIFT = 48

_VALUE = struct.Struct(">B16sQQ")
_SIZE = struct.Struct(">I")
_NAME = b"x-warren-position"
_HEAD = bytes((len(_NAME),)) + _NAME + b"x" + _SIZE.pack(_VALUE.size)
_FIELD_SIZE = len(_HEAD) + _VALUE.size
# Bits of the first flags of a property list (0-9-1 §4.2.6.1): content-type, content-encoding, headers.
_CONTENT_TYPE = 0x80
_CONTENT_ENCODING = 0x40
_HEADERS = 0x20
_FLAGS_SIZE = 2


class MessagePosition(Struct, frozen=True):
    """The position of one message."""

    origin: bytes
    start: int
    place: int


def with_position(message: Message, position: MessagePosition) -> Message:
    """Copy `message`, whose property list is valid, with `position` as its first header."""
    property_list = message.property_list
    at = _headers_at(property_list)
    had_headers = bool(property_list[0] & _HEADERS)
    field = _HEAD + _VALUE.pack(had_headers, position.origin, position.start, position.place)
    if had_headers:
        (size,) = _SIZE.unpack_from(property_list, at)
        parts = (
            property_list[:at], _SIZE.pack(size + _FIELD_SIZE), field, property_list[at + _SIZE.size :],
        )  # fmt: skip
    else:
        flags = bytes((property_list[0] | _HEADERS,))
        parts = (flags + property_list[1:at], _SIZE.pack(_FIELD_SIZE), field, property_list[at:])
    copy: Message = new_message(message.address, b"".join(parts), message.content, published_at_of(message))
    copy.flags = message.flags & HAS_HEADERS
    return copy


def take_position(property_list: bytes) -> tuple[bytes, MessagePosition] | None:
    """Split a property list into the one without a position, and the position; None if it has none.

    The property list may be malformed: then the rest is, or there is no position.
    """
    try:
        at = _headers_at(property_list)
        if not property_list[0] & _HEADERS:
            return None
        (size,) = _SIZE.unpack_from(property_list, at)
        field_at = at + _SIZE.size
        if size < _FIELD_SIZE or not property_list.startswith(_HEAD, field_at):
            return None
        had_headers, origin, start, place = _VALUE.unpack_from(property_list, field_at + len(_HEAD))
    except (IndexError, struct.error):
        return None
    rest = property_list[field_at + _FIELD_SIZE :]
    if had_headers:
        before = property_list[:at] + _SIZE.pack(size - _FIELD_SIZE)
    elif size == _FIELD_SIZE:
        before = bytes((property_list[0] & ~_HEADERS,)) + property_list[1:at]
    else:
        return None
    return before + rest, MessagePosition(origin, start, place)


def _headers_at(property_list: bytes) -> int:
    """The place of the headers, or where they would be. IndexError if the list ends before."""
    flags = property_list[0]
    at = _FLAGS_SIZE
    for flag in (_CONTENT_TYPE, _CONTENT_ENCODING):
        if flags & flag:
            at += 1 + property_list[at]
    return at
