"""The content header of a message (0-9-1 §4.2.6): its properties, decoded on demand.

    class u16 | weight u16 | body size u64 | flags u16 | property …

Bit 15 of the flags is the first property, bit 2 the last; bit 1 is unused, and bit 0 means that more flags
follow, which no class has ever needed. RabbitMQ does not validate the strings, only their sizes.
"""

import struct
from typing import Any

from warren.errors import AmqpSyntaxError, FrameError
from warren.wire.strings import encode_short_string
from warren.wire.table import Table, check_table, decode_some, decode_table, encode_table

_CONTENT_TYPE = 1 << 15
_CONTENT_ENCODING = 1 << 14
_HEADERS = 1 << 13
_DELIVERY_MODE = 1 << 12
_PRIORITY = 1 << 11
_CORRELATION_ID = 1 << 10
_REPLY_TO = 1 << 9
_EXPIRATION = 1 << 8
_MESSAGE_ID = 1 << 7
_TIMESTAMP = 1 << 6
_TYPE = 1 << 5
_USER_ID = 1 << 4
_APP_ID = 1 << 3
_CLUSTER_ID = 1 << 2
_CONTINUATION = 1

_UP_TO_HEADERS = _CONTENT_TYPE | _CONTENT_ENCODING | _HEADERS | _CONTINUATION

# Where flags and properties begin in a header, and where properties begin after the flags.
_LIST_AT = 12
_FLAGS_SIZE = 2
_BASIC_CLASS = 60


class BasicProperties:
    """The properties of a message; None is a property that is not present."""

    __slots__ = (
        "app_id",
        "cluster_id",
        "content_encoding",
        "content_type",
        "correlation_id",
        "delivery_mode",
        "expiration",
        "headers",
        "message_id",
        "priority",
        "reply_to",
        "timestamp",
        "type",
        "user_id",
    )

    def __init__(
        self,
        *,
        content_type: str | None = None,
        content_encoding: str | None = None,
        headers: Table | None = None,
        delivery_mode: int | None = None,
        priority: int | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        expiration: str | None = None,
        message_id: str | None = None,
        timestamp: int | None = None,
        type: str | None = None,
        user_id: str | None = None,
        app_id: str | None = None,
        cluster_id: str | None = None,
    ) -> None:
        self.content_type = content_type
        self.content_encoding = content_encoding
        self.headers = headers
        self.delivery_mode = delivery_mode
        self.priority = priority
        self.correlation_id = correlation_id
        self.reply_to = reply_to
        self.expiration = expiration
        self.message_id = message_id
        self.timestamp = timestamp
        self.type = type
        self.user_id = user_id
        self.app_id = app_id
        self.cluster_id = cluster_id

    @staticmethod
    def decode(header: bytes) -> "BasicProperties":
        """Decode the payload of a content header frame."""
        return _decoded(header, _LIST_AT)

    @staticmethod
    def decode_list(property_list: bytes) -> "BasicProperties":
        """Decode a property list: flags and properties."""
        return _decoded(property_list, 0)

    def encode(self, body_size: int) -> bytes:
        """Encode the payload of a content header frame for a body of `body_size` bytes."""
        return struct.pack(">HHQ", _BASIC_CLASS, 0, body_size) + self.encode_list()

    def encode_list(self) -> bytes:
        """Encode a property list: flags and properties."""
        flags = 0
        parts: list[bytes] = [b""]
        for flag, name, kind in _PROPERTIES:
            value = getattr(self, name)
            if value is not None:
                flags |= flag
                parts.append(_encoded(kind, value))
        parts[0] = flags.to_bytes(2, "big")
        return b"".join(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BasicProperties) and all(
            getattr(self, name) == getattr(other, name) for _, name, _ in _PROPERTIES
        )

    def __repr__(self) -> str:
        named = [(name, getattr(self, name)) for _, name, _ in _PROPERTIES]
        return (
            f"BasicProperties({', '.join(f'{name}={value!r}' for name, value in named if value is not None)})"
        )


class PropertyScan:
    """Scans property lists for what the broker itself needs, without creating objects; it is reusable.

    Attributes `…_at` are the place of a string, for `text_at`, or of the header entries, for `decode_table`.
    A property that is not present has place 0, or number -1.
    """

    __slots__ = (
        "delivery_mode",
        "expiration_at",
        "flags",
        "headers_at",
        "headers_end",
        "priority",
        "reply_to_at",
        "user_id_at",
    )

    def __init__(self) -> None:
        self._forget()

    def scan(self, data: bytes, start: int, end: int) -> None:
        """Scan flags and properties in `data` from `start` to `end`; every byte must be valid."""
        raw = data
        if end - start < _FLAGS_SIZE:
            raise FrameError("content header cut short")
        flags = raw[start] << 8 | raw[start + 1]
        self._forget()
        self.flags = flags
        at = start + _FLAGS_SIZE
        if flags & _UP_TO_HEADERS:
            at = self._scan_up_to_headers(data, at, end)
        if flags & _DELIVERY_MODE:
            self.delivery_mode = _octet(raw, at, end)
            at += 1
        if flags & _PRIORITY:
            self.priority = _octet(raw, at, end)
            at += 1
        if flags & _CORRELATION_ID:
            at = _after_string(raw, at, end)
        if flags & _REPLY_TO:
            self.reply_to_at = at
            at = _after_string(raw, at, end)
        if flags & _EXPIRATION:
            self.expiration_at = at
            at = _after_string(raw, at, end)
        if flags & _MESSAGE_ID:
            at = _after_string(raw, at, end)
        if flags & _TIMESTAMP:
            at += 8
        if flags & _TYPE:
            at = _after_string(raw, at, end)
        if flags & _USER_ID:
            self.user_id_at = at
            at = _after_string(raw, at, end)
        if flags & _APP_ID:
            at = _after_string(raw, at, end)
        if flags & _CLUSTER_ID:
            at = _after_string(raw, at, end)
        if at != end:
            raise FrameError("content header cut short" if at > end else "content header too long")

    def _scan_up_to_headers(self, data: bytes, at: int, end: int) -> int:
        raw = data
        flags = self.flags
        if flags & _CONTINUATION:
            raise FrameError("content header with more flags than there are properties")
        if flags & _CONTENT_TYPE:
            at = _after_string(raw, at, end)
        if flags & _CONTENT_ENCODING:
            at = _after_string(raw, at, end)
        if flags & _HEADERS:
            self.headers_at = at + 4
            at = _after_table(raw, at, end)
            self.headers_end = at
            check_table(data, self.headers_at, self.headers_end)
        return at

    def _forget(self) -> None:
        self.flags = 0
        self.delivery_mode = -1
        self.priority = -1
        self.headers_at = 0
        self.headers_end = 0
        self.reply_to_at = 0
        self.expiration_at = 0
        self.user_id_at = 0


