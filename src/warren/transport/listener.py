"""Accepts clients on an address, with or without TLS, and maintains the list of connections.

Accepting never stops: without a free file descriptor libuv closes the new client and listens on; above the
limit of connections of all listeners together, or of unfinished handshakes (including TLS) per address, the
new client is dropped before any resources are used for it.
"""

import asyncio
import itertools
import logging
import socket
from collections.abc import Callable, Coroutine

from msgspec import Struct

from warren import limits
from warren.framing.output_listener import OutputListener
from warren.session.base_connection import BaseConnection
from warren.session.peer import Peer, is_loopback
from warren.transport.acceptor import Acceptor
from warren.transport.connection_setup import ConnectionSetup
from warren.transport.protocol import AmqpProtocol, LoopContext
from warren.transport.proxy_protocol import ProxiedEnds
from warren.transport.sockets import SocketOptions, bind
from warren.transport.tls import Tls
from warren.transport.unix_sockets import bind_unix, file_number, is_unix, remove_unix

logger = logging.getLogger("warren.listener")

# The default limit of one listener, which suits the usual limit of file descriptors.
_CONNECTIONS_MAX = 1_000_000
_DEFAULTS = SocketOptions()


class ListenerSettings(Struct, frozen=True, kw_only=True):
    """The settings of one `listeners.tcp.*` or `listeners.ssl.*`."""

    host: str
    port: int
    backlog: int = 1024
    is_proxied: bool = False
    options: SocketOptions = _DEFAULTS
    # The permissions of the file, if `host` is the path of a Unix socket.
    unix_mode: int = 0o600
    # How long a client may accept no output before it is dropped; None means no limit.
    send_timeout_ms: int | None = limits.SEND_TIMEOUT_MS
    half_open_max: int = limits.HALF_OPEN_PER_ADDRESS_MAX
    handshake_ms: int = limits.HANDSHAKE_MS
    tls_handshake_ms: int = limits.TLS_HANDSHAKE_MS


class ConnectionSlots:
    """The limit on the number of connections, shared by several listeners."""

    __slots__ = ("_maximum", "_shared", "taken")

    def __init__(self, maximum: int, shared: "ConnectionSlots | None" = None) -> None:
        """`shared` are those of more listeners, of which each connection takes one as well."""
        self._maximum = maximum
        self._shared = shared
        self.taken = 0

    @property
    def is_full(self) -> bool:
        """True if there is no slot for another connection."""
        return self.taken >= self._maximum or (self._shared is not None and self._shared.is_full)

    def take(self) -> None:
        """Take a slot for a connection."""
        self.taken += 1
        if self._shared is not None:
            self._shared.take()

    def give_back(self) -> None:
        """Give back the slot of a connection."""
        self.taken -= 1
        if self._shared is not None:
            self._shared.give_back()


