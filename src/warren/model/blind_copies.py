"""The header BCC: routing keys of a message that nobody sees who gets it.

It stays with a message in a queue, where it may die and be routed by these keys again (RabbitMQ 3.10.8,
measured), and is taken out where the message leaves the broker, or goes to where none dies.
"""

from warren.model.message import HAS_HEADERS, Message
from warren.wire.properties import BasicProperties

BLIND_CARBON_COPY = "BCC"
# How the name stands in a table.
_NAME = b"\x03BCC"


def strip_bcc(property_list: bytes) -> bytes:
    """A property list without BCC in it; `property_list` itself if there is none."""
    if property_list.find(_NAME) < 0:
        return property_list
    properties = BasicProperties.decode_list(property_list)
    if properties.headers is None or BLIND_CARBON_COPY not in properties.headers:
        return property_list
    # An empty table stays, as in RabbitMQ 3.10.8, measured.
    del properties.headers[BLIND_CARBON_COPY]
    return properties.encode_list()


def without_bcc(message: Message) -> Message:
    """`message` as those see it who get it; `message` itself if it has no BCC."""
    if not message.flags & HAS_HEADERS:
        return message
    property_list = strip_bcc(message.property_list)
    return message if property_list is message.property_list else message.with_property_list(property_list)
