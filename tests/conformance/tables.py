"""Field tables (0-9-1 §4.2.5.5, with RabbitMQ's types) that keep the type byte of every value.

Strings are Python strings, with bytes that are not UTF-8 as surrogates. A boolean, a string, a list,
a dict and None speak for themselves; everything else is a `Typed` with its type byte.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Typed:
    """A value whose Python type does not tell its type byte: 5 as I, l, b, T …"""

    code: str
    value: Any


_NUMBERS = {
    "b": ">b",
    "B": ">B",
    "s": ">h",
    "u": ">H",
    "I": ">i",
    "i": ">I",
    "l": ">q",
    "L": ">Q",
    "f": ">f",
    "d": ">d",
    "T": ">Q",
}


class ByteReader:
    """Bytes with a place to read from; reading past the end is an error."""

    def __init__(self, data: bytes, at: int) -> None:
        self._bytes = data
        self._at = at

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        taken = self._bytes[self._at : self._at + count]
        if len(taken) < count:
            raise ValueError(f"{count} bytes expected at {self._at} of {self._bytes!r}")
        self._at += count
        return taken

    def number(self, size: int) -> int:
        """An unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size), "big")

    def text(self, prefix: int) -> str:
        """A string after its length in `prefix` bytes."""
        return self.take(self.number(prefix)).decode("utf-8", "surrogateescape")

    def rest(self) -> bytes:
        """The unread rest."""
        return self._bytes[self._at :]


def encode_text(text: str) -> bytes:
    """The bytes of a string, surrogates as the bytes they stand for."""
    return text.encode("utf-8", "surrogateescape")


def pack_shortstr(text: str) -> bytes:
    """A short string: one byte of length."""
    data = encode_text(text)
    return bytes([len(data)]) + data


def pack_longstr(text: str | bytes) -> bytes:
    """A long string: four bytes of length."""
    data = text if isinstance(text, bytes) else encode_text(text)
    return struct.pack(">I", len(data)) + data


def pack_table(table: dict[str, Any]) -> bytes:
    """A table after its length."""
    return pack_longstr(b"".join(pack_shortstr(key) + pack_value(value) for key, value in table.items()))


def pack_value(value: Any) -> bytes:
    """A value after its type byte."""
    if isinstance(value, Typed):
        return value.code.encode("latin-1") + _pack_typed(value)
    if isinstance(value, bool):
        return b"t" + bytes([value])
    if isinstance(value, str):
        return b"S" + pack_longstr(value)
    if isinstance(value, list):
        return b"A" + pack_longstr(b"".join(pack_value(member) for member in value))
    if isinstance(value, dict):
        return b"F" + pack_table(value)
    if value is None:
        return b"V"
    raise TypeError(f"a {type(value).__name__} has no type octet")


def unpack_table(reader: ByteReader) -> dict[str, Any]:
    """A table after its length."""
    inside = ByteReader(reader.take(reader.number(4)), 0)
    table = {}
    while inside.rest():
        key = inside.text(1)
        table[key] = unpack_value(inside)
    return table


def unpack_value(reader: ByteReader) -> Any:
    """A value after its type byte."""
    code = reader.take(1).decode("latin-1")
    if code in _NUMBERS:
        (number,) = struct.unpack(_NUMBERS[code], reader.take(struct.calcsize(_NUMBERS[code])))
        return Typed(code, number)
    if code == "t":
        return reader.number(1) != 0
    if code == "S":
        return reader.text(4)
    if code == "x":
        return Typed("x", reader.take(reader.number(4)))
    if code == "D":
        scale = reader.number(1)
        return Typed("D", (scale, reader.number(4)))
    if code == "A":
        inside = ByteReader(reader.take(reader.number(4)), 0)
        members = []
        while inside.rest():
            members.append(unpack_value(inside))
        return members
    if code == "F":
        return unpack_table(reader)
    if code == "V":
        return None
    raise ValueError(f"unknown type octet {code!r}")


def _pack_typed(typed: Typed) -> bytes:
    if typed.code in _NUMBERS:
        return struct.pack(_NUMBERS[typed.code], typed.value)
    if typed.code == "D":
        return struct.pack(">BI", *typed.value)
    return pack_longstr(typed.value) if typed.code == "x" else bytes(typed.value)
