"""Changes messages on their way through a shovel: their address, properties and headers.

What is not asked for is not decoded: without properties or headers to set, the property list is passed on as
it was received. Headers that are added are those of RabbitMQ 3.10.8, with its keys, types and order
(measured): `x-shovelled` is an array whose first entry is about the last shovel, and `x-shovelled-timestamp`
the time in seconds. The oldest entries of a message that has passed very many shovels are forgotten. Adding
one sorts the headers by name. If they have no room in a frame of the destination, the message is forwarded
without them.
"""

from warren.errors import AmqpError, FrameError
from warren.limits_relay import SHOVELLED_ENTRIES_MAX
from warren.metadata.shovel_definition import ShovelDestination, ShovelSource
from warren.model.message import Message, encode_address
from warren.model.turn import Turn
from warren.shovel.shovel_settings import ShovelSettings
from warren.wire.properties import BasicProperties
from warren.wire.table import Table, Value

SHOVELLED = "x-shovelled"
SHOVELLED_TIMESTAMP = "x-shovelled-timestamp"
# Where RabbitMQ keeps the value of a header that is not an array, although it has to be.
_INVALID_HEADERS = "x-invalid-headers"


class MessageRewriter:
    """Rewrites the messages of one run of a shovel."""

    __slots__ = (
        "_address", "_destination", "_entry", "_has_changes", "_last", "_last_address", "_last_second",
        "_last_was", "_last_was_address", "_size_max", "_turn",
    )  # fmt: skip

    def __init__(self, destination: ShovelDestination, entry: Table, turn: Turn, size_max: int) -> None:
        """`entry` is the entry of `x-shovelled`; a property list may have `size_max` bytes."""
        self._size_max = size_max
        self._destination = destination
        self._entry = entry
        self._turn = turn
        # The address of every message; empty if it depends on the message.
        self._address = _fixed_address(destination)
        self._has_changes = bool(
            destination.publish_properties
            or destination.adds_forward_headers
            or destination.adds_timestamp_header
        )
        # The last property list and address, before and after, because most messages repeat them.
        self._last_was = b""
        self._last = b""
        self._last_second = 0
        self._last_was_address = b""
        self._last_address = b""

    def rewrite(self, message: Message) -> Message:
        """Return the message to publish for `message`."""
        address = self._address or self._address_for(message)
        now = self._turn.now()
        property_list = message.property_list
        if self._has_changes:
            property_list = self._property_list_for(property_list, now // 1000)
        if address == message.address and property_list is message.property_list:
            return message
        return Message(address, property_list, message.content, now)

    def _address_for(self, message: Message) -> bytes:
        if message.address != self._last_was_address:
            exchange, key = self._destination.exchange, self._destination.exchange_key
            self._last_was_address = message.address
            self._last_address = encode_address(
                message.exchange if exchange is None else exchange,
                message.routing_key if key is None else key,
            )
        return self._last_address

    def _property_list_for(self, property_list: bytes, second: int) -> bytes:
        is_current = second == self._last_second or not self._destination.adds_timestamp_header
        if not is_current or property_list != self._last_was:
            self._last = self._changed(property_list, second)
            self._last_was = property_list
            self._last_second = second
        return self._last

    def _changed(self, property_list: bytes, second: int) -> bytes:
        """Return `property_list` with what the shovel sets; as it is if it cannot be decoded or encoded."""
        destination = self._destination
        try:
            properties = BasicProperties.decode_list(property_list)
            for name, value in destination.publish_properties.items():
                setattr(properties, name, value)
            without_headers = properties.encode_list()
            if destination.adds_forward_headers:
                properties.headers = _with_entry(properties.headers or {}, self._entry)
            if destination.adds_timestamp_header:
                properties.headers = _with_header(properties.headers or {}, SHOVELLED_TIMESTAMP, second)
            changed = properties.encode_list()
            return changed if len(changed) <= self._size_max else without_headers
        except (AmqpError, FrameError, ValueError, OverflowError):
            # The broker has accepted the message, which is worth more than what is added to it.
            return property_list


def forward_entry(
    settings: ShovelSettings, cluster_name: str, source_uri: str, destination_uri: str
) -> Table:
    """Return the entry of `x-shovelled`, with the URIs without credentials."""
    is_static = settings.is_static
    entry: Table = {
        "shovelled-by": cluster_name,
        "shovel-type": "static" if is_static else "dynamic",
        "shovel-name": settings.name,
    }
    if not is_static:
        entry["shovel-vhost"] = settings.vhost
    entry |= {"src-uri": source_uri, "dest-uri": destination_uri}
    if is_static:
        return entry
    definition = settings.definition
    return entry | _source_fields(definition.source) | _destination_fields(definition.destination)


def _source_fields(source: ShovelSource) -> Table:
    if source.queue is not None:
        return {"src-queue": source.queue}
    return {"src-exchange": source.exchange or "", "src-exchange-key": source.exchange_key}


def _destination_fields(destination: ShovelDestination) -> Table:
    if destination.queue is not None:
        return {"dest-queue": destination.queue}
    fields = {"dest-exchange": destination.exchange, "dest-exchange-key": destination.exchange_key}
    return {key: value for key, value in fields.items() if value is not None}


def _fixed_address(destination: ShovelDestination) -> bytes:
    if destination.queue is not None:
        return encode_address("", destination.queue)
    if destination.exchange is not None and destination.exchange_key is not None:
        return encode_address(destination.exchange, destination.exchange_key)
    return b""


def _with_header(headers: Table, name: str, value: Value) -> Table:
    """Return `headers` with one of them set, sorted by name, as RabbitMQ sorts them then."""
    return dict(sorted({**headers, name: value}.items(), key=_name_bytes))


def _name_bytes(header: tuple[str, Value]) -> bytes:
    return header[0].encode("utf-8", "surrogateescape")


def _with_entry(headers: Table, entry: Table) -> Table:
    """Return `headers` with `entry` before the other entries of `x-shovelled`."""
    known = headers.get(SHOVELLED)
    if known is None or isinstance(known, list):
        return _with_header(headers, SHOVELLED, [entry, *(known or [])[: SHOVELLED_ENTRIES_MAX - 1]])
    invalid = headers.get(_INVALID_HEADERS)
    kept: Table = invalid if isinstance(invalid, dict) else {}
    earlier = kept.get(SHOVELLED)
    kept = {**kept, SHOVELLED: [known, *(earlier if isinstance(earlier, list) else ())]}
    return _with_header(_with_header(headers, SHOVELLED, [entry]), _INVALID_HEADERS, kept)
