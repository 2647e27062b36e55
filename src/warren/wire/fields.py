"""The types of method arguments (0-9-1 §4.2.5): for each, how to read it off a payload and how to write it.

`read` takes the payload and a position, appends what it read and returns where the next argument starts;
`after` only returns that, and does not look into the argument. Both may raise `IndexError` or `struct.error`
where the payload ends too early: `Method.decode` catches them.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warren.errors import FrameError
from warren.wire.strings import decode_text, encode_long_string, encode_short_string
from warren.wire.table import decode_table, encode_table


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldType:
    """How one type of argument travels."""

    read: Callable[[bytes, int, list[Any]], int]
    after: Callable[[bytes, int], int]
    write: Callable[..., bytes]


def bits(count: int) -> FieldType:
    """Up to eight bits side by side, which share an octet from its low end (0-9-1 §4.2.5.2)."""
    masks = [1 << place for place in range(count)]
    used = (1 << count) - 1
    choices = [tuple(octet & mask != 0 for mask in masks) for octet in range(1 << count)]

    def read(payload: bytes, at: int, values: list[Any]) -> int:
        values += choices[payload[at] & used]
        return at + 1

    def write(*values: bool) -> bytes:
        octet = 0
        for mask, value in zip(masks, values, strict=True):
            if value:
                octet |= mask
        return bytes((octet,))

    return FieldType(read=read, after=lambda _, at: at + 1, write=write)


def _fixed(layout: str) -> FieldType:
    codec = struct.Struct(layout)
    unpack_from, size = codec.unpack_from, codec.size

    def read(payload: bytes, at: int, values: list[Any]) -> int:
        values += unpack_from(payload, at)
        return at + size

    return FieldType(read=read, after=lambda _, at: at + size, write=codec.pack)


def _read_short_string(payload: bytes, at: int, values: list[Any]) -> int:
    end = _after_short_string(payload, at)
    octets = _piece(payload, at + 1, end)
    try:
        values.append(octets.decode())
    except UnicodeDecodeError:
        # RabbitMQ 3.10.8, measured: it blames no method.
        raise FrameError("Malformed UTF-8 in shortstr", method_index=0) from None
    return end


def _read_raw_short_string(payload: bytes, at: int, values: list[Any]) -> int:
    end = _after_short_string(payload, at)
    values.append(decode_text(_piece(payload, at + 1, end)))
    return end


def _read_long_string(payload: bytes, at: int, values: list[Any]) -> int:
    start, end = at + 4, _after_long_string(payload, at)
    values.append(decode_text(_piece(payload, start, end)))
    return end


def _read_table(payload: bytes, at: int, values: list[Any]) -> int:
    start, end = at + 4, _after_long_string(payload, at)
    if end > len(payload):
        raise IndexError(end)
    values.append(decode_table(payload, start, end))
    return end


def _after_short_string(payload: bytes, at: int) -> int:
    return at + 1 + payload[at]


def _after_long_string(payload: bytes, at: int) -> int:
    size: int = _SIZE.unpack_from(payload, at)[0]
    return at + 4 + size


def _piece(payload: bytes, start: int, end: int) -> bytes:
    if end > len(payload):
        raise IndexError(end)
    return payload[start:end]


_SIZE = struct.Struct(">I")

BIT = bits(1)
OCTET = _fixed(">B")
SHORT = _fixed(">H")
LONG = _fixed(">I")
LONG_LONG = _fixed(">Q")
SHORT_STRING = FieldType(read=_read_short_string, after=_after_short_string, write=encode_short_string)
# Any octets: RabbitMQ does not look into the names of basic.publish.
RAW_SHORT_STRING = FieldType(
    read=_read_raw_short_string, after=_after_short_string, write=encode_short_string
)
LONG_STRING = FieldType(read=_read_long_string, after=_after_long_string, write=encode_long_string)
TABLE = FieldType(read=_read_table, after=_after_long_string, write=encode_table)
