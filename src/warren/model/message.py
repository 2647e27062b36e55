"""A message as it travels: two shared strings of octets and a few numbers.

Exchange, routing key, properties and body stay as the publisher sent them; a delivery copies them out
again, and only those who ask decode them. A message is immutable once published: queues share it.

    address | exchange short string | routing key short string |            as in basic.publish
    content | content header payload | 0xCE |                               when the body is empty
    content | content header payload | 0xCE 3 channel u16 size u32 | body | 0xCE |
"""

from warren.wire.properties import BasicProperties
from warren.wire.table import Value

# Flags, from one walk over the content header.
PERSISTENT = 1
HAS_HEADERS = 2
HAS_EXPIRATION = 4

# What stands between the header and the end of the content beside the body, when there is a body:
# the end octet of the header frame, the head of the body frame, and its end octet.
_BODY_OVERHEAD = 9


class Message:
    """One published message, shared by the queues that it was routed to."""

    __slots__ = ("address", "channel", "content", "flags", "header_size", "priority", "published_at")

    def __init__(self, address: bytes, content: bytes, header_size: int, now: int) -> None:
        self.address = address
        self.content = content
        self.header_size = header_size
        self.published_at = now
        self.channel = 0
        self.flags = 0
        self.priority = 0

    @property
    def exchange(self) -> str:
        """The name of the exchange that it was published to."""
        return self.address[1 : 1 + self.address[0]].decode("utf-8", "surrogateescape")

    @property
    def routing_key(self) -> str:
        """The routing key that it was published with."""
        return self.address[2 + self.address[0] :].decode("utf-8", "surrogateescape")

    @property
    def header(self) -> bytes:
        """The payload of its content header frame (0-9-1 §4.2.6.1)."""
        return self.content[: self.header_size]

    @property
    def body_size(self) -> int:
        """The size of its body in octets."""
        return body_size_of(self)

    @property
    def body(self) -> bytes:
        """A copy of its body."""
        return self.content[self.header_size + _BODY_OVERHEAD - 1 : -1]

    @property
    def is_persistent(self) -> bool:
        """True with delivery mode 2."""
        return bool(self.flags & PERSISTENT)

    def properties(self) -> BasicProperties:
        """Its basic properties, decoded now."""
        return BasicProperties.decode(self.header)

    def headers(self) -> dict[str, Value]:
        """Its headers table, decoded now; empty when it has none."""
        return self.properties().headers or {} if self.flags & HAS_HEADERS else {}

    @classmethod
    def compose(cls, address: bytes, properties: BasicProperties, body: bytes, *, now: int) -> "Message":
        """A message that the broker makes itself: a dead letter, an event, a republished body."""
        header = properties.encode(len(body))
        message = cls(address, frame_content(header, body, 0), len(header), now)
        message.flags = (
            (PERSISTENT if properties.delivery_mode == 2 else 0)
            | (HAS_HEADERS if properties.headers is not None else 0)
            | (HAS_EXPIRATION if properties.expiration is not None else 0)
        )
        message.priority = properties.priority or 0
        return message


def new_message(address: bytes, content: bytes, header_size: int, now: int) -> Message:
    """The same as calling Message, without the boxing that costs a compiled caller."""
    message: Message = Message.__new__(Message)
    message.address = address
    message.content = content
    message.header_size = header_size
    message.published_at = now
    message.channel = 0
    message.flags = 0
    message.priority = 0
    return message


def body_size_of(message: Message) -> int:
    """The size of the body of `message` in octets."""
    rest = len(message.content) - message.header_size
    return rest - _BODY_OVERHEAD if rest > 1 else 0


def frame_content(header: bytes, body: bytes, channel: int) -> bytes:
    """The content of a message, as drawn above, from its header payload and its whole body."""
    if not body:
        return header + b"\xce"
    return b"".join((open_content(header, len(body), channel), body, b"\xce"))


def open_content(header: bytes, body_size: int, channel: int) -> bytes:
    """What stands in front of the body in the content of a message that has one."""
    return b"".join((header, b"\xce\x03", channel.to_bytes(2, "big"), body_size.to_bytes(4, "big")))


def encode_address(exchange: str, routing_key: str) -> bytes:
    """The address of a message, as basic.publish spells it. ValueError over 255 octets."""
    name = exchange.encode("utf-8", "surrogateescape")
    key = routing_key.encode("utf-8", "surrogateescape")
    return bytes((len(name),)) + name + bytes((len(key),)) + key
