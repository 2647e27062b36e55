"""A binding as RabbitMQ shows it."""

import re
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import TypeAlias, TypedDict
from urllib.parse import quote_plus

from warren.management.describing import Table
from warren.metadata.definitions import json_value
from warren.metadata.records import BindingRecord

# A routing key that needs no quoting, as most do not.
_PLAIN = re.compile("[A-Za-z0-9_.-]*")
# A virtual host, and a binding in it.
Bound: TypeAlias = tuple[str, BindingRecord]

# Of the hash that stands for arguments: nobody binds so often that two are equal.
_HASH_OCTETS = 9


class BindingShape(TypedDict, total=False):
    """A binding."""

    source: str
    vhost: str
    destination: str
    destination_type: str
    routing_key: str
    arguments: Table
    properties_key: str


def binding_facts(bound: Bound) -> dict[str, object]:
    """What is shown of it."""
    vhost, record = bound
    return {
        "source": record.source,
        "vhost": vhost,
        "destination": record.destination,
        "destination_type": record.destination_kind,
        "routing_key": record.routing_key,
        "arguments": json_value(record.arguments),
        "properties_key": properties_key(record),
    }


def properties_key(record: BindingRecord) -> str:
    """What tells it from others between the same ends: its routing key, and a hash of its arguments."""
    # RabbitMQ's form; its hash is one of Erlang's terms, and nobody but it can know it.
    key = record.routing_key
    if not _PLAIN.fullmatch(key):
        key = quote_plus(key.encode("utf-8", "surrogateescape")).replace("~", "%7E")
    if not record.arguments_octets:
        return key or "~"
    digest = sha256(record.arguments_octets).digest()[:_HASH_OCTETS]
    return f"{key}~{urlsafe_b64encode(digest).decode('ascii')}"
