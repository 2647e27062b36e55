"""How long a message says that it may wait: the expiration property, in milliseconds."""

from warren.model.message import Message
from warren.wire.properties import PropertyScan, text_at

_scan = PropertyScan()


def expiration_ms(message: Message) -> int:
    """The expiration of `message`, which has one; it was found valid when it was published."""
    _scan.scan_within(message.content, 0, message.header_size)
    return int(text_at(message.content, _scan.expiration_at))
