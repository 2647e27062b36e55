"""Bindings as JSON, in RabbitMQ's form."""

import re
from base64 import urlsafe_b64encode
from functools import lru_cache
from typing import Literal, TypeAlias, TypedDict
from urllib.parse import quote_plus

from warren.limits import BINDING_KEYS_REMEMBERED
from warren.management.operation import JsonTable
from warren.metadata.definitions import json_value
from warren.metadata.records import BindingRecord
from warren.wire.table import decode_table
from warren.wire.term_hash import table_hash

# A routing key that needs no quoting.
_PLAIN = re.compile("[A-Za-z0-9_.-]*")
# A binding and the name of its virtual host.
VhostBinding: TypeAlias = tuple[str, BindingRecord]

# An encoded table begins with its size.
_TABLE_SIZE_BYTES = 4


class BindingShape(TypedDict):
    """A binding."""

    source: str
    vhost: str
    destination: str
    destination_type: Literal["queue", "exchange"]
    routing_key: str
    arguments: JsonTable
    properties_key: str


def binding_view(bound: VhostBinding) -> dict[str, object]:
    """A binding as JSON."""
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
    """The id of a binding between its source and destination: routing key, and a hash of the arguments."""
    key = record.routing_key
    if not _PLAIN.fullmatch(key):
        key = quote_plus(key.encode("utf-8", "surrogateescape")).replace("~", "%7E")
    if not record.arguments_bytes:
        return key or "~"
    return f"{key}~{_arguments_key(record.arguments_bytes)}"


@lru_cache(BINDING_KEYS_REMEMBERED)
def _arguments_key(data: bytes) -> str:
    """RabbitMQ's hash of arguments, so that ids of bindings obtained from RabbitMQ are valid here."""
    hashed = table_hash(decode_table(data, _TABLE_SIZE_BYTES, len(data)))
    return urlsafe_b64encode(hashed.to_bytes(4, "big")).decode("ascii").rstrip("=")
