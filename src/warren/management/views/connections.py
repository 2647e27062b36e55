"""Connections of AMQP and of the stream protocol as JSON, in RabbitMQ's form."""

from collections.abc import Mapping
from typing import Required, TypedDict

from warren.management.listing import JsonObject
from warren.management.managed_node import ManagedNode
from warren.management.operation import JsonTable, shape
from warren.management.views.stats import (
    GARBAGE_COLLECTION,
    SampleRanges,
    no_reductions,
    with_details,
    with_rates,
)
from warren.metadata.definitions import json_value
from warren.metrics.sampler import CONNECTION_COLUMNS, connection_row, series_of
from warren.session.any_connection import AnyConnection
from warren.session.events.event_publisher import AMQP, DIRECT, STREAM
from warren.session.streams.connection import StreamConnection
from warren.wire.table import Value

# The protocols as RabbitMQ's API names them; connections of AMQP have a type as well.
_OF_PROTOCOL: Mapping[str, JsonObject] = {
    AMQP: {"protocol": "AMQP 0-9-1", "type": "network"},
    DIRECT: {"protocol": "Direct 0-9-1", "type": "direct"},
    STREAM: {"protocol": "stream"},
}


class _Fields(TypedDict, total=False):
    auth_mechanism: Required[str]
    channel_max: Required[int]
    channels: Required[int]
    client_properties: Required[JsonTable]
    connected_at: Required[int]
    frame_max: Required[int]
    garbage_collection: JsonTable
    host: Required[str]
    name: Required[str]
    node: Required[str]
    peer_cert_issuer: str | None
    peer_cert_subject: str | None
    peer_cert_validity: str | None
    peer_host: Required[str]
    peer_port: Required[int]
    port: Required[int]
    protocol: Required[str]
    recv_cnt: int
    send_cnt: int
    send_pend: int
    ssl: Required[bool]
    ssl_cipher: str | None
    ssl_hash: str | None
    ssl_key_exchange: str | None
    ssl_protocol: str | None
    state: Required[str]
    timeout: Required[int]
    type: str
    user: Required[str]
    user_provided_name: str
    user_who_performed_action: str
    vhost: Required[str]


ConnectionShape = shape(
    "ConnectionShape",
    "A connection.",
    _Fields.__annotations__,
    with_details((*CONNECTION_COLUMNS, "reductions")),
)


def stream_connections(node: ManagedNode) -> list[StreamConnection]:
    """All connections of the stream protocol."""
    return [
        connection
        for connection in node.server.stream_connections
        if isinstance(connection, StreamConnection)
    ]


def connection_view(
    node: ManagedNode, connection: AnyConnection, ranges: SampleRanges, *, is_alone: bool
) -> JsonObject:
    """A connection as JSON; as in RabbitMQ, absent values are null in a list and "" in a single object."""
    peer, login = connection.peer, connection.login
    assert login is not None
    nothing = "" if is_alone else None
    facts: JsonObject = {
        "auth_mechanism": login.mechanism,
        "channel_max": login.channels_max,
        "channels": len(connection.channels),
        "connected_at": connection.connected_at,
        "frame_max": connection.frame_size_max,
        "garbage_collection": GARBAGE_COLLECTION,
        "host": peer.server_host,
        "name": peer.name,
        "node": node.node_name,
        "peer_cert_issuer": nothing,
        "peer_cert_subject": nothing,
        "peer_cert_validity": nothing,
        "peer_host": peer.host,
        "peer_port": peer.port,
        "port": peer.server_port,
        "recv_cnt": connection.read_count,
        **no_reductions(ranges.data_rates),
        "send_cnt": connection.write_count,
        "send_pend": connection.outbox.size,
        "ssl": peer.is_tls,
        "ssl_cipher": peer.tls_cipher or nothing,
        "ssl_hash": nothing,
        "ssl_key_exchange": nothing,
        "ssl_protocol": peer.tls_protocol or nothing,
        "state": connection.state_name(ranges.now),
        "timeout": login.heartbeat_s,
        "user": connection.user,
        "user_who_performed_action": connection.user,
        "vhost": connection.vhost_name,
        **_OF_PROTOCOL[connection.protocol],
        **_client_properties(login.client_properties),
    }
    past = series_of(connection), ranges.time
    return facts | with_rates(CONNECTION_COLUMNS, connection_row(connection), past, ranges.data_rates)


def _client_properties(properties: Mapping[str, Value]) -> JsonObject:
    """The client properties, and the connection name that the client gives in them."""
    said: JsonObject = {"client_properties": json_value(dict(properties))}
    name = properties.get("connection_name")
    if isinstance(name, str):
        said["user_provided_name"] = name
    return said
