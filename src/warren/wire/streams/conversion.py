"""Converts stream messages (AMQP 1.0) to address, property list and body and back, as RabbitMQ does.

    x-exchange, x-routing-key                  annotations       ◀──▶   address
    x-basic-priority, -delivery-mode, -expiration                ◀──▶   priority, delivery_mode, expiration
    message-id, user-id, reply-to, correlation-id, content-type,
    content-encoding, creation-time            properties        ◀──▶   the same
    x-basic-type, x-basic-app-id               app. properties   ◀──▶   type, app_id
    all others                                 app. properties   ◀──▶   headers, but tables and arrays

The type of an id that is no string is in a header, x-message-id-type or x-correlation-id-type. What 0-9-1
cannot represent is not lost: if a client's message would not be restored unchanged, all sections before the
body are kept in an additional header, `SECTIONS_HEADER`. Content that is not AMQP 1.0 is restored unchanged
as well.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections import OrderedDict
from typing import Any
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from warren.errors import AmqpError
from warren.limits import NAME_SIZE_MAX, STREAM_HEAD_SIZE_MAX, STREAM_HEADS_CACHED_MAX
from warren.wire import amqp1
from warren.wire.amqp1 import NULL, Amqp1Error, Typed
from warren.wire.properties import BasicProperties
from warren.wire.table import (
    Float32,
    Int8,
    Int16,
    Int32,
    Table,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Value,
)

SECTIONS_HEADER = "x-amqp-1.0-sections"
# The header that filters match for consumers over AMQP.
FILTER_HEADER = "x-stream-filter-value"
# The type of a message whose body consists of AMQP 1.0 sections other than data.
SECTIONS_TYPE = "amqp-1.0"

_ID_TYPES = {"message_id": "x-message-id-type", "correlation_id": "x-correlation-id-type"}
_MESSAGE_ID, _USER_ID, _REPLY_TO, _CORRELATION_ID, _TYPE, _ENCODING, _CREATED = 0, 1, 4, 5, 6, 7, 9
_NO_PROPERTIES = b"\0\0"
_PLAIN_DATA = b"\x00\x53\x75"


class MessageHead(Struct, frozen=True):
    """The part of a message before its body."""

    # Exchange and routing key, if the message has both.
    exchange: str | None
    routing_key: str | None
    property_list: bytes
    priority: int
    has_headers: bool
    has_expiration: bool


NO_HEAD = MessageHead(None, None, _NO_PROPERTIES, 0, has_headers=False, has_expiration=False)


class MessageConverter:
    """Converts messages of one connection; it caches recent heads."""

    __slots__ = ("_filtered", "_known")

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, MessageHead] = OrderedDict()
        self._filtered: OrderedDict[tuple[MessageHead, str], MessageHead] = OrderedDict()

    def split(self, message: bytes) -> tuple[MessageHead, int, int, bool]:
        """Return the head, the start and end of the body, and whether the body is one data section's content.

        Otherwise the body is the unchanged rest of the message: other sections, or not AMQP 1.0.
        """
        if message[:3] == _PLAIN_DATA:
            found = _only_data(message)
            if found is not None:
                return NO_HEAD, *found, True
        try:
            sections = amqp1.sections(message)
            body = next(section for section in sections if section.code >= amqp1.DATA)
            is_data = body is sections[-1] and body.code == amqp1.DATA
            head = self._head(message[: body.begin], is_data=is_data)
            return (
                (head, *amqp1.data_of(message, body), True)
                if is_data
                else (head, body.begin, len(message), False)
            )
        except (Amqp1Error, StopIteration):
            return NO_HEAD, 0, len(message), False

    def filtered(self, head: MessageHead, value: str) -> MessageHead:
        """Return `head` with the filter value `value`, as a header for consumers over AMQP."""
        found = self._filtered.get((head, value))
        if found is None:
            found = self._filtered[head, value] = _with_filter(head, value)
            if len(self._filtered) > STREAM_HEADS_CACHED_MAX:
                self._filtered.popitem(last=False)
        return found

    def _head(self, data: bytes, *, is_data: bool) -> MessageHead:
        key = data if is_data else data + b"\x00"
        head = self._known.get(key)
        if head is None:
            head = self._known[key] = read_head(data, is_data=is_data)
            if len(self._known) > STREAM_HEADS_CACHED_MAX:
                self._known.popitem(last=False)
        return head


def _with_filter(head: MessageHead, value: str) -> MessageHead:
    """The filter value is not part of the message: stream clients receive the message as sent."""
    properties = BasicProperties.decode_list(head.property_list)
    is_addressed = head.exchange is not None and head.routing_key is not None
    address = (head.exchange, head.routing_key) if is_addressed else (None, None)
    sections = write_head(properties, *address, is_kept=True)
    properties.headers = {**(properties.headers or {}), FILTER_HEADER: value, SECTIONS_HEADER: sections}
    return replace(head, property_list=properties.encode_list(), has_headers=True)


def _only_data(message: bytes) -> tuple[int, int] | None:
    """The start and end of the content of a message that consists of one data section."""
    size = len(message)
    if size >= 5 and message[3] == 0xA0 and message[4] == size - 5:
        return 5, size
    if size >= 8 and message[3] == 0xB0 and int.from_bytes(message[4:8], "big") == size - 8:
        return 8, size
    return None


def read_head(data: bytes, *, is_data: bool) -> MessageHead:
    """Decode `data`, the sections before a body; Amqp1Error if they are invalid."""
    if len(data) > STREAM_HEAD_SIZE_MAX:
        raise Amqp1Error("the sections before the body are too large")
    sections = _values(data)
    annotations = _texts(sections.get(amqp1.ANNOTATIONS))
    properties = BasicProperties()
    headers = _headers(properties, sections.get(amqp1.APPLICATION_PROPERTIES))
    if not is_data and properties.type is None:
        properties.type = SECTIONS_TYPE
    _take_properties(properties, headers, sections.get(amqp1.PROPERTIES))
    _take_annotations(properties, annotations)
    exchange, key = (_short(annotations.get(name)) for name in ("x-exchange", "x-routing-key"))
    if exchange is None or key is None:
        exchange = key = None
    properties.headers = headers or None
    if write_head(properties, exchange, key, is_kept=True) != _canonical(sections):
        properties.headers = {**headers, SECTIONS_HEADER: data}
    try:
        property_list = properties.encode_list()
    except AmqpError as error:
        raise Amqp1Error(str(error)) from None
    return MessageHead(
        exchange, key, property_list, properties.priority or 0,
        has_headers=properties.headers is not None, has_expiration=properties.expiration is not None,
    )  # fmt: skip


def write_head(
    properties: BasicProperties, exchange: str | None, routing_key: str | None, *, is_kept: bool
) -> bytes:
    """Encode `properties` as sections before a body; `is_kept` if it was an AMQP 1.0 message before."""
    headers: Table = dict(properties.headers or {})
    if is_kept:
        sections = headers.pop(SECTIONS_HEADER, None)
        if isinstance(sections, bytes):
            return sections
    annotations = [
        ("x-routing-key", "utf8", routing_key),
        ("x-exchange", "utf8", exchange),
        ("x-basic-priority", "ubyte", properties.priority),
        ("x-basic-delivery-mode", "ubyte", properties.delivery_mode),
        ("x-basic-expiration", "utf8", properties.expiration),
    ]
    created = None if properties.timestamp is None else ("timestamp", properties.timestamp * 1000)
    fields: list[Typed] = [NULL] * 10
    fields[_MESSAGE_ID] = _id(properties.message_id, headers, "x-message-id-type", is_kept)
    fields[_USER_ID] = (
        NULL
        if properties.user_id is None
        else ("binary", properties.user_id.encode("utf-8", "surrogateescape"))
    )
    fields[_REPLY_TO] = _optional("utf8", properties.reply_to)
    fields[_CORRELATION_ID] = _id(properties.correlation_id, headers, "x-correlation-id-type", is_kept)
    fields[_TYPE] = _optional("symbol", properties.content_type)
    fields[_ENCODING] = _optional("symbol", properties.content_encoding)
    fields[_CREATED] = created if created is not None and created[1] < 1 << 63 else NULL
    kind = None if properties.type == SECTIONS_TYPE else properties.type
    pairs = [
        ("x-basic-type", _optional("utf8", kind)),
        ("x-basic-app-id", _optional("utf8", properties.app_id)),
    ]
    application = [(("utf8", name), value) for name, value in pairs if value is not NULL]
    for name, value in headers.items():
        typed = _typed(value)
        if typed is not None:
            application.append((("utf8", name), typed))
    return _encoded(
        tuple((("symbol", name), (kind_, value)) for name, kind_, value in annotations if value is not None),
        _trimmed(fields),
        tuple(application),
    )


# --- reading ----------------------------------------------------------------------------------------


def _values(data: bytes) -> dict[int, Typed]:
    if not data:
        return {}
    found = amqp1.sections(data)
    return {section.code: amqp1.decode(data, section.value_at, section.end)[0] for section in found}


def _canonical(sections: dict[int, Typed]) -> bytes:
    """The sections as `write_head` would write them from their decoded content."""
    parts = []
    for code, (kind, value) in sections.items():
        if code == amqp1.PROPERTIES and kind == "list":
            value = _trimmed(list(value))
        parts.append(amqp1.encode_section(code, (kind, value)))
    return b"".join(parts)


def _texts(section: Typed | None) -> dict[str, Typed]:
    """The entries of an annotations map by key (symbols)."""
    if section is None or section[0] != "map":
        return {}
    return {key[1]: value for key, value in section[1] if key[0] == "symbol"}


def _headers(properties: BasicProperties, section: Typed | None) -> Table:
    headers: Table = {}
    if section is None or section[0] != "map":
        return headers
    for key, typed in section[1]:
        name = _short(key)
        if name is None or name == SECTIONS_HEADER:
            continue
        if name == "x-basic-type" and typed[0] == "utf8":
            properties.type = _short(typed)
        elif name == "x-basic-app-id" and typed[0] == "utf8":
            properties.app_id = _short(typed)
        else:
            value = _untyped(typed)
            if value is not None or typed == NULL:
                headers[name] = value
    return headers


def _take_properties(properties: BasicProperties, headers: Table, section: Typed | None) -> None:
    fields = list(section[1]) if section is not None and section[0] == "list" else []
    fields += [NULL] * (10 - len(fields))
    _take_id(properties, headers, "message_id", fields[_MESSAGE_ID])
    user = fields[_USER_ID]
    if user[0] == "binary" and len(user[1]) <= NAME_SIZE_MAX:
        properties.user_id = user[1].decode("utf-8", "surrogateescape")
    properties.reply_to = _short(fields[_REPLY_TO])
    _take_id(properties, headers, "correlation_id", fields[_CORRELATION_ID])
    properties.content_type = _short(fields[_TYPE])
    properties.content_encoding = _short(fields[_ENCODING])
    created = fields[_CREATED]
    if created[0] == "timestamp" and created[1] >= 0:
        properties.timestamp = created[1] // 1000


def _take_id(properties: BasicProperties, headers: Table, name: str, value: Typed) -> None:
    kind, content = value
    if kind == "ulong":
        text = str(content)
    elif kind == "uuid":
        text = str(UUID(bytes=content))
    elif kind == "binary":
        text = b64encode(content).decode()
    else:
        setattr(properties, name, _short(value) if kind == "utf8" else None)
        return
    if len(text) <= NAME_SIZE_MAX:
        setattr(properties, name, text)
        headers[_ID_TYPES[name]] = kind


def _take_annotations(properties: BasicProperties, annotations: dict[str, Typed]) -> None:
    priority, mode = annotations.get("x-basic-priority", NULL), annotations.get("x-basic-delivery-mode", NULL)
    properties.priority = priority[1] if priority[0] == "ubyte" else None
    properties.delivery_mode = mode[1] if mode[0] == "ubyte" else None
    properties.expiration = _short(annotations.get("x-basic-expiration"))


def _short(value: Typed | None) -> str | None:
    """The text of `value` if it is a string that fits 0-9-1."""
    if value is None or value[0] not in ("utf8", "symbol"):
        return None
    text: str = value[1]
    return text if len(text.encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX else None


def _untyped(value: Typed) -> Value:
    """Convert an AMQP 1.0 value to a header value; None if it has no equivalent."""
    kind, content = value
    if kind in _TO_HEADER:
        return _TO_HEADER[kind](content)
    if kind == "timestamp":
        return Timestamp(content // 1000) if content >= 0 else None
    return str(UUID(bytes=content)) if kind == "uuid" else None


# --- writing ----------------------------------------------------------------------------------------


def _optional(kind: str, value: str | None) -> Typed:
    return NULL if value is None else (kind, value)


def _id(text: str | None, headers: Table, header: str, is_kept: bool) -> Typed:
    """Convert the 0-9-1 id `text`, to the type named in a header if the broker has set it."""
    kind = headers.pop(header, None) if is_kept and text is not None else None
    if text is None:
        return NULL
    try:
        if kind == "ulong":
            return "ulong", int(text) & 0xFFFF_FFFF_FFFF_FFFF
        if kind == "uuid":
            return "uuid", UUID(text).bytes
        if kind == "binary":
            return "binary", b64decode(text, validate=True)
    except (ValueError, Base64Error):
        pass
    if kind is not None:
        headers[header] = kind
    return "utf8", text


def _typed(value: Value) -> Typed | None:
    """Convert a header value to AMQP 1.0; None for a table, array or decimal, which RabbitMQ omits."""
    if value is None:
        return NULL
    kind = _FROM_HEADER.get(type(value))
    if kind is None:
        return None
    if kind == "timestamp":
        milliseconds = int(value) * 1000
        return (kind, milliseconds) if milliseconds < 1 << 63 else None
    return kind, value


def _trimmed(fields: list[Typed]) -> tuple[Typed, ...]:
    while fields and fields[-1] == NULL:
        fields.pop()
    return tuple(fields)


def _encoded(annotations: tuple[Any, ...], fields: tuple[Typed, ...], application: tuple[Any, ...]) -> bytes:
    parts = []
    if annotations:
        parts.append(amqp1.encode_section(amqp1.ANNOTATIONS, ("map", annotations)))
    if fields:
        parts.append(amqp1.encode_section(amqp1.PROPERTIES, ("list", fields)))
    if application:
        parts.append(amqp1.encode_section(amqp1.APPLICATION_PROPERTIES, ("map", application)))
    return b"".join(parts)


_FROM_HEADER: dict[type, str] = {
    str: "utf8", bool: "boolean", Int8: "byte", UInt8: "ubyte", Int16: "short", UInt16: "ushort",
    Int32: "int", UInt32: "uint", int: "long", UInt64: "ulong", Timestamp: "timestamp", Float32: "float",
    float: "double", bytes: "binary",
}  # fmt: skip
_TO_HEADER: dict[str, type] = {
    "utf8": str, "symbol": str, "boolean": bool, "byte": Int8, "ubyte": UInt8, "short": Int16,
    "ushort": UInt16, "int": Int32, "uint": UInt32, "long": int, "ulong": UInt64, "float": Float32,
    "double": float, "binary": bytes,
}  # fmt: skip
