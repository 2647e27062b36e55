"""AMQP 1.0 (ISO 19464): values with their types, and the sections of a message.

    section   │ 0x00 │ 0x53 code u8, or 0x80 code u64 │ value │
    message   │ header 0x70 │ delivery annotations 0x71 │ annotations 0x72 │ properties 0x73
              │ application properties 0x74 │ body │ footer 0x78 │
    body      │ data 0x75 … │   or   │ sequence 0x76 … │   or   │ value 0x77 │

A value is a pair of type name and Python value; values without a simple type are kept as bytes.
Invariants: no byte outside of the input is read, nesting is bounded, and any input results in a value or an
`Amqp1Error`.
"""

import struct
from collections.abc import Callable
from struct import Struct
from typing import Any, TypeAlias

from warren.limits import TABLE_DEPTH_MAX

Typed: TypeAlias = tuple[str, Any]

HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES = range(0x70, 0x75)
DATA, SEQUENCE, VALUE, FOOTER = range(0x75, 0x79)
NULL: Typed = ("null", None)
# The type name of values that are kept as bytes.
OPAQUE = "opaque"

_DESCRIBED = 0x00
_SMALL_CODE = 0x53
_SMALL_MAX = 255


class Amqp1Error(Exception):
    """The input is not valid AMQP 1.0."""


class Section:
    """One section: its code, its start, and the start and end of its value."""

    __slots__ = ("begin", "code", "end", "value_at")

    def __init__(self, code: int, begin: int, value_at: int, end: int) -> None:
        self.code = code
        self.begin = begin
        self.value_at = value_at
        self.end = end


def sections(data: bytes) -> list[Section]:
    """The sections of a message, which must be in order and fill it; Amqp1Error otherwise."""
    found: list[Section] = []
    at, last = 0, HEADER - 1
    while at < len(data):
        begin = at
        code, at = _descriptor(data, at)
        may_repeat = code in (DATA, SEQUENCE)
        if not (code == last if may_repeat and code == last else last < code <= FOOTER):
            raise Amqp1Error(f"section {code:#x} out of order")
        if found and last in (DATA, SEQUENCE) and code in (SEQUENCE, VALUE) and code != last:
            raise Amqp1Error("a body of two kinds")
        end = _after(data, at, len(data))
        found.append(Section(code, begin, at, end))
        at, last = end, code
    if not found:
        raise Amqp1Error("no section")
    return found


def data_of(data: bytes, section: Section) -> tuple[int, int]:
    """The start and end of the bytes of `section`, a data section."""
    kind = data[section.value_at]
    if kind not in (0xA0, 0xB0):
        raise Amqp1Error("a data section without binary data")
    return section.value_at + (2 if kind == 0xA0 else 5), section.end


def decode(data: bytes, at: int, end: int, depth: int = 0) -> tuple[Typed, int]:
    """Decode the value at `at`; return it and its end, which is at most `end`."""
    after = _after(data, at, end, depth)
    kind = data[at]
    fixed = _FIXED.get(kind)
    if fixed is not None:
        name, size, read = fixed
        return (name, read(data[at + 1 : at + 1 + size])), after
    if kind in (0xA0, 0xA1, 0xA3):
        return _decoded(_STRINGS[kind], data[at + 2 : after]), after
    if kind in (0xB0, 0xB1, 0xB3):
        return _decoded(_STRINGS[kind & 0x0F | 0xA0], data[at + 5 : after]), after
    if kind in (0x45, 0xC0, 0xD0, 0xC1, 0xD1):
        return _decode_compound(data, at, after, depth), after
    return (OPAQUE, data[at:after]), after


def encode(value: Typed) -> bytes:
    """The shortest encoding of `value`."""
    name, content = value
    if name == OPAQUE:
        data: bytes = content
        return data
    if name in _BY_NAME:
        return _encode_string(name, content)
    if name in ("list", "map"):
        return _encode_compound(name, content)
    return _ENCODERS[name](content)


def encode_section(code: int, value: Typed) -> bytes:
    """Encode the section `code` with `value`."""
    return bytes((_DESCRIBED, _SMALL_CODE, code)) + encode(value)


def data_head(size: int) -> bytes:
    """The bytes that precede the content of a data section of `size` bytes."""
    if size <= _SMALL_MAX:
        return bytes((_DESCRIBED, _SMALL_CODE, DATA, 0xA0, size))
    return bytes((_DESCRIBED, _SMALL_CODE, DATA, 0xB0)) + size.to_bytes(4, "big")


def _descriptor(data: bytes, at: int) -> tuple[int, int]:
    if data[at : at + 2] == b"\x00\x53" and at + 2 < len(data):
        return data[at + 2], at + 3
    if data[at : at + 2] == b"\x00\x80" and at + 10 <= len(data):
        return int.from_bytes(data[at + 2 : at + 10], "big"), at + 10
    raise Amqp1Error("no section begins here")


def _after(data: bytes, at: int, end: int, depth: int = 0) -> int:
    """The end of the value at `at`."""
    if at >= end:
        raise Amqp1Error("value cut short")
    kind = data[at]
    width = kind >> 4
    if kind == _DESCRIBED:
        if depth >= TABLE_DEPTH_MAX:
            raise Amqp1Error("nested too deep")
        return _after(data, _after(data, at + 1, end, depth + 1), end, depth + 1)
    if width in _WIDTHS:
        after = at + 1 + _WIDTHS[width]
    elif width in (0xA, 0xC, 0xE):
        after = at + 2 + (data[at + 1] if at + 1 < end else 0)
    elif width in (0xB, 0xD, 0xF):
        after = at + 5 + int.from_bytes(data[at + 1 : at + 5], "big")
    else:
        raise Amqp1Error(f"unknown type {kind:#x}")
    if after > end:
        raise Amqp1Error("value cut short")
    return after