class Listener:
    """One listening address."""

    def __init__(
        self,
        settings: ListenerSettings,
        loop_context: LoopContext,
        connect: Callable[[Peer, OutputListener], BaseConnection],
        tls: Tls | None = None,
        *,
        connection_slots: ConnectionSlots | None = None,
    ) -> None:
        """`connection_slots` are shared with other listeners; by default the listener has its own limit."""
        self.settings = settings
        self._connection_slots = connection_slots or ConnectionSlots(_CONNECTIONS_MAX)
        self._loop_context = loop_context
        self._connect = connect
        self._tls = tls
        self._servers: list[asyncio.Server | Acceptor] = []
        # Unfinished handshakes by address.
        self._half_open: dict[str, int] = {}
        self._connections: set[AmqpProtocol] = set()
        self._setup: ConnectionSetup | None = None
        self.addresses: list[tuple[str, int]] = []
        # Clients of a Unix socket have no port: numbers distinguish them.
        self._client_numbers = itertools.count(1)
        # The file of its Unix socket.
        self._file = (0, 0)

    @property
    def is_tls(self) -> bool:
        """True if clients connect with TLS."""
        return self._tls is not None

    @property
    def connection_count(self) -> int:
        """The number of open sockets."""
        return len(self._connections)

    async def start(self) -> None:
        """Listen; OSError if the address cannot be used."""
        await self._listen(self.settings.port)

    async def suspend(self) -> None:
        """Refuse clients until `resume`; those that have not finished their handshake are dropped."""
        await self.stop()
        self._servers.clear()
        for protocol in [one for one in self._connections if one.is_half_open]:
            protocol.abort()

    async def resume(self) -> None:
        """Accept clients again at the same addresses; OSError if they cannot be used."""
        if not self._servers:
            await self._listen(self.addresses[0][1])

    async def stop(self) -> None:
        """Stop accepting clients; open connections remain."""
        for server in self._servers:
            server.close()
            if isinstance(server, Acceptor):
                await server.wait_closed()
        if self._servers and self._is_unix:
            remove_unix(self.settings.host, self._file)

    def abort(self) -> None:
        """Drop all clients at once."""
        for protocol in list(self._connections):
            protocol.abort()

    # --- ConnectionRegistry -------------------------------------------------------------------

    def admit(self, protocol: AmqpProtocol, transport: asyncio.Transport) -> BaseConnection | None:
        """Create a connection for a new socket; None if there are too many."""
        peer = protocol.peer = self._peer(transport, protocol.ends)
        # After a handshake the client has a slot already, and its address was checked, unless it came through
        # a proxy.
        if self._setup is None and self._is_full(peer.name):
            return None
        is_asked_about = self._setup is not None and not self.settings.is_proxied
        if not is_asked_about and self._has_too_many_half_open(peer.host, peer.name):
            return None
        self._set_options(transport)
        self._connections.add(protocol)
        self._connection_slots.take()
        self._count_half_open(peer.host)
        return self._connect(peer, protocol)

    def opened(self, protocol: AmqpProtocol) -> None:
        """The client has completed its handshake."""
        assert protocol.peer is not None
        self._uncount_half_open(protocol.peer.host)

    def connection_closed(self, protocol: AmqpProtocol) -> None:
        """A socket was closed."""
        if protocol in self._connections:
            self._connections.discard(protocol)
            self._connection_slots.give_back()
            if protocol.is_half_open:
                self.opened(protocol)

    # --- private ------------------------------------------------------------------------------

    @property
    def _is_unix(self) -> bool:
        return is_unix(self.settings.host)

    async def _listen(self, port: int) -> None:
        settings = self.settings
        if self._is_unix:
            sockets = [bind_unix(settings.host, settings.unix_mode, settings.backlog)]
            self.addresses = [(settings.host, 0)]
            self._file = file_number(settings.host)
        else:
            sockets = bind(settings.host, port, settings.backlog)
            self.addresses = [listening.getsockname()[:2] for listening in sockets]
        for listening in sockets:
            self._servers.append(await self._serve(listening))

    def _protocol(self, ends: ProxiedEnds | None = None) -> AmqpProtocol:
        return AmqpProtocol(self, self._loop_context, ends, send_timeout_ms=self.settings.send_timeout_ms)

    async def _serve(self, listening: socket.socket) -> asyncio.Server | Acceptor:
        settings = self.settings
        if settings.is_proxied or self._tls is not None:
            self._setup = ConnectionSetup(
                make_protocol=self._protocol,
                is_proxied=settings.is_proxied,
                tls=self._tls,
                header_ms=settings.handshake_ms,
                tls_handshake_ms=settings.tls_handshake_ms,
            )
            return Acceptor(listening, self._begin)
        loop = asyncio.get_running_loop()
        create = loop.create_unix_server if self._is_unix else loop.create_server
        return await create(self._protocol, sock=listening, backlog=settings.backlog)

    def _begin(self, connected: socket.socket, host: str) -> Coroutine[object, object, None] | None:
        """Start the handshake of a new client; None if there is no slot for it."""
        if self._is_full(host) or (not self.settings.is_proxied and self._has_too_many_half_open(host, host)):
            return None
        return self._shake_hands(connected, host)

    async def _shake_hands(self, connected: socket.socket, host: str) -> None:
        """Perform the handshake; the protocol takes over the slot when it is connected."""
        assert self._setup is not None
        # All clients of a proxy share its address, which is therefore not limited.
        who = "" if self.settings.is_proxied else host
        self._connection_slots.take()
        self._count_half_open(who)
        try:
            await self._setup.begin(connected)
        finally:
            self._connection_slots.give_back()
            self._uncount_half_open(who)

    def _is_full(self, name: str) -> bool:
        if not self._connection_slots.is_full:
            return False
        logger.warning("refused connection %s: %d connections are open", name, self._connection_slots.taken)
        return True

    def _has_too_many_half_open(self, host: str, name: str) -> bool:
        if self._half_open.get(host, 0) < self.settings.half_open_max or is_loopback(host):
            return False
        logger.warning("refused connection %s: too many unfinished handshakes from its address", name)
        return True

    def _count_half_open(self, host: str) -> None:
        self._half_open[host] = self._half_open.get(host, 0) + 1

    def _uncount_half_open(self, host: str) -> None:
        self._half_open[host] -= 1
        if not self._half_open[host]:
            del self._half_open[host]

    def _peer(self, transport: asyncio.Transport, ends: ProxiedEnds | None) -> Peer:
        if ends is None and self._is_unix:
            path = self.settings.host
            ends = ProxiedEnds(path, next(self._client_numbers), path, 0)
        if ends is None:
            client, server = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
            # The address of a client that has disconnected already is unknown.
            client, server = client or ("0.0.0.0", 0), server or ("0.0.0.0", 0)
            ends = ProxiedEnds(client[0], client[1], server[0], server[1])
        connected = transport.get_extra_info("ssl_object")
        if self._tls is None or connected is None:
            return Peer(
                host=ends.host, port=ends.port, server_host=ends.server_host, server_port=ends.server_port
            )
        cipher = connected.cipher()
        return Peer(
            host=ends.host,
            port=ends.port,
            server_host=ends.server_host,
            server_port=ends.server_port,
            is_tls=True,
            tls_protocol=connected.version() or "",
            tls_cipher=cipher[0] if cipher else "",
            certificate_login=self._tls.certificate_login(connected),
        )

    def _set_options(self, transport: asyncio.Transport) -> None:
        connected = transport.get_extra_info("socket")
        if connected is not None and self.settings.options != _DEFAULTS:
            self.settings.options.set(connected)
