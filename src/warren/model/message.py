"""Messages: three byte strings, most of them shared, and a few numbers.

Exchange, routing key, properties and body are kept as the publisher sent them; a delivery copies them
unchanged, and they are decoded only on demand. A published message is immutable: queues share it.

    address       | exchange short string | routing key short string |     as in basic.publish
    property_list | flags u16 | property … |                               as in a content header
    content       | body | 0xCE |                                          as in a body frame

Most publishers repeat one property list, which is therefore separate: consecutive equal ones share one
object. A message of 16 or 1024 bytes then needs 104 more while it is queued: 48 for this object, 34 and the
allocator's rounding for the content, and 8 in its queue. The disadvantage: an individual list, with an id or
a time in it, is one more object, with 33 bytes of overhead.
"""

from warren.wire.properties import BasicProperties, decode_headers
from warren.wire.table import Value

# Flags, set by one scan of the property list.
PERSISTENT = 1
HAS_HEADERS = 2
HAS_EXPIRATION = 4
# A transient message that was written to disk because its queue has no room for it in memory.
SPILLED = 8
# A persistent message without content in memory: the content is on disk, at its location.
BODY_ON_DISK = 16
# A message of the stream protocol (AMQP 1.0); whether its body is everything after its head instead of the
# bytes of a data section; and whether it had its own exchange and routing key.
FROM_STREAM = 32
UNWRAPPED = 64
ADDRESSED = 128
# Not of the stream protocol, with the same bit: it has dead-lettered in a queue here, so that the death
# headers were written by the broker, and not by a client.
DIED = 128

NO_PROPERTIES = b"\0\0"
# The end of the content; all of it if the body is empty.
BODY_END = b"\xce"


class Message:
    """One published message, shared by the queues to which it was routed."""

    __slots__ = (
        "_published_high", "_published_low", "address", "content", "flags", "priority", "property_list",
    )  # fmt: skip

    def __init__(self, address: bytes, property_list: bytes, content: bytes, now: int) -> None:
        self.address = address
        self.property_list = property_list
        self.content = content
        # Milliseconds in 48 bits: 16 more would put the object into the allocator's next size class.
        self._published_high = now >> 16
        self._published_low = now & 0xFFFF
        self.flags = 0
        self.priority = 0

    @property
    def exchange(self) -> str:
        """The name of the exchange to which it was published."""
        return self.address[1 : 1 + self.address[0]].decode("utf-8", "surrogateescape")

    @property
    def routing_key(self) -> str:
        """Its routing key."""
        return self.address[2 + self.address[0] :].decode("utf-8", "surrogateescape")

    @property
    def published_at(self) -> int:
        """The time of publishing (Unix time, ms)."""
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
        """Decode its basic properties."""
        return BasicProperties.decode_list(self.property_list)

    def headers(self) -> dict[str, Value]:
        """Decode its headers; empty if it has none."""
        return decode_headers(self.property_list) if self.flags & HAS_HEADERS else {}

    def with_property_list(self, property_list: bytes) -> "Message":
        """Copy the message with another property list that is equivalent for the broker."""
        kind = StoredMessage if self.flags & PERSISTENT else Message
        changed = kind(self.address, property_list, self.content, self.published_at)
        changed.flags = self.flags
        changed.priority = self.priority
        return changed

    def anew(self, now: int) -> "Message":
        """Copy the message with publishing time `now` (ms), for another queue or another store."""
        kind = StoredMessage if self.flags & PERSISTENT else Message
        copy = kind(self.address, self.property_list, self.content, now)
        copy.flags = self.flags & (PERSISTENT | HAS_HEADERS | HAS_EXPIRATION)
        if has_died(self):
            copy.flags |= DIED
        copy.priority = self.priority
        return copy

    @classmethod
    def compose(cls, address: bytes, properties: BasicProperties, content: bytes, *, now: int) -> "Message":
        """Build a message of the broker's own, such as a dead-lettered one."""
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
    """A persistent message, with its location in a store and the number of queues that need it there."""

    __slots__ = ("location", "references")

    def __init__(self, address: bytes, property_list: bytes, content: bytes, now: int) -> None:
        super().__init__(address, property_list, content, now)
        # Segment number << 32 | position of its record; 0 while it is in no segment.
        self.location = 0
        self.references = 0


def new_message(address: bytes, property_list: bytes, content: bytes, now: int) -> Message:
    """Create a Message, without the boxing that its constructor costs a compiled caller."""
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
    """Create a StoredMessage, without the boxing that its constructor costs a compiled caller."""
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


def stored_copy(message: Message, flag: int) -> StoredMessage:
    """Copy the transient `message` to one with a location of its own on disk.

    `flag` says why: SPILLED, to have it out of memory, or PERSISTENT, to keep it like a persistent one.
    """
    stored = new_stored_message(
        message.address, message.property_list, message.content, published_at_of(message)
    )
    stored.flags = message.flags | flag
    stored.priority = message.priority
    return stored


def without_body(message: StoredMessage, like: StoredMessage) -> StoredMessage:
    """Copy `message`, which is on disk, without its content; equal parts are shared with `like`."""
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
    """The time at which `message` was published (Unix time, ms)."""
    high = message._published_high
    return high << 16 | message._published_low


def has_died(message: Message) -> bool:
    """True if `message` has dead-lettered in a queue here: the broker wrote its death headers."""
    return bool(message.flags & DIED and not message.flags & FROM_STREAM)


def presume_died(message: Message) -> None:
    """Trust the death headers of `message`, from a store that did not record who had written them."""
    if message.flags & HAS_HEADERS and not message.flags & FROM_STREAM:
        message.flags |= DIED


def encode_address(exchange: str, routing_key: str) -> bytes:
    """Encode the address of a message as in basic.publish. ValueError if a name has over 255 bytes."""
    name = exchange.encode("utf-8", "surrogateescape")
    key = routing_key.encode("utf-8", "surrogateescape")
    return bytes((len(name),)) + name + bytes((len(key),)) + key
