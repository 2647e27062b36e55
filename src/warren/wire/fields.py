"""The types of method arguments (0-9-1 §4.2.5), with their encoding and decoding.

    payload | class u16 | method u16 | argument …          up to eight bits side by side share a byte

A payload that is too short raises `IndexError`, which `Method.decode` turns into an AMQP error.
"""

from typing import Any

from warren.errors import FrameError
from warren.wire.strings import decode_text, encode_long_string, encode_short_string
from warren.wire.table import decode_table, encode_table

# Class and method.
_IDS_SIZE = 4


class FieldType:
    """Encodes and decodes one type of argument."""

    __slots__ = ()

    def read(self, payload: bytes, at: int, values: list[Any]) -> int:
        """Append the value at `at`; return the start of the next argument."""
        raise NotImplementedError

    def after(self, payload: bytes, at: int) -> int:
        """Return the start of the next argument, without decoding this one."""
        raise NotImplementedError

    def write(self, values: list[Any], at: int, parts: list[bytes]) -> int:
        """Append the encoding of the value at `at`; return the index of the next type's first value."""
        raise NotImplementedError


class Bits(FieldType):
    """Up to eight bits, starting at the low end of one byte (0-9-1 §4.2.5.2)."""

    __slots__ = ("_choices", "_count")

    def __init__(self, count: int) -> None:
        self._count = count
        self._choices = [tuple(octet >> place & 1 != 0 for place in range(count)) for octet in range(256)]

    def read(self, payload: bytes, at: int, values: list[Any]) -> int:
        """Append a bool for each bit; unused bits are ignored."""
        if at >= len(payload):
            raise IndexError(at)
        values.extend(self._choices[payload[at]])
        return at + 1

    def after(self, payload: bytes, at: int) -> int:
        """Skip one byte."""
        return at + 1

    def write(self, values: list[Any], at: int, parts: list[bytes]) -> int:
        """Append one byte for all bits."""
        octet = 0
        for place in range(self._count):
            if values[at + place]:
                octet |= 1 << place
        parts.append(bytes((octet,)))
        return at + self._count


class Unsigned(FieldType):
    """An unsigned integer of `size` bytes, most significant first."""

    __slots__ = ("_size",)

    def __init__(self, size: int) -> None:
        self._size = size

    def read(self, payload: bytes, at: int, values: list[Any]) -> int:
        """Append an int."""
        if at + self._size > len(payload):
            raise IndexError(at)
        number = 0
        for place in range(self._size):
            number = (number << 8) + payload[at + place]
        values.append(number)
        return at + self._size

    def after(self, payload: bytes, at: int) -> int:
        """Skip `size` bytes."""
        return at + self._size

    def write(self, values: list[Any], at: int, parts: list[bytes]) -> int:
        """Append the integer; OverflowError if it does not fit."""
        parts.append(values[at].to_bytes(self._size, "big"))
        return at + 1


class ShortString(FieldType):
    """A string of up to 255 bytes of UTF-8."""

    __slots__ = ()

    def read(self, payload: bytes, at: int, values: list[Any]) -> int:
        """Append a str; FrameError if it is not UTF-8."""
        end = self.after(payload, at)
        if end > len(payload):
            raise IndexError(at)
        try:
            values.append(payload[at + 1 : end].decode("utf-8"))
        except UnicodeDecodeError:
            # RabbitMQ 3.10.8, measured: the error names no method.
            raise FrameError("Malformed UTF-8 in shortstr", method_index=0) from None
        return end

    def after(self, payload: bytes, at: int) -> int:
        """Skip the string, whose size is in the first byte."""
        if at >= len(payload):
            raise IndexError(at)
        return at + 1 + payload[at]

    def write(self, values: list[Any], at: int, parts: list[bytes]) -> int:
        """Append the string; AmqpSyntaxError for more than 255 bytes."""
        parts.append(encode_short_string(values[at]))
        return at + 1


class RawShortString(ShortString):
    """A string of up to 255 arbitrary bytes: RabbitMQ does not validate the names in basic.publish."""

    __slots__ = ()

    def read(self, payload: bytes, at: int, values: list[Any]) -> int:
        """Append a str that represents the bytes."""
        end = self.after(payload, at)
        if end > len(payload):
            raise IndexError(at)
        values.append(decode_text(payload[at + 1 : end]))
        return end


class LongString(FieldType):
    """Arbitrary bytes, preceded by their number in four bytes."""

    __slots__ = ()

    def read(self, payload: bytes, at: int, values: list[Any]) -> int:
        """Append a str that represents the bytes."""
        end = self.after(payload, at)
        if end > len(payload):
            raise IndexError(at)
        values.append(decode_text(payload[at + 4 : end]))
        return end

    def after(self, payload: bytes, at: int) -> int:
        """Skip the string, whose size is in the first four bytes."""
        if at + 4 > len(payload):
            raise IndexError(at)
        size = 0
        for place in range(4):
            size = (size << 8) + payload[at + place]
        return at + 4 + size

    def write(self, values: list[Any], at: int, parts: list[bytes]) -> int:
        """Append the bytes that the str represents."""
        parts.append(encode_long_string(values[at]))
        return at + 1


class FieldTable(LongString):
    """A field table."""

    __slots__ = ()

    def read(self, payload: bytes, at: int, values: list[Any]) -> int:
        """Append a dict; FrameError for a malformed table."""
        end = self.after(payload, at)
        if end > len(payload):
            raise IndexError(at)
        values.append(decode_table(payload, at + 4, end))
        return end

    def write(self, values: list[Any], at: int, parts: list[bytes]) -> int:
        """Append the table; AmqpSyntaxError for an unsupported key or value."""
        parts.append(encode_table(values[at]))
        return at + 1


def read_all(field_types: tuple[FieldType, ...], payload: bytes) -> list[Any]:
    """Decode the arguments, which must fill `payload`; IndexError if they do not."""
    values: list[Any] = []
    at = _IDS_SIZE
    for found in field_types:
        field_type: FieldType = found
        at = field_type.read(payload, at, values)
    if at != len(payload):
        raise IndexError(at)
    return values


def is_whole(field_types: tuple[FieldType, ...], payload: bytes) -> bool:
    """True if the sizes of the arguments fill `payload`; their values are not checked."""
    at = _IDS_SIZE
    try:
        for found in field_types:
            field_type: FieldType = found
            at = field_type.after(payload, at)
    except IndexError:
        return False
    return at == len(payload)


def write_all(field_types: tuple[FieldType, ...], ids: bytes, values: list[Any]) -> bytes:
    """Encode `ids` and then `values`, which must be as many as the types take."""
    parts = [ids]
    at = 0
    for found in field_types:
        field_type: FieldType = found
        at = field_type.write(values, at, parts)
    return b"".join(parts)


def assign(target: object, names: tuple[str, ...], values: list[Any]) -> None:
    """Set the first attributes among `names` to `values`, of which there are no more than names."""
    for at in range(len(values)):
        setattr(target, names[at], values[at])


BIT = Bits(1)
OCTET = Unsigned(1)
SHORT = Unsigned(2)
LONG = Unsigned(4)
LONG_LONG = Unsigned(8)
SHORT_STRING = ShortString()
RAW_SHORT_STRING = RawShortString()
LONG_STRING = LongString()
TABLE = FieldTable()
