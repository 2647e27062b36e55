"""Decodes the deliveries of a consumer into columns, many messages at a time.

A delivery is three frames or more: basic.deliver, the content header, and the body in pieces.

    1 | channel u16 | size u32 | 003c 003c | tag of the consumer | delivery tag u64 | redelivered u8 |
        exchange | routing key | ce
    2 | channel u16 | size u32 | 003c 0000 | body size u64 | flags and properties | ce
    3 | channel u16 | size u32 | body | ce

Addresses and property lists are stored encoded, each distinct one once. They are decoded when the rows are
taken, so a thousand messages with equal properties are decoded as one.
"""

import struct

from warren.client.errors import BrokerRefused
from warren.limits import FRAME_SIZE_MAX, MESSAGE_SIZE_MAX

DELIVER = b"\x00\x3c\x00\x3c"
METHOD, HEADER, BODY = 1, 2, 3
_FRAME = struct.Struct(">B2xI")
# Frame type, frame size and body size of a content header.
_HEADER = struct.Struct(">B2xI4xQ")
_U64 = struct.Struct(">Q")
_I64 = struct.Struct(">q")
_HEAD = 7
_OVERHEAD = 8
_END = 0xCE
# Size of the fields before the flags of a content header: class, weight, body size.
_PROPERTIES_AT = 12
# The header with the offset in a stream: name, type of the value, and eight bytes.
_OFFSET_ENTRY = b"\x0fx-stream-offsetl"
# The frame of a content header with flags and no properties.
_HEADER_MIN = _OVERHEAD + _PROPERTIES_AT + 2
OFFSET_SIZE = len(_OFFSET_ENTRY) + 8
NO_OFFSET = -1
# The largest message that RabbitMQ can be set to accept.
_BODY_SIZE_MAX = 4 * MESSAGE_SIZE_MAX
_FRAME_ERROR = 501


class MalformedDelivery(BrokerRefused):
    """The received bytes are not valid AMQP, or more than was agreed on."""

    def __init__(self, text: str) -> None:
        super().__init__(text, _FRAME_ERROR)


class DeliveryColumns:
    """Messages as columns; `address` and `properties` are indexes into the distinct encoded values."""

    __slots__ = (
        "address", "addresses", "body", "is_stream", "offset", "properties", "property_lists", "redelivered",
        "tag",
    )  # fmt: skip

    def __init__(self, *, is_stream: bool) -> None:
        self.is_stream = is_stream
        self.tag: list[int] = []
        self.redelivered: list[bool] = []
        self.address: list[int] = []
        self.properties: list[int] = []
        self.offset: list[int] = []
        self.body: list[bytes] = []
        # Exchange and routing key as two short strings; and flags and properties, for a stream without the
        # offset header, but with the size that the headers had with it.
        self.addresses: dict[bytes, int] = {}
        self.property_lists: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.body)


