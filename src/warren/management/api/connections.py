"""Who is connected, and in which state: running, blocking, blocked, flow …"""

from aiohttp import web

from warren.management.auth import is_monitor, user_of
from warren.management.managed import Managed
from warren.management.replies import reply
from warren.session.connection import Connection


def connections(request: web.Request, node: Managed) -> web.Response:
    """Every open connection; those who only manage see their own."""
    user = user_of(request)
    sees_all = is_monitor(user)
    return reply(
        [
            _connection(node, connection)
            for connection in node.server.connections
            if sees_all or (connection.login is not None and connection.login.user == user.name)
        ]
    )


def _connection(node: Managed, connection: Connection) -> dict[str, object]:
    peer, login, domain = connection.peer, connection.login, connection.domain
    assert login is not None
    assert domain is not None
    return {
        "name": peer.name,
        "node": node.node_name,
        "type": "network",
        "protocol": "AMQP 0-9-1",
        "state": connection.condition(node.now()),
        "user": login.user,
        "vhost": domain.vhost.name,
        "auth_mechanism": login.mechanism,
        "channels": len(connection.channels),
        "channel_max": login.channels_max,
        "frame_max": connection.outbox.frame_size_max,
        "host": peer.server_host,
        "port": peer.server_port,
        "peer_host": peer.host,
        "peer_port": peer.port,
        "ssl": peer.is_tls,
        "connected_at": connection.connected_at,
    }
