"""How long a message says that it may wait: the expiration property, in milliseconds."""

from warren.model.message import Message
from warren.wire.properties import PropertyScan, text_at

_scan = PropertyScan()


def expiration_ms(message: Message) -> int:
    """The expiration of `message`, which has one; it was found valid when it was published."""
    octets = message.property_list
    _scan.scan(octets, 0, len(octets))
    return int(text_at(octets, _scan.expiration_at))
