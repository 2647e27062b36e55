"""`erlang:phash2` of a field table as RabbitMQ has it: ids of bindings with arguments use it.

A table is a list of tuples `{key, type, value}`, an array one of `{type, value}`. Each byte and number is
mixed into the hash of what precedes it, by the function that Bob Jenkins published in 1996. Measured with
Erlang 25; the same in every release, since applications store these hashes.
"""

import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from warren.wire.table import Table, Value, type_name

_MASK: Final = 0xFFFFFFFF
_GOLDEN_RATIO: Final = 0x9E3779B9
# Constants added for each kind of term: multiples of the golden ratio.
_NIL, _ATOM, _TUPLE, _NEGATIVE, _POSITIVE, _FLOAT, _BINARY = (
    _GOLDEN_RATIO * factor & _MASK for factor in (2, 3, 9, 10, 11, 12, 13)
)
_NIL_TAG: Final = 2
# The hash of an empty list at the start.
_NIL_ALONE: Final = 3_468_870_702
# Integers of up to 28 bits are hashed by value, larger ones by sign and digits.
_SMALL_MIN: Final = -(1 << 27)
_SMALL_MAX: Final = (1 << 27) - 1
_BLOCK: Final = 12
# For the last bytes of a block: the word they are added to, and the shift; the third has room for the length.
_TAIL: Final = (
    (0, 0), (0, 8), (0, 16), (0, 24), (1, 0), (1, 8), (1, 16), (1, 24), (2, 8), (2, 16), (2, 24),
)  # fmt: skip


def table_hash(table: Table) -> int:
    """The hash (32 bits) of `table`, whose entries are ordered by key."""
    return _table(0, table)


def _table(seed: int, table: Mapping[str, Value]) -> int:
    for key, value in table.items():
        seed = _pair(seed, 3, 0, _TUPLE)
        seed = _hash_bytes(seed, key.encode("utf-8", "surrogateescape"))
        seed = _typed(seed, value)
    return _nil(seed)


def _array(seed: int, elements: Sequence[Value]) -> int:
    for element in elements:
        seed = _typed(_pair(seed, 2, 0, _TUPLE), element)
    return _nil(seed)


def _typed(seed: int, value: Value) -> int:
    """Hash a type and a value as the last two elements of a tuple."""
    seed = _atom(seed, type_name(value))
    if value is None:
        return _atom(seed, "undefined")
    if isinstance(value, bool):
        return _atom(seed, "true" if value else "false")
    if isinstance(value, int):
        # RabbitMQ reads an unsigned 64-bit integer as signed, unless it is a timestamp.
        is_time = type_name(value) == "timestamp"
        return _integer(seed, value if is_time or value < 1 << 63 else value - (1 << 64))
    if isinstance(value, float):
        low, high = struct.unpack("<II", struct.pack("<d", value + 0.0))
        return _pair(seed, high, low, _FLOAT)
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1) & _MASK
        scale = -exponent if isinstance(exponent, int) else 0
        return _integer(_integer(_pair(seed, 2, 0, _TUPLE), scale), unscaled)
    if isinstance(value, Mapping):
        return _table(seed, value)
    if isinstance(value, list | tuple):
        return _array(seed, value)
    return _hash_bytes(seed, value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape"))


def _nil(seed: int) -> int:
    return _pair(seed, _NIL_TAG, 0, _NIL) if seed else _NIL_ALONE


def _atom(seed: int, name: str) -> int:
    """Hash an atom by its name, with the hash function of P. J. Weinberger."""
    own = 0
    for octet in name.encode("ascii"):
        own = (own << 4) + octet
        top = own & 0xF0000000
        own ^= top >> 24
        own ^= top
    return _pair(seed, own, 0, _ATOM) if seed else own


def _integer(seed: int, value: int) -> int:
    if not _SMALL_MIN <= value <= _SMALL_MAX:
        magnitude = abs(value)
        return _pair(seed, magnitude, magnitude >> 32, _NEGATIVE if value < 0 else _POSITIVE)
    if value < 0:
        seed = _pair(seed, -value, 0, _GOLDEN_RATIO)
    return _pair(seed, value, 0, _GOLDEN_RATIO)


def _pair(seed: int, first: int, second: int, constant: int) -> int:
    return _mixed(constant + first & _MASK, constant + second & _MASK, seed)[2]


def _hash_bytes(seed: int, data: bytes) -> int:
    c = _BINARY + seed & _MASK
    if not data:
        return c
    a = b = _GOLDEN_RATIO
    whole = len(data) - len(data) % _BLOCK
    for first, second, third in struct.iter_unpack("<III", data[:whole]):
        a, b, c = _mixed(a + first & _MASK, b + second & _MASK, c + third & _MASK)
    last = [a, b, c + len(data)]
    for octet, (which, shift) in zip(data[whole:], _TAIL, strict=False):
        last[which] += octet << shift
    return _mixed(last[0] & _MASK, last[1] & _MASK, last[2] & _MASK)[2]


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    a = (a - b - c ^ c >> 13) & _MASK
    b = (b - c - a ^ a << 8) & _MASK
    c = (c - a - b ^ b >> 13) & _MASK
    a = (a - b - c ^ c >> 12) & _MASK
    b = (b - c - a ^ a << 16) & _MASK
    c = (c - a - b ^ b >> 5) & _MASK
    a = (a - b - c ^ c >> 3) & _MASK
    b = (b - c - a ^ a << 10) & _MASK
    c = (c - a - b ^ b >> 15) & _MASK
    return a, b, c
