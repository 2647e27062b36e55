"""Decodes what passes between a node and the home of its remote queues: see `cluster/remote_codec`."""

from warren.cluster.remote_codec import (
    HAS_DIED,
    SAME_ADDRESS,
    SAME_PROPERTIES,
    VERSION,
    MalformedPayload,
)
from warren.errors import AmqpError
from warren.limits import EXPIRY_MS_MAX
from warren.limits_cluster import REMOTE_ARGUMENTS_SIZE_MAX
from warren.model.message import (
    DIED,
    HAS_EXPIRATION,
    HAS_HEADERS,
    PERSISTENT,
    Message,
    new_message,
    new_stored_message,
)
from warren.wire.properties import PropertyScan, text_at
from warren.wire.strings import decode_text
from warren.wire.table import Table, decode_table

_SAME_ADDRESS = SAME_ADDRESS
_SAME_PROPERTIES = SAME_PROPERTIES
_HAS_DIED = HAS_DIED
_DIED = DIED
_HAS_HEADERS = HAS_HEADERS
_HAS_EXPIRATION = HAS_EXPIRATION
_PERSISTENT = PERSISTENT
_CONTENT_END = 0xCE


class PayloadReader:
    """Reads the items of one payload; MalformedPayload if one is not complete."""

    __slots__ = (
        "_address", "_at", "_data", "_end", "_message_flags", "_priority", "_properties", "_scan",
        "generation", "index", "item_at", "targets", "vhost",
    )  # fmt: skip

    def __init__(self, payload: bytes) -> None:
        """Read the head. MalformedPayload if it is not one of this version."""
        self._data = payload
        self._end = len(payload)
        self._at = 0
        self._address: bytes | None = None
        self._properties: bytes | None = None
        # The flags and the priority of messages with these properties, and what found them.
        self._message_flags = 0
        self._priority = 0
        self._scan = PropertyScan()
        # The queues of the last message, as its receiver keeps them.
        self.targets: list[object] = []
        # Where the current item begins.
        self.item_at = 0
        version = self.number(1)
        if version != VERSION:
            raise MalformedPayload(f"a payload of version {version}")
        self.generation = self.number(4)
        self.index = self.number(8)
        self.vhost = self.text()

    @property
    def size(self) -> int:
        """The size of the payload in bytes."""
        return self._end

    def next(self) -> int:
        """The kind of the next item; 0 behind the last."""
        if self._at == self._end:
            return 0
        self.item_at = self._at
        kind = self.number(1)
        if not kind:
            raise MalformedPayload("an item of kind 0")
        return kind

    def rewind(self) -> None:
        """Read the current item again."""
        self._at = self.item_at

    def number(self, size: int) -> int:
        """An unsigned integer of `size` bytes."""
        data = self._data
        at = self._at
        end = at + size
        if end > self._end:
            raise MalformedPayload(f"cut short at byte {at}")
        self._at = end
        value = 0
        while at < end:
            value = value << 8 | data[at]
            at += 1
        return value

    def signed(self) -> int:
        """A signed integer of 8 bytes."""
        value = self.number(8)
        return value - (1 << 64) if value >> 63 else value

    def text(self) -> str:
        """A string."""
        return decode_text(self.octets(self.number(1)))

    def long_text(self) -> str:
        """A text whose size has two bytes."""
        return decode_text(self.octets(self.number(2)))

    def table(self) -> Table:
        """A table of AMQP: the arguments of a consumer."""
        size = self.number(4)
        if size > REMOTE_ARGUMENTS_SIZE_MAX:
            raise MalformedPayload(f"arguments of {size} bytes, more than {REMOTE_ARGUMENTS_SIZE_MAX}")
        data = self.octets(size)
        try:
            return decode_table(data, 0, size)
        except AmqpError as error:
            raise MalformedPayload(error.message) from None

    def octets(self, size: int) -> bytes:
        """The next `size` bytes."""
        data = self._data
        at = self._at
        end = at + size
        if end > self._end:
            raise MalformedPayload(f"cut short at byte {at}")
        self._at = end
        return data[at:end]

    def delivered(self, flags: int, message_flags: int, now: int) -> Message:
        """A message that was delivered, received at `now` (ms)."""
        content = self._content(flags)
        message = new_message(self._address, self._properties, content, now)  # type: ignore[arg-type]
        message.flags = message_flags
        return message

    def published(self, flags: int, now: int, has_store: bool) -> Message:
        """A message that was published, received at `now` (ms); a StoredMessage if it has to be kept."""
        content = self._content(flags)
        message: Message
        if self._message_flags & _PERSISTENT and has_store:
            message = new_stored_message(self._address, self._properties, content, now)  # type: ignore[arg-type]
        else:
            message = new_message(self._address, self._properties, content, now)  # type: ignore[arg-type]
        message.flags = self._message_flags
        if flags & _HAS_DIED:
            message.flags |= _DIED
        message.priority = self._priority
        return message

    def _content(self, flags: int) -> bytes:
        """The content of a message, after its address and its properties, which are kept."""
        size = self.number(4)
        if flags & _SAME_ADDRESS == 0:
            self._address = _checked(self.octets(self.number(2)))
        if flags & _SAME_PROPERTIES == 0:
            self._take_properties(self.octets(self.number(4)))
        if self._address is None or self._properties is None:
            raise MalformedPayload("the first message is said to be like the one before")
        content = self.octets(size)
        data = content
        if not size or data[size - 1] != _CONTENT_END:
            raise MalformedPayload("content without its end")
        return content

    def _take_properties(self, properties: bytes) -> None:
        """Check `properties`, and determine flags and priority of messages that have them."""
        scan = self._scan
        try:
            scan.scan(properties, 0, len(properties))
        except AmqpError as error:
            raise MalformedPayload(error.message) from None
        if scan.delivery_mode > 2:
            raise MalformedPayload(f"delivery mode {scan.delivery_mode}")
        flags = 0
        if scan.delivery_mode == 2:
            flags = _PERSISTENT
        if scan.headers_at:
            flags |= _HAS_HEADERS
        if scan.expiration_at:
            flags |= _HAS_EXPIRATION
            _check_expiration(text_at(properties, scan.expiration_at))
        self._message_flags = flags
        self._priority = max(scan.priority, 0)
        self._properties = properties


def _checked(address: bytes) -> bytes:
    """The `address`, which must be two short strings."""
    size = len(address)
    if size:
        key_at = address[0] + 1
        if key_at < size and key_at + 1 + address[key_at] == size:
            return address
    raise MalformedPayload("an address that is not exchange and routing key")


def _check_expiration(text: str) -> None:
    """MalformedPayload unless `text` is a number of ms, as is checked where a message is published."""
    try:
        number = int(text)
    except ValueError:
        raise MalformedPayload(f"expiration {text!r}") from None
    if not 0 <= number <= EXPIRY_MS_MAX:
        raise MalformedPayload(f"expiration {text!r}")
