"""Field tables and arrays (0-9-1 §4.2.5.5), with RabbitMQ's types and without loss.

    table | size u32 | entry …                     entry | key shortstr | value
    array | size u32 | value …                     value | type u8 | data of that type

Invariants: a byte outside [start, end) is never read; every byte is visited once; any input results in a
value or a `FrameError`, and takes memory in proportion to its size.
"""

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from warren.errors import AmqpSyntaxError, FrameError
from warren.limits import TABLE_DEPTH_MAX
from warren.wire.strings import encode_long_string, encode_short_string

Value: TypeAlias = Any
Table: TypeAlias = dict[str, Value]

_DEPTH_MAX = TABLE_DEPTH_MAX
_SIZE_BYTES = 4
# Marks types of variable size in `_SIZES`.
_VARIABLE = 254
_UNKNOWN = 255


class Int8(int):
    """`b`: a signed byte."""

    __slots__ = ()


class UInt8(int):
    """`B`: an unsigned byte."""

    __slots__ = ()


class Int16(int):
    """`s`: a signed 16-bit integer."""

    __slots__ = ()


class UInt16(int):
    """`u`: an unsigned 16-bit integer."""

    __slots__ = ()


class Int32(int):
    """`I`: a signed 32-bit integer, what most clients send for a small number."""

    __slots__ = ()


class UInt32(int):
    """`i`: an unsigned 32-bit integer."""

    __slots__ = ()


class UInt64(int):
    """`L`: an unsigned 64-bit integer."""

    __slots__ = ()


class Timestamp(int):
    """`T`: seconds since 1970, unsigned 64-bit."""

    __slots__ = ()


class Float32(float):
    """`f`: a single-precision float."""

    __slots__ = ()


def decode_table(data: bytes, start: int, end: int) -> Table:
    """Decode the entries in [start, end), without the table's size; of equal keys the first is used."""
    if not 0 <= start <= end <= len(data):
        raise FrameError("field table outside its frame")
    return _entries(data, start, end, 1)


def decode_some(data: bytes, start: int, end: int, wanted: dict[str, int]) -> Table:
    """Decode those entries in [start, end), checked by `check_table`, whose keys are in `wanted`."""
    if not 0 <= start <= end <= len(data):
        raise FrameError("field table outside its frame")
    return _some_entries(data, start, end, wanted)


def check_table(data: bytes, start: int, end: int) -> None:
    """Raise the `FrameError` that `decode_table` would raise, without creating values."""
    if not 0 <= start <= end <= len(data):
        raise FrameError("field table outside its frame")
    _check_entries(data, start, end, 1)


def encode_table(table: Table) -> bytes:
    """Encode `table`, preceded by its size; AmqpSyntaxError for an unsupported key or value."""
    out = bytearray()
    _append_table(out, table, 1)
    return bytes(out)


def type_name(value: Value) -> str:
    """RabbitMQ's name of the type of `value`, as its error texts quote it."""
    return _TYPE_NAMES[_kind(value)]


def _entries(data: bytes, start: int, end: int, depth: int) -> Table:
    raw = data
    table: Table = {}
    at = start
    while at < end:
        value_at = at + 1 + raw[at]
        if value_at >= end:
            raise FrameError("field table cut short")
        key = data[at + 1 : value_at].decode("utf-8", "surrogateescape")
        at = value_at + 1 + _size(raw, value_at, end)
        if key in table:
            _check_value(raw, value_at, at, depth)
        else:
            table[key] = _value(data, value_at, at, depth)
    return table


def _some_entries(data: bytes, start: int, end: int, wanted: dict[str, int]) -> Table:
    raw = data
    table: Table = {}
    at = start
    while at < end:
        value_at = at + 1 + raw[at]
        if value_at >= end:
            raise FrameError("field table cut short")
        key = data[at + 1 : value_at].decode("utf-8", "surrogateescape")
        at = value_at + 1 + _size(raw, value_at, end)
        if key in wanted and key not in table:
            table[key] = _value(data, value_at, at, 1)
    return table


def _elements(data: bytes, start: int, end: int, depth: int) -> list[Value]:
    raw = data
    elements: list[Value] = []
    at = start
    while at < end:
        value_at = at
        at = value_at + 1 + _size(raw, value_at, end)
        elements.append(_value(data, value_at, at, depth))
    return elements


