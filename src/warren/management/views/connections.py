"""A connection as RabbitMQ shows it."""

from typing import TypedDict

from warren.management.describing import Table, shape
from warren.management.listing import Facts
from warren.management.managed import Managed
from warren.management.samples import CONNECTION_COLUMNS, connection_row, series_of
from warren.management.views.stats import GARBAGE_COLLECTION, Asked, counted, no_reductions, with_rates
from warren.metadata.definitions import json_value
from warren.session.connection import Connection


class _Fields(TypedDict):
    auth_mechanism: str
    channel_max: int
    channels: int
    client_properties: Table
    connected_at: int
    frame_max: int
    garbage_collection: Table
    host: str
    name: str
    node: str
    peer_cert_issuer: str | None
    peer_cert_subject: str | None
    peer_cert_validity: str | None
    peer_host: str
    peer_port: int
    port: int
    protocol: str
    recv_cnt: int
    send_cnt: int
    send_pend: int
    ssl: bool
    ssl_cipher: str | None
    ssl_hash: str | None
    ssl_key_exchange: str | None
    ssl_protocol: str | None
    state: str
    timeout: int
    type: str
    user: str
    user_provided_name: str
    user_who_performed_action: str
    vhost: str


ConnectionShape = shape(
    "ConnectionShape", "A connection.", _Fields.__annotations__, counted((*CONNECTION_COLUMNS, "reductions"))
)


def connection_facts(node: Managed, connection: Connection, asked: Asked, *, is_alone: bool) -> Facts:
    """What is shown of it; RabbitMQ writes what is not there in another way for one than in a list."""
    peer, login, domain = connection.peer, connection.login, connection.domain
    assert login is not None
    assert domain is not None
    nothing = "" if is_alone else None
    properties = json_value(login.client_properties)
    name = login.client_properties.get("connection_name")
    facts: Facts = {
        "auth_mechanism": login.mechanism,
        "channel_max": login.channels_max,
        "channels": len(connection.channels),
        "client_properties": properties,
        "connected_at": connection.connected_at,
        "frame_max": connection.outbox.frame_size_max,
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
        "protocol": "AMQP 0-9-1",
        "recv_cnt": connection.read_count,
        **no_reductions(asked.data_rates),
        "send_cnt": connection.write_count,
        "send_pend": connection.outbox.size,
        "ssl": peer.is_tls,
        "ssl_cipher": peer.tls_cipher or nothing,
        "ssl_hash": nothing,
        "ssl_key_exchange": nothing,
        "ssl_protocol": peer.tls_protocol or nothing,
        "state": connection.condition(asked.now),
        "timeout": login.heartbeat_s,
        "type": "network",
        "user": login.user,
        "user_who_performed_action": login.user,
        "vhost": domain.vhost.name,
    }
    if isinstance(name, str):
        facts["user_provided_name"] = name
    past = series_of(connection), asked.time
    return facts | with_rates(CONNECTION_COLUMNS, connection_row(connection), past, asked.data_rates)
