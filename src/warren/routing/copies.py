"""The headers CC and BCC: further routing keys of a message; BCC is hidden from consumers.

Both are arrays of strings; other members of the array are ignored, and anything but an array is refused
(RabbitMQ 3.10.8, measured).
"""

from collections.abc import Mapping

from warren.errors import PreconditionFailed
from warren.model.blind_copies import BLIND_CARBON_COPY
from warren.model.message import HAS_HEADERS, Message
from warren.wire.table import type_name

CARBON_COPY = "CC"

# The encoded names of the headers in a field table.
_CC = b"\x02CC"
_BCC = b"\x03BCC"


def has_copies(property_list: bytes) -> bool:
    """False if `property_list` certainly has neither CC nor BCC; it is not decoded."""
    # Not `in`, which first tries to interpret its operand as a number.
    if property_list.find(b"CC") < 0:
        return False
    return property_list.find(_CC) >= 0 or property_list.find(_BCC) >= 0


def carbon_copies(headers: Mapping[str, object]) -> list[str]:
    """The routing keys in the CC and BCC headers; members that are not strings are ignored."""
    keys: list[str] = []
    for name in (CARBON_COPY, BLIND_CARBON_COPY):
        if name not in headers:
            continue
        members = headers[name]
        if not isinstance(members, list):
            raise PreconditionFailed(
                f'invalid message: {{unacceptable_type_in_header,"{name}",{type_name(members)}}}'
            )
        keys += [member for member in members if isinstance(member, str)]
    return keys


def addresses_of(message: Message) -> list[bytes]:
    """All addresses that `message` is published to: its own, and that of each copy.

    The publisher needs permission for all of them. The key of a copy may be longer than a short string.
    """
    if not message.flags & HAS_HEADERS or not has_copies(message.property_list):
        return [message.address]
    exchange = message.address[: 1 + message.address[0]]
    keys = [key.encode("utf-8", "surrogateescape") for key in carbon_copies(message.headers())]
    return [message.address, *(exchange + bytes((min(len(key), 255),)) + key for key in keys)]