def _decode_compound(data: bytes, at: int, end: int, depth: int) -> Typed:
    kind = data[at]
    if kind == 0x45:
        return "list", ()
    if depth >= TABLE_DEPTH_MAX:
        raise Amqp1Error("nested too deep")
    width = 1 if kind < 0xD0 else 4
    count = int.from_bytes(data[at + 1 + width : at + 1 + 2 * width], "big")
    at += 1 + 2 * width
    items: list[Typed] = []
    for _ in range(count):
        item, at = decode(data, at, end, depth + 1)
        items.append(item)
    if at != end:
        raise Amqp1Error("the number of items does not match the header")
    if kind & 0x0F == 0:
        return "list", tuple(items)
    if count % 2:
        raise Amqp1Error("a key without a value")
    return "map", tuple(zip(items[::2], items[1::2], strict=True))


def _decoded(name: str, data: bytes) -> Typed:
    return name, data if name == "binary" else data.decode("utf-8", "surrogateescape")


def _encode_string(name: str, content: str | bytes) -> bytes:
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    kind = _BY_NAME[name]
    if len(data) <= _SMALL_MAX:
        return bytes((kind, len(data))) + data
    return bytes((kind + 0x10,)) + len(data).to_bytes(4, "big") + data


def _encode_compound(name: str, content: tuple[Any, ...]) -> bytes:
    items = content if name == "list" else [each for pair in content for each in pair]
    if name == "list" and not items:
        return b"\x45"
    data = b"".join(map(encode, items))
    kind = 0xC0 if name == "list" else 0xC1
    if len(data) < _SMALL_MAX and len(items) <= _SMALL_MAX:
        return bytes((kind, len(data) + 1, len(items))) + data
    return bytes((kind + 0x10,)) + (len(data) + 4).to_bytes(4, "big") + len(items).to_bytes(4, "big") + data


def _unsigned(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _float(layout: str) -> Callable[[bytes], float]:
    unpack = Struct(layout).unpack

    def read(data: bytes) -> float:
        number: float = unpack(data)[0]
        return number

    return read


def _same(data: bytes) -> bytes:
    return data


def _true_or_false(data: bytes) -> bool:
    return data != b"\x00"


def _small(kind: int, small: int, size: int, *, signed: bool = False) -> Callable[[int], bytes]:
    """Encode integers with a one-byte form; unsigned 0 has a form without data, `kind` & 0x0F."""

    def write(number: int) -> bytes:
        if (-128 <= number < 128) if signed else (0 < number <= _SMALL_MAX):
            return bytes((small, number & 0xFF))
        if number == 0:
            return bytes((0x43 if size == 4 else 0x44,))
        return bytes((kind,)) + number.to_bytes(size, "big", signed=signed)

    return write


def _whole(kind: int, size: int, *, signed: bool = False) -> Callable[[int], bytes]:
    def write(number: int) -> bytes:
        return bytes((kind,)) + number.to_bytes(size, "big", signed=signed)

    return write


def _packed(kind: int, layout: str) -> Callable[[float], bytes]:
    pack = Struct(layout).pack

    def write(number: float) -> bytes:
        try:
            return bytes((kind,)) + pack(number)
        except (struct.error, OverflowError) as error:
            raise Amqp1Error(str(error)) from None

    return write


# Size of fixed-width values in bytes, by the upper half of the format code.
_WIDTHS = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}
_STRINGS = {0xA0: "binary", 0xA1: "utf8", 0xA3: "symbol"}
_BY_NAME = {name: kind for kind, name in _STRINGS.items()}
_FIXED: dict[int, tuple[str, int, Callable[[bytes], Any]]] = {
    0x40: ("null", 0, lambda _: None),
    0x41: ("boolean", 0, lambda _: True),
    0x42: ("boolean", 0, lambda _: False),
    0x56: ("boolean", 1, _true_or_false),
    0x43: ("uint", 0, _unsigned),
    0x44: ("ulong", 0, _unsigned),
    0x50: ("ubyte", 1, _unsigned),
    0x51: ("byte", 1, _signed),
    0x52: ("uint", 1, _unsigned),
    0x53: ("ulong", 1, _unsigned),
    0x54: ("int", 1, _signed),
    0x55: ("long", 1, _signed),
    0x60: ("ushort", 2, _unsigned),
    0x61: ("short", 2, _signed),
    0x70: ("uint", 4, _unsigned),
    0x71: ("int", 4, _signed),
    0x72: ("float", 4, _float(">f")),
    0x80: ("ulong", 8, _unsigned),
    0x81: ("long", 8, _signed),
    0x82: ("double", 8, _float(">d")),
    0x83: ("timestamp", 8, _signed),
    0x98: ("uuid", 16, _same),
}
_ENCODERS: dict[str, Callable[[Any], bytes]] = {
    "null": lambda _: b"\x40",
    "boolean": lambda value: b"\x41" if value else b"\x42",
    "uint": _small(0x70, 0x52, 4),
    "ulong": _small(0x80, 0x53, 8),
    "ubyte": _whole(0x50, 1),
    "byte": _whole(0x51, 1, signed=True),
    "int": _small(0x71, 0x54, 4, signed=True),
    "long": _small(0x81, 0x55, 8, signed=True),
    "ushort": _whole(0x60, 2),
    "short": _whole(0x61, 2, signed=True),
    "float": _packed(0x72, ">f"),
    "double": _packed(0x82, ">d"),
    "timestamp": _whole(0x83, 8, signed=True),
    "uuid": lambda value: b"\x98" + value,
}