def _check_entries(data: bytes, start: int, end: int, depth: int) -> int:
    at = start
    while at < end:
        at += 1 + data[at]
        if at >= end:
            raise FrameError("field table cut short")
        at = _check_value(data, at, end, depth)
    return at


def _check_elements(data: bytes, start: int, end: int, depth: int) -> int:
    at = start
    while at < end:
        at = _check_value(data, at, end, depth)
    return at


def _check_value(data: bytes, at: int, end: int, depth: int) -> int:
    """The end of the value whose type is at `at`."""
    kind = data[at]
    value_end = at + 1 + _size(data, at, end)
    if kind in (_TABLE, _ARRAY):
        if depth >= _DEPTH_MAX:
            raise FrameError(f"field table nested deeper than {_DEPTH_MAX} levels")
        if kind == _TABLE:
            _check_entries(data, at + 5, value_end, depth + 1)
        else:
            _check_elements(data, at + 5, value_end, depth + 1)
    return value_end


def _size(data: bytes, at: int, end: int) -> int:
    """The size in bytes of the value whose type is at `at`, which ends within `end`."""
    size = _SIZES[data[at]]
    room = end - at - 1
    if size == _UNKNOWN:
        raise FrameError(f"unknown field type {data[at]}")
    if size == _VARIABLE and room >= _SIZE_BYTES:
        size = _SIZE_BYTES + _u32(data, at + 1)
    if size > room:
        raise FrameError("field value cut short")
    return size


def _value(data: bytes, at: int, end: int, depth: int) -> Value:
    """Decode the value that fills [at, end), including its type."""
    raw = data
    kind = raw[at]
    if kind == _STRING:
        return data[at + 5 : end].decode("utf-8", "surrogateescape")
    if kind in (_TABLE, _ARRAY):
        if depth >= _DEPTH_MAX:
            raise FrameError(f"field table nested deeper than {_DEPTH_MAX} levels")
        if kind == _TABLE:
            return _entries(data, at + 5, end, depth + 1)
        return _elements(data, at + 5, end, depth + 1)
    if kind == _VOID:
        return None
    decode: Callable[[bytes], Value] = _FIXED[kind]
    return decode(data[at + 1 : end])


def _u32(data: bytes, at: int) -> int:
    return data[at] << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3]


def _append_table(out: bytearray, table: Table, depth: int) -> None:
    start = len(out)
    out += b"\0\0\0\0"
    for key, value in table.items():
        out += encode_short_string(key)
        _append_value(out, value, depth)
    out[start : start + _SIZE_BYTES] = _sized(len(out) - start - _SIZE_BYTES)


def _append_value(out: bytearray, value: Value, depth: int) -> None:
    kind = _kind(value)
    if kind == "F" or kind == "A":
        if depth >= _DEPTH_MAX:
            raise AmqpSyntaxError(f"field table nested deeper than {_DEPTH_MAX} levels")
        out.append(ord(kind))
        if kind == "F":
            _append_table(out, value, depth + 1)
        else:
            _append_array(out, value, depth + 1)
        return
    try:
        data = _ENCODERS[kind](value)
    except (ValueError, ArithmeticError, struct.error):
        raise AmqpSyntaxError(f"value {value!r} does not fit field type {kind!r}") from None
    out.append(ord(kind))
    out += data


def _append_array(out: bytearray, elements: list[Value], depth: int) -> None:
    start = len(out)
    out += b"\0\0\0\0"
    for element in elements:
        _append_value(out, element, depth)
    out[start : start + _SIZE_BYTES] = _sized(len(out) - start - _SIZE_BYTES)


def _kind(value: Value) -> str:
    """The type of `value` on the wire, as a character."""
    kind = _KINDS.get(type(value))
    if kind is not None:
        return kind
    for base, inherited in _KINDS.items():
        if isinstance(value, base):
            return inherited
    raise AmqpSyntaxError(f"a field table cannot hold a {type(value).__name__}")


def _sized(size: int) -> bytes:
    return struct.pack(">I", size)


def _integer(of: Callable[[int], int], *, signed: bool) -> Callable[[bytes], int]:
    def decoded(data: bytes) -> int:
        return of(int.from_bytes(data, "big", signed=signed))

    return decoded