class DeliveryReader:
    """Decodes received bytes: complete deliveries become rows, other methods are collected in `methods`."""

    __slots__ = (
        "_frame_size_max", "_is_stream", "_needed", "_pieces", "_rows", "_size", "_tag", "body_bytes",
        "methods",
    )  # fmt: skip

    def __init__(self, *, is_stream: bool, frame_size_max: int = FRAME_SIZE_MAX) -> None:
        self._is_stream = is_stream
        self._frame_size_max = frame_size_max
        self._rows = DeliveryColumns(is_stream=is_stream)
        self._pieces: list[bytes] = []
        self._size = 0
        self._needed = _OVERHEAD
        self._tag = 0
        # Payloads of method frames other than basic.deliver.
        self.methods: list[bytes] = []
        # Total size of the bodies of the rows.
        self.body_bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    def last_offset(self) -> int:
        """Return the offset of the last row; NO_OFFSET if there is none."""
        return self._rows.offset[-1] if self._rows.offset else NO_OFFSET

    def last_tag(self) -> int:
        """Return the delivery tag of the last row received; 0 before the first."""
        return self._rows.tag[-1] if self._rows.tag else self._tag

    def take(self) -> DeliveryColumns:
        """Return the rows received since the last call."""
        self._tag = self.last_tag()
        rows, self._rows = self._rows, DeliveryColumns(is_stream=self._is_stream)
        self.body_bytes = 0
        return rows

    def feed(self, data: bytes) -> None:
        """Decode the bytes of one read from the socket. Raises MalformedDelivery."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size < self._needed:
            return
        data = b"".join(self._pieces) if len(self._pieces) > 1 else data
        try:
            at, self._needed = self._cut(data)
        except (struct.error, IndexError):
            raise MalformedDelivery("a delivery has fields that are longer than its frames") from None
        rest = data[at:]
        self._pieces = [rest] if rest else []
        self._size = len(rest)

    def _cut(self, data: bytes) -> tuple[int, int]:
        """Decode complete deliveries; return where the first incomplete one starts and its minimum size."""
        rows = self._rows
        tags, redelivered, offsets, bodies = rows.tag, rows.redelivered, rows.offset, rows.body
        address, addresses = rows.address, rows.addresses
        properties, property_lists = rows.properties, rows.property_lists
        frame, header, u64 = _FRAME.unpack_from, _HEADER.unpack_from, _U64.unpack_from
        at, end, size_max = 0, len(data), self._frame_size_max
        while True:
            if end - at < _OVERHEAD:
                return at, _OVERHEAD
            kind, size = frame(data, at)
            stop = at + _HEAD + size
            if stop >= end and size <= size_max:
                return at, size + _OVERHEAD
            if size > size_max or data[stop] != _END:
                raise _bad_frame(data[stop : stop + 1], size, size_max)
            if kind != METHOD or data[at + 7 : at + 11] != DELIVER:
                if kind == METHOD:
                    self.methods.append(data[at + 7 : stop])
                at = stop + 1
                continue
            if end - stop <= _HEADER_MIN:
                return at, stop + 1 + _HEADER_MIN - at
            kind, size, body_size = header(data, stop + 1)
            header_stop = stop + 8 + size
            if kind != HEADER or not _PROPERTIES_AT < size <= size_max:
                raise MalformedDelivery(f"basic.deliver is followed by a frame of type {kind}, {size} bytes")
            if header_stop >= end:
                return at, header_stop + 1 - at
            if data[header_stop] != _END or body_size > _BODY_SIZE_MAX:
                raise MalformedDelivery(f"a header of {body_size} bytes, or one without an end")
            body_at = header_stop + 1
            if end - body_at < body_size + (_OVERHEAD if body_size else 0):
                return at, body_at + body_size + _OVERHEAD - at
            if not body_size:
                body, after = b"", body_at
            elif frame(data, body_at) == (BODY, body_size) and data[body_at + _HEAD + body_size] == _END:
                after = body_at + body_size + _OVERHEAD
                body = data[body_at + _HEAD : after - 1]
            else:
                body, after, missing = _joined(data, body_at, body_size)
                if missing:
                    return at, end - at + missing
            tag_at = at + 12 + data[at + 11]
            tags.append(u64(data, tag_at)[0])
            redelivered.append(data[tag_at + 8] != 0)
            named = data[tag_at + 9 : stop]
            address.append(addresses.setdefault(named, len(addresses)))
            listed = data[stop + 8 + _PROPERTIES_AT : header_stop]
            entry = listed.find(_OFFSET_ENTRY) if rows.is_stream else -1
            if entry >= 0:
                offsets.append(_I64.unpack_from(listed, entry + len(_OFFSET_ENTRY))[0])
                listed = listed[:entry] + listed[entry + OFFSET_SIZE :]
            else:
                offsets.append(NO_OFFSET)
            properties.append(property_lists.setdefault(listed, len(property_lists)))
            bodies.append(body)
            self.body_bytes += body_size
            at = after


def _bad_frame(last: bytes, size: int, size_max: int) -> MalformedDelivery:
    if size > size_max:
        return MalformedDelivery(f"a frame of {size} bytes, more than the agreed {size_max}")
    return MalformedDelivery(f"a frame ends with the byte {last[0]:#04x} instead of 0xce")


def _joined(data: bytes, at: int, size: int) -> tuple[bytes, int, int]:
    """Return a body of several frames, where it ends, and the minimum number of missing bytes."""
    pieces = []
    left = size
    while left:
        if len(data) - at < _OVERHEAD:
            return b"", at, left + _OVERHEAD
        kind, length = _FRAME.unpack_from(data, at)
        if kind != BODY or not 0 < length <= left:
            raise MalformedDelivery(
                f"{left} bytes of a body are followed by a frame of type {kind}, {length} bytes"
            )
        after = at + length + _OVERHEAD
        if after > len(data):
            return b"", at, after - len(data)
        if data[after - 1] != _END:
            raise MalformedDelivery("a body without an end")
        pieces.append(data[at + _HEAD : after - 1])
        left -= length
        at = after
    return b"".join(pieces), at, 0
