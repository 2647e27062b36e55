"""Field tables (0-9-1 §4.2.5.5, with RabbitMQ's types) that keep the type octet of every value.

Strings are Python strings, with octets that are not UTF-8 as surrogates. A boolean, a string, a list,
a dict and None speak for themselves; everything else is a `Typed` with its type octet.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Typed:
    """A value whose Python type does not tell its type octet: 5 as I, l, b, T …"""

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


class Octets:
    """Octets with a place to read from; reading past the end is an error."""

    def __init__(self, octets: bytes, at: int) -> None:
        self._octets = octets
        self._at = at

    def take(self, count: int) -> bytes:
        """The next `count` octets."""
        taken = self._octets[self._at : self._at + count]
        if len(taken) < count:
            raise ValueError(f"{count} octets expected at {self._at} of {self._octets!r}")
        self._at += count
        return taken

    def number(self, size: int) -> int:
        """An unsigned integer of `size` octets."""
        return int.from_bytes(self.take(size), "big")

    def text(self, prefix: int) -> str:
        """A string after its length in `prefix` octets."""
        return self.take(self.number(prefix)).decode("utf-8", "surrogateescape")

    def rest(self) -> bytes:
        """What has not been read."""
        return self._octets[self._at :]


def encode_text(text: str) -> bytes:
    """The octets of a string, surrogates as the octets they stand for."""
    return text.encode("utf-8", "surrogateescape")


def pack_shortstr(text: str) -> bytes:
    """A short string: one octet of length."""
    octets = encode_text(text)
    return bytes([len(octets)]) + octets


def pack_longstr(text: str | bytes) -> bytes:
    """A long string: four octets of length."""
    octets = text if isinstance(text, bytes) else encode_text(text)
    return struct.pack(">I", len(octets)) + octets


def pack_table(table: dict[str, Any]) -> bytes:
    """A table after its length."""
    return pack_longstr(b"".join(pack_shortstr(key) + pack_value(value) for key, value in table.items()))


def pack_value(value: Any) -> bytes:
    """A value after its type octet."""
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


def unpack_table(octets: Octets) -> dict[str, Any]:
    """A table after its length."""
    inside = Octets(octets.take(octets.number(4)), 0)
    table = {}
    while inside.rest():
        key = inside.text(1)
        table[key] = unpack_value(inside)
    return table


def unpack_value(octets: Octets) -> Any:
    """A value after its type octet."""
    code = octets.take(1).decode("latin-1")
    if code in _NUMBERS:
        (number,) = struct.unpack(_NUMBERS[code], octets.take(struct.calcsize(_NUMBERS[code])))
        return Typed(code, number)
    if code == "t":
        return octets.number(1) != 0
    if code == "S":
        return octets.text(4)
    if code == "x":
        return Typed("x", octets.take(octets.number(4)))
    if code == "D":
        scale = octets.number(1)
        return Typed("D", (scale, octets.number(4)))
    if code == "A":
        inside = Octets(octets.take(octets.number(4)), 0)
        members = []
        while inside.rest():
            members.append(unpack_value(inside))
        return members
    if code == "F":
        return unpack_table(octets)
    if code == "V":
        return None
    raise ValueError(f"unknown type octet {code!r}")


def _pack_typed(typed: Typed) -> bytes:
    if typed.code in _NUMBERS:
        return struct.pack(_NUMBERS[typed.code], typed.value)
    if typed.code == "D":
        return struct.pack(">BI", *typed.value)
    return pack_longstr(typed.value) if typed.code == "x" else bytes(typed.value)