def _unpacked(of: Callable[[float], float], layout: str) -> Callable[[bytes], float]:
    unpack = struct.Struct(layout).unpack

    def decoded(data: bytes) -> float:
        return of(unpack(data)[0])

    return decoded


def _decimal(data: bytes) -> Decimal:
    # 0-9-1 specifies an unsigned unscaled value; every client writes and reads it signed.
    unscaled = int.from_bytes(data[1:], "big", signed=True)
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -data[0]))


def _decimal_bytes(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent > _DECIMAL_DIGITS or len(digits) > _DECIMAL_DIGITS:
        raise ValueError("not a number, or too large")
    unscaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    return struct.pack(">Bi", max(-exponent, 0), -unscaled if sign else unscaled)


def _binary_bytes(value: bytes) -> bytes:
    return _sized(len(value)) + value


# The digits of 2**31.
_DECIMAL_DIGITS = 10

_STRING = ord("S")
_TABLE = ord("F")
_ARRAY = ord("A")
_VOID = ord("V")

# The size of each type in bytes, by its type byte and without it.
_SIZES_BY_TYPE = bytearray([_UNKNOWN]) * 256
for _types, _count in (
    ("V", 0),
    ("tbB", 1),
    ("su", 2),
    ("Iif", 4),
    ("D", 5),
    ("lLdT", 8),
    ("SAFx", _VARIABLE),
):
    for _type in _types:
        _SIZES_BY_TYPE[ord(_type)] = _count
_SIZES = bytes(_SIZES_BY_TYPE)

# `L` is unsigned in the errata RabbitMQ publishes and signed in RabbitMQ; unsigned loses nothing.
_FIXED: dict[int, Callable[[bytes], Value]] = {
    ord("t"): lambda data: data != b"\0",
    ord("x"): lambda data: data[_SIZE_BYTES:],
    ord("b"): _integer(Int8, signed=True),
    ord("B"): _integer(UInt8, signed=False),
    ord("s"): _integer(Int16, signed=True),
    ord("u"): _integer(UInt16, signed=False),
    ord("I"): _integer(Int32, signed=True),
    ord("i"): _integer(UInt32, signed=False),
    ord("l"): _integer(int, signed=True),
    ord("L"): _integer(UInt64, signed=False),
    ord("T"): _integer(Timestamp, signed=False),
    ord("f"): _unpacked(Float32, ">f"),
    ord("d"): _unpacked(float, ">d"),
    ord("D"): _decimal,
}

# Looked up by exact type first, then in this order: a subclass stands before its base.
_KINDS: dict[type, str] = {
    str: "S",
    bool: "t",
    Int8: "b",
    UInt8: "B",
    Int16: "s",
    UInt16: "u",
    Int32: "I",
    UInt32: "i",
    UInt64: "L",
    Timestamp: "T",
    int: "l",
    Float32: "f",
    float: "d",
    Decimal: "D",
    bytes: "x",
    dict: "F",
    list: "A",
    tuple: "A",
    type(None): "V",
}

_ENCODERS: dict[str, Callable[[Value], bytes]] = {
    "t": struct.Struct("?").pack,
    "b": struct.Struct(">b").pack,
    "B": struct.Struct(">B").pack,
    "s": struct.Struct(">h").pack,
    "u": struct.Struct(">H").pack,
    "I": struct.Struct(">i").pack,
    "i": struct.Struct(">I").pack,
    "l": struct.Struct(">q").pack,
    "L": struct.Struct(">Q").pack,
    "T": struct.Struct(">Q").pack,
    "f": struct.Struct(">f").pack,
    "d": struct.Struct(">d").pack,
    "D": _decimal_bytes,
    "S": encode_long_string,
    "x": _binary_bytes,
    "V": lambda _: b"",
}

# RabbitMQ 3.10.8's `rabbit_binary_parser`, measured: it reads `l` and `L` as the same `long`.
_TYPE_NAMES = {
    "S": "longstr",
    "t": "bool",
    "b": "byte",
    "B": "unsignedbyte",
    "s": "short",
    "u": "unsignedshort",
    "I": "signedint",
    "i": "unsignedint",
    "l": "long",
    "L": "long",
    "T": "timestamp",
    "f": "float",
    "d": "double",
    "D": "decimal",
    "x": "binary",
    "F": "table",
    "A": "array",
    "V": "void",
}
