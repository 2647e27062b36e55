"""Connections of shovels and links to their own node, in memory and with the rights of a user.

Both ends are what they are over a socket: a connection in the role of the client, and one of `session`, which
checks permissions and limits, is listed, and is closed with its user and virtual host.
"""

import asyncio

from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.login import CAPABILITIES, EXTERNAL, PLAIN, ClientLogin
from warren.client.uri import Target
from warren.framing.driven_connection import LINK_CAPABILITY
from warren.metadata.commands import INTERNAL_USER, OPERATOR
from warren.metadata.identity import is_external, issuer_of, shown_name
from warren.metadata.machine import Metadata
from warren.session.connection import Connection
from warren.session.peer import Peer
from warren.session.server import Server
from warren.transport.memory_transport import MemoryTransport
from warren.transport.outgoing import described_failure, perform_handshake
from warren.transport.protocol import AmqpProtocol, ConnectionRegistry, LoopContext

_WHERE = "this node"


class LocalConnections:
    """Opens the connections of a node to itself."""

    def __init__(self, server: Server, metadata: Metadata, loop_context: LoopContext) -> None:
        self._server = server
        self._metadata = metadata
        self._loop_context = loop_context
        self.protocols: set[AmqpProtocol] = set()

    async def open(
        self, target: Target, name: str, user: str, listener: ConnectionListener
    ) -> ClientConnection:
        """Return an open connection to the virtual host of `target`, which is shown under `name`.

        It has the rights of `user`; another user in the URI of `target` logs in with the password there.
        Raises BrokerRefused.
        """
        login = _login(target, name, user)
        if login.mechanisms == (EXTERNAL,) and user != OPERATOR:
            self._check_user(user)
        client_end = _ClientEnd(self, login, listener)
        server_end = _ServerEnd(self, user if login.mechanisms == (EXTERNAL,) else None)
        client = AmqpProtocol(client_end, self._loop_context)
        loop = asyncio.get_running_loop()
        MemoryTransport.connect(loop, AmqpProtocol(server_end, self._loop_context), client)
        connection = client_end.connection
        try:
            await perform_handshake(connection)
        except BrokerRefused as error:
            raise described_failure(connection, login, _WHERE, error) from None
        finally:
            if not connection.is_open:
                client.abort()
        return connection

    def client(
        self, login: ClientLogin, protocol: AmqpProtocol, listener: ConnectionListener
    ) -> ClientConnection:
        """Create the client's end on `protocol`."""
        self.protocols.add(protocol)
        return ClientConnection(login, self._loop_context.turn, protocol, listener)

    def _check_user(self, user: str) -> None:
        """Raise BrokerRefused unless `user` exists."""
        if user in self._metadata.users.by_name:
            return
        reason = "there is no such user"
        if user == INTERNAL_USER:
            reason = "who has set the shovel or upstream is not known: it has to be set again"
        elif is_external(user):
            reason = f"a link has the rights of users of the broker, and this one is of {issuer_of(user)}"
        raise BrokerRefused(f"login of user '{shown_name(user)}' at {_WHERE}: {reason}")

    def server(self, user: str | None, protocol: AmqpProtocol) -> Connection:
        """Create the broker's end on `protocol`, for `user`; None for whoever logs in with a password."""
        server = self._server
        # As RabbitMQ names its direct connections: by the id of their process.
        name = server.event_publisher.pid(server.next_serial)
        peer = Peer(
            host="",
            port=0,
            server_host="",
            server_port=0,
            local_name=name,
            local_user=user or "",
            is_operator=user == OPERATOR,
        )
        protocol.peer = peer
        self.protocols.add(protocol)
        return Connection(server, peer, protocol)

    def abort(self) -> None:
        """Drop all connections at once."""
        for protocol in list(self.protocols):
            protocol.abort()


class _End(ConnectionRegistry):
    """The registry of the protocol of one end."""

    def __init__(self, local: LocalConnections) -> None:
        self._local = local

    def opened(self, protocol: AmqpProtocol) -> None:
        """Called when the handshake is complete."""

    def connection_closed(self, protocol: AmqpProtocol) -> None:
        """Forget an end that has ended."""
        self._local.protocols.discard(protocol)


class _ClientEnd(_End):
    """The end in the role of the client."""

    connection: ClientConnection

    def __init__(self, local: LocalConnections, login: ClientLogin, listener: ConnectionListener) -> None:
        super().__init__(local)
        self._login = login
        self._listener = listener

    def admit(self, protocol: AmqpProtocol, transport: asyncio.Transport) -> ClientConnection:
        """Create the connection of this end."""
        self.connection = self._local.client(self._login, protocol, self._listener)
        return self.connection


class _ServerEnd(_End):
    """The end in the role of the broker, for a client that is `user` without a password."""

    def __init__(self, local: LocalConnections, user: str | None) -> None:
        super().__init__(local)
        self._user = user

    def admit(self, protocol: AmqpProtocol, transport: asyncio.Transport) -> Connection:
        """Create the connection of this end."""
        return self._local.server(self._user, protocol)


def _login(target: Target, name: str, user: str) -> ClientLogin:
    """Return the login of `user`, or of another one that the URI names with its password."""
    is_other = bool(target.password) or target.user not in ("", user)
    return ClientLogin(
        capabilities=(*CAPABILITIES, LINK_CAPABILITY),
        user=target.user if is_other else user,
        password=target.password if is_other else "",
        vhost=target.vhost,
        connection_name=name,
        mechanisms=(PLAIN,) if is_other else (EXTERNAL,),
        # Both ends are in one process: neither can be gone without the other.
        heartbeat_s=0,
        channels_max=target.channels_max,
        frame_size_max=target.frame_size_max,
    )
