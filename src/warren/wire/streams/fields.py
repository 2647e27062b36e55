"""The field types of commands.

    text     │ size i16 │ bytes │               size -1 is null, which is decoded as empty
    bytes   │ size i32 │ bytes │
    array    │ count u32 │ element … │

Invariant: no size or count is used before it was checked against the size of the frame.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from warren.wire.streams.codes import MalformedFrame, OffsetType

T = TypeVar("T")

_NONE_TEXT = 0xFFFF
_NONE_BYTES = 0xFFFF_FFFF


class FieldReader:
    """Decodes the fields of one frame."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self._at = at

    @property
    def is_at_end(self) -> bool:
        """True if all fields were read."""
        return self._at == len(self._data)

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes; MalformedFrame if there are fewer."""
        end = self._at + size
        if end > len(self._data):
            raise MalformedFrame("frame cut short")
        data = self._data[self._at : end]
        self._at = end
        return data

    def number(self, size: int) -> int:
        """Return an unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size), "big")


class FieldCodec(Struct, Generic[T], frozen=True):
    """Encodes and decodes one type of field."""

    read: Callable[[FieldReader], T]
    write: Callable[[bytearray, T], None]


class Offset(Struct, frozen=True):
    """The start of a subscription: `value` is an offset, or a time in ms, depending on `type`."""

    type: OffsetType
    value: int = 0


class Version(Struct, frozen=True):
    """The range of supported versions of a command."""

    key: int
    first: int
    last: int


class BrokerReference(Struct, frozen=True):
    """The advertised address of a broker, referred to by `number`."""

    number: int
    host: str
    port: int


class Placement(Struct, frozen=True):
    """The brokers of a stream; `leader` is -1 unless `code` is OK."""

    stream: str
    code: int
    leader: int
    replicas: tuple[int, ...]


class PublishingError(Struct, frozen=True):
    """A refused message, with the code."""

    sequence: int
    code: int


def _number(size: int, *, signed: bool = False) -> FieldCodec[int]:
    def read(reader: FieldReader) -> int:
        return int.from_bytes(reader.take(size), "big", signed=signed)

    def write(out: bytearray, value: int) -> None:
        out += value.to_bytes(size, "big", signed=signed)

    return FieldCodec(read, write)


def _read_text(reader: FieldReader) -> str:
    size = reader.number(2)
    return "" if size == _NONE_TEXT else reader.take(size).decode("utf-8", "surrogateescape")


def _write_text(out: bytearray, value: str) -> None:
    data = value.encode("utf-8", "surrogateescape")
    out += len(data).to_bytes(2, "big")
    out += data


def _read_bytes(reader: FieldReader) -> bytes:
    size = reader.number(4)
    return b"" if size == _NONE_BYTES else reader.take(size)


def _write_bytes(out: bytearray, value: bytes) -> None:
    out += len(value).to_bytes(4, "big")
    out += value


def _array(kind: FieldCodec[T]) -> FieldCodec[tuple[T, ...]]:
    def read(reader: FieldReader) -> tuple[T, ...]:
        # Each element takes at least one byte, so that `take` stops at a false count.
        return tuple(kind.read(reader) for _ in range(reader.number(4)))

    def write(out: bytearray, value: tuple[T, ...]) -> None:
        out += len(value).to_bytes(4, "big")
        for element in value:
            kind.write(out, element)

    return FieldCodec(read, write)


def _read_pairs(reader: FieldReader) -> dict[str, str]:
    return {_read_text(reader): _read_text(reader) for _ in range(reader.number(4))}


def _write_pairs(out: bytearray, value: dict[str, str]) -> None:
    out += len(value).to_bytes(4, "big")
    for name, text in value.items():
        _write_text(out, name)
        _write_text(out, text)


def _read_optional_pairs(reader: FieldReader) -> dict[str, str]:
    return {} if reader.is_at_end else _read_pairs(reader)


def _read_offset(reader: FieldReader) -> Offset:
    number = reader.number(2)
    if number > OffsetType.TIMESTAMP:
        raise MalformedFrame(f"unknown type of offset {number}")
    type_ = OffsetType(number)
    if type_ is OffsetType.OFFSET:
        return Offset(type_, U64.read(reader))
    return Offset(type_, I64.read(reader) if type_ is OffsetType.TIMESTAMP else 0)


def _read_optional_offset(reader: FieldReader) -> Offset:
    if reader.is_at_end:
        return Offset(OffsetType.NONE)
    offset = _read_offset(reader)
    if not reader.is_at_end:
        # Some clients send an unused value with each type.
        reader.take(8)
    return offset


def _write_offset(out: bytearray, value: Offset) -> None:
    out += value.type.to_bytes(2, "big")
    if value.type is OffsetType.OFFSET:
        U64.write(out, value.value)
    elif value.type is OffsetType.TIMESTAMP:
        I64.write(out, value.value)


def _read_version(reader: FieldReader) -> Version:
    return Version(reader.number(2), reader.number(2), reader.number(2))


def _write_version(out: bytearray, value: Version) -> None:
    for number in (value.key, value.first, value.last):
        out += number.to_bytes(2, "big")


def _read_broker(reader: FieldReader) -> BrokerReference:
    return BrokerReference(reader.number(2), _read_text(reader), reader.number(4))


def _write_broker(out: bytearray, value: BrokerReference) -> None:
    out += value.number.to_bytes(2, "big")
    _write_text(out, value.host)
    out += value.port.to_bytes(4, "big")


def _read_placement(reader: FieldReader) -> Placement:
    return Placement(_read_text(reader), reader.number(2), _I16.read(reader), _array(U16).read(reader))


def _write_placement(out: bytearray, value: Placement) -> None:
    _write_text(out, value.stream)
    out += value.code.to_bytes(2, "big")
    _I16.write(out, value.leader)
    _array(U16).write(out, value.replicas)


def _read_failure(reader: FieldReader) -> PublishingError:
    return PublishingError(reader.number(8), reader.number(2))


def _write_failure(out: bytearray, value: PublishingError) -> None:
    out += value.sequence.to_bytes(8, "big")
    out += value.code.to_bytes(2, "big")


def _read_counter(reader: FieldReader) -> tuple[str, int]:
    return _read_text(reader), I64.read(reader)


def _write_counter(out: bytearray, value: tuple[str, int]) -> None:
    _write_text(out, value[0])
    I64.write(out, value[1])


U8 = _number(1)
U16 = _number(2)
U32 = _number(4)
U64 = _number(8)
I64 = _number(8, signed=True)
_I16 = _number(2, signed=True)
TEXT = FieldCodec(_read_text, _write_text)
BYTES = FieldCodec(_read_bytes, _write_bytes)
TEXTS = _array(TEXT)
SEQUENCES = _array(U64)
PAIRS = FieldCodec(_read_pairs, _write_pairs)
# Pairs at the end of a command, which may be missing.
OPTIONAL_PAIRS = FieldCodec(_read_optional_pairs, _write_pairs)
OFFSET = FieldCodec(_read_offset, _write_offset)
OPTIONAL_OFFSET = FieldCodec(_read_optional_offset, _write_offset)
VERSIONS = _array(FieldCodec(_read_version, _write_version))
BROKERS = _array(FieldCodec(_read_broker, _write_broker))
PLACEMENTS = _array(FieldCodec(_read_placement, _write_placement))
FAILURES = _array(FieldCodec(_read_failure, _write_failure))
COUNTERS = _array(FieldCodec(_read_counter, _write_counter))
