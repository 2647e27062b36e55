"""The expiration property of a message, in milliseconds."""

from warren.model.message import Message
from warren.wire.properties import PropertyScan, text_at

_scan = PropertyScan()


def expiration_ms(message: Message) -> int:
    """The expiration of `message` in ms.

    It must have a valid one, which was checked when it was published.
    """
    data = message.property_list
    _scan.scan(data, 0, len(data))
    return int(text_at(data, _scan.expiration_at))