def decode_headers(property_list: bytes) -> Table:
    """Decode the headers of a scanned property list; empty if there are none."""
    at = _headers_at(property_list)
    if not at:
        return {}
    return decode_table(property_list, at, _after_table(property_list, at - 4, len(property_list)))


def decode_some_headers(property_list: bytes, wanted: dict[str, int]) -> Table:
    """Decode those headers of a scanned property list that are in `wanted`."""
    at = _headers_at(property_list)
    if not at:
        return {}
    return decode_some(property_list, at, _after_table(property_list, at - 4, len(property_list)), wanted)


def _headers_at(property_list: bytes) -> int:
    """The place of the header entries; 0 if there are none."""
    data = property_list
    flags = data[0] << 8 | data[1]
    if not flags & _HEADERS:
        return 0
    at, end = _FLAGS_SIZE, len(property_list)
    if flags & _CONTENT_TYPE:
        at = _after_string(data, at, end)
    if flags & _CONTENT_ENCODING:
        at = _after_string(data, at, end)
    return at + 4


def text_at(header: bytes, at: int) -> str:
    """Decode the short string at `at`, a place found by a scan of `header`."""
    data = header
    end = _after_string(data, at, len(header))
    return header[at + 1 : end].decode("utf-8", "surrogateescape")


def _decoded(header: bytes, start: int) -> BasicProperties:
    # The sizes are valid after a scan.
    PropertyScan().scan(header, start, len(header))
    data = header
    flags = data[start] << 8 | data[start + 1]
    at = start + _FLAGS_SIZE
    properties = BasicProperties()
    for flag, name, kind in _PROPERTIES:
        if not flags & flag:
            continue
        if kind == _TEXT:
            setattr(properties, name, text_at(header, at))
            at += 1 + data[at]
        elif kind == _TABLE:
            value_at, at = at + 4, _after_table(data, at, len(header))
            setattr(properties, name, decode_table(header, value_at, at))
        elif kind == _OCTET:
            setattr(properties, name, data[at])
            at += 1
        else:
            setattr(properties, name, int.from_bytes(header[at : at + 8], "big"))
            at += 8
    return properties


def _encoded(kind: str, value: Any) -> bytes:
    if kind == _TEXT:
        return encode_short_string(value)
    if kind == _TABLE:
        return encode_table(value)
    size = 1 if kind == _OCTET else 8
    if not 0 <= value < 1 << 8 * size:
        raise AmqpSyntaxError(f"number {value} does not fit {size} bytes")
    return int(value).to_bytes(size, "big")


def _after_string(data: bytes, at: int, end: int) -> int:
    """The end of the short string at `at`, which may be past `end`."""
    if at >= end:
        raise FrameError("content header cut short")
    return at + 1 + data[at]


def _after_table(data: bytes, at: int, end: int) -> int:
    """The end of the table at `at`, which is not past `end`."""
    if at + 4 > end:
        raise FrameError("content header cut short")
    size = data[at] << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3]
    if size > end - at - 4:
        raise FrameError("content header cut short")
    return at + 4 + size


def _octet(data: bytes, at: int, end: int) -> int:
    if at >= end:
        raise FrameError("content header cut short")
    return data[at]


_TEXT = "text"
_TABLE = "table"
_OCTET = "octet"
_SECONDS = "seconds"

# In wire order.
_PROPERTIES = (
    (_CONTENT_TYPE, "content_type", _TEXT),
    (_CONTENT_ENCODING, "content_encoding", _TEXT),
    (_HEADERS, "headers", _TABLE),
    (_DELIVERY_MODE, "delivery_mode", _OCTET),
    (_PRIORITY, "priority", _OCTET),
    (_CORRELATION_ID, "correlation_id", _TEXT),
    (_REPLY_TO, "reply_to", _TEXT),
    (_EXPIRATION, "expiration", _TEXT),
    (_MESSAGE_ID, "message_id", _TEXT),
    (_TIMESTAMP, "timestamp", _SECONDS),
    (_TYPE, "type", _TEXT),
    (_USER_ID, "user_id", _TEXT),
    (_APP_ID, "app_id", _TEXT),
    (_CLUSTER_ID, "cluster_id", _TEXT),
)
