"""A message as it travels: three strings of bytes, most of them shared, and a few numbers.

Exchange, routing key, properties and body stay as the publisher sent them; a delivery copies them out
again, and only those who ask decode them. A message is immutable once published: queues share it.

    address       | exchange short string | routing key short string |     as in basic.publish
    property_list | flags u16 | property … |                               as in a content header
    content       | body | 0xCE |                                          as in a body frame

Most publishers send one property list again and again, and so it stands apart: one is kept for all equal
ones in a row. A message of 16 or 1024 bytes then takes 104 more where it waits: 48 for this object, 34 and
what the allocator rounds up for the content, and 8 in its queue. What we give up: a list of its own, with an
id or a time in it, is an object more, of 33 bytes beside its own.
"""

from warren.wire.properties import BasicProperties, decode_headers
from warren.wire.table import Value

# Flags, from one walk over the property list.
PERSISTENT = 1
HAS_HEADERS = 2
HAS_EXPIRATION = 4
# A transient message that has a place on the disk, because its queue has no room for it in memory.
SPILLED = 8
# A persistent message without its content, which only the disk has, at its location.
BODY_ON_DISK = 16
# One that came by the stream protocol, as AMQP 1.0; whether its body is all that stood behind its head, and
# not bytes in a data section; and whether it named its exchange and routing key itself.
FROM_STREAM = 32
UNWRAPPED = 64
ADDRESSED = 128
# One that did not come by the stream protocol, with the same bit: it died in a queue here, so that what its
# headers say of deaths was written by the broker, and not by a client.
DIED = 128

NO_PROPERTIES = b"\0\0"
# What the content ends with, and is when the body is empty.
BODY_END = b"\xce"


class Message:
    """One published message, shared by the queues that it was routed to."""

    __slots__ = (
        "_published_high", "_published_low", "address", "content", "flags", "priority", "property_list",
    )  # fmt: skip

    def __init__(self, address: bytes, property_list: bytes, content: bytes, now: int) -> None:
        self.address = address
        self.property_list = property_list
        self.content = content
        # Milliseconds in 48 bits: with 16 more, the object would be of the allocator's next size.
        self._published_high = now >> 16
        self._published_low = now & 0xFFFF
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
    def published_at(self) -> int:
        """When it was published: Unix time in milliseconds."""
        return published_at_of(self)

    @published_at.setter
    def published_at(self, now: int) -> None:
        self._published_high = now >> 16
        self._published_low = now & 0xFFFF

    @property
    def body_size(self) -> int:
        """The size of its body in bytes."""
        return body_size_of(self)

    @property
    def body(self) -> bytes:
        """A copy of its body."""
        return self.content[:-1]

    @property
    def is_persistent(self) -> bool:
        """True with delivery mode 2."""
        return bool(self.flags & PERSISTENT)

    def properties(self) -> BasicProperties:
        """Its basic properties, decoded now."""
        return BasicProperties.decode_list(self.property_list)

    def headers(self) -> dict[str, Value]:
        """Its headers table, decoded now; empty when it has none."""
        return decode_headers(self.property_list) if self.flags & HAS_HEADERS else {}

    def with_property_list(self, property_list: bytes) -> "Message":
        """The same message with other properties, which mean the same to the broker."""
        kind = StoredMessage if self.flags & PERSISTENT else Message
        changed = kind(self.address, property_list, self.content, self.published_at)
        changed.flags = self.flags
        changed.priority = self.priority
        return changed

    def anew(self, now: int) -> "Message":
        """A copy of its own, published at `now`: for another queue, or another store."""
        kind = StoredMessage if self.flags & PERSISTENT else Message
        copy = kind(self.address, self.property_list, self.content, now)
        copy.flags = self.flags & (PERSISTENT | HAS_HEADERS | HAS_EXPIRATION)
        if has_died(self):
            copy.flags |= DIED
        copy.priority = self.priority
        return copy

    @classmethod
    def compose(cls, address: bytes, properties: BasicProperties, content: bytes, *, now: int) -> "Message":
        """A message that the broker makes itself, as when it publishes a dead one again."""
        kind = StoredMessage if properties.delivery_mode == 2 else cls
        message = kind(address, properties.encode_list(), content, now)
        message.flags = (
            (PERSISTENT if properties.delivery_mode == 2 else 0)
            | (HAS_HEADERS if properties.headers is not None else 0)
            | (HAS_EXPIRATION if properties.expiration is not None else 0)
        )
        message.priority = properties.priority or 0
        return message


class StoredMessage(Message):
    """A persistent message: it knows where a store has it, and how many queues need it there."""

    __slots__ = ("location", "references")

    def __init__(self, address: bytes, property_list: bytes, content: bytes, now: int) -> None:
        super().__init__(address, property_list, content, now)
        # Number of the segment << 32 | place of its record there; 0 while it is in none.
        self.location = 0
        self.references = 0


def new_message(address: bytes, property_list: bytes, content: bytes, now: int) -> Message:
    """The same as calling Message, without the boxing that costs a compiled caller."""
    message: Message = Message.__new__(Message)
    message.address = address
    message.property_list = property_list
    message.content = content
    message._published_high = now >> 16
    message._published_low = now & 0xFFFF
    message.flags = 0
    message.priority = 0
    return message


def new_stored_message(address: bytes, property_list: bytes, content: bytes, now: int) -> StoredMessage:
    """The same as calling StoredMessage, without the boxing that costs a compiled caller."""
    message: StoredMessage = StoredMessage.__new__(StoredMessage)
    message.address = address
    message.property_list = property_list
    message.content = content
    message._published_high = now >> 16
    message._published_low = now & 0xFFFF
    message.flags = 0
    message.priority = 0
    message.location = 0
    message.references = 0
    return message


def spilled(message: Message) -> StoredMessage:
    """A copy of `message` with a place on the disk of its own."""
    stored = new_stored_message(
        message.address, message.property_list, message.content, published_at_of(message)
    )
    stored.flags = message.flags | SPILLED
    stored.priority = message.priority
    return stored


def without_body(message: StoredMessage, like: StoredMessage) -> StoredMessage:
    """`message`, which is written, without its content; it shares with `like` what is equal in both."""
    address, property_list = message.address, message.property_list
    bodiless = new_stored_message(
        like.address if address == like.address else address,
        like.property_list if property_list == like.property_list else property_list,
        BODY_END,
        published_at_of(message),
    )
    bodiless.flags = message.flags | BODY_ON_DISK
    bodiless.priority = message.priority
    bodiless.location = message.location
    bodiless.references = 1
    return bodiless


def body_size_of(message: Message) -> int:
    """The size of the body of `message` in bytes."""
    return len(message.content) - 1


def published_at_of(message: Message) -> int:
    """When `message` was published: Unix time in milliseconds."""
    high = message._published_high
    return high << 16 | message._published_low


def has_died(message: Message) -> bool:
    """Whether `message` died in a queue here: the broker wrote what its headers say of deaths."""
    return bool(message.flags & DIED and not message.flags & FROM_STREAM)


def presume_died(message: Message) -> None:
    """Believe what the headers of `message` say: it is of a store that did not note who had written them."""
    if message.flags & HAS_HEADERS and not message.flags & FROM_STREAM:
        message.flags |= DIED


def encode_address(exchange: str, routing_key: str) -> bytes:
    """The address of a message, as basic.publish spells it. ValueError over 255 bytes."""
    name = exchange.encode("utf-8", "surrogateescape")
    key = routing_key.encode("utf-8", "surrogateescape")
    return bytes((len(name),)) + name + bytes((len(key),)) + key
