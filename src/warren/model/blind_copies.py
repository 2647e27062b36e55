"""The header BCC: additional routing keys of a message that its consumers do not see.

It stays with a message in a queue, where the message may dead-letter and be routed by these keys again
(RabbitMQ 3.10.8, measured); it is removed where the message leaves the broker or cannot dead-letter.
"""

from warren.model.message import HAS_HEADERS, Message
from warren.wire.properties import BasicProperties

BLIND_CARBON_COPY = "BCC"
# The encoded name in a table.
_NAME = b"\x03BCC"


def strip_bcc(property_list: bytes) -> bytes:
    """Remove BCC from a property list; returns `property_list` itself if there is none."""
    if property_list.find(_NAME) < 0:
        return property_list
    properties = BasicProperties.decode_list(property_list)
    if properties.headers is None or BLIND_CARBON_COPY not in properties.headers:
        return property_list
    # An empty table remains, as in RabbitMQ 3.10.8, measured.
    del properties.headers[BLIND_CARBON_COPY]
    return properties.encode_list()


def without_bcc(message: Message) -> Message:
    """Return `message` without BCC, as consumers see it; `message` itself if it has none."""
    if not message.flags & HAS_HEADERS:
        return message
    property_list = strip_bcc(message.property_list)
    return message if property_list is message.property_list else message.with_property_list(property_list)
