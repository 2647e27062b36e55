"""The connections of one HTTP port: a bounded number, each with timeouts.

When the port is full, a new connection replaces the one that has been idle longest, so that a client that
opens many idle connections does not keep others out.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from ipaddress import IPv6Address, ip_address

from msgspec import Struct

from warren.limits import TLS_HANDSHAKE_MS
from warren.limits_http import (
    HTTP_ADDRESS_SHARE,
)
from warren.management.http_protocol import HttpProtocol, HttpTimeouts
from warren.runtime.timers import PeriodicTimer
from warren.transport.acceptor import Acceptor
from warren.transport.tls import Tls, accept

logger = logging.getLogger("warren.management")

# The interval of timeout checks (s).
_CHECK_INTERVAL_S = 1.0
# The holder of an IPv6 network has all addresses with its first 64 bits.
_NETWORK_BITS = 64


class HttpPortSettings(Struct, frozen=True, kw_only=True):
    """The settings of an HTTP port, fixed when it starts to listen."""

    connections_max: int
    tls: Tls | None
    tls_handshake_s: float = TLS_HANDSHAKE_MS / 1000
    timeouts: HttpTimeouts = HttpTimeouts()


class _Connection:
    """An accepted socket; its protocol exists once the TLS handshake is complete."""

    __slots__ = ("network", "protocol", "task")

    def __init__(self, network: str) -> None:
        self.network = network
        self.protocol: HttpProtocol | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """True if no request is being answered."""
        return self.protocol is None or self.protocol.is_waiting

    def drop(self) -> None:
        """Close the connection."""
        if self.protocol is not None:
            self.protocol.drop()
        elif self.task is not None:
            self.task.cancel()


class HttpConnections:
    """The connections of one HTTP port."""

    def __init__(
        self, settings: HttpPortSettings, make_protocol: Callable[[HttpTimeouts], HttpProtocol]
    ) -> None:
        self._settings = settings
        self._make_protocol = make_protocol
        self._address_max = max(1, settings.connections_max // HTTP_ADDRESS_SHARE)
        # In the order in which they last became idle, as of the last timeout check.
        self._connections: dict[_Connection, None] = {}
        self._by_network: dict[str, int] = {}
        self._acceptors: list[Acceptor] = []
        self._periodic: PeriodicTimer | None = None

    def listen(self, listening: socket.socket) -> None:
        """Accept connections on the socket `listening`."""
        self._acceptors.append(Acceptor(listening, self._begin))
        if self._periodic is None:
            self._periodic = PeriodicTimer(
                asyncio.get_running_loop(),
                min(_CHECK_INTERVAL_S, self._settings.timeouts.headers_s),
                self._check_timeouts,
            )

    async def stop(self) -> None:
        """Stop accepting connections; open ones stay."""
        for acceptor in self._acceptors:
            acceptor.close()
        for acceptor in self._acceptors:
            await acceptor.wait_closed()

    def close(self) -> None:
        """Close all connections."""
        if self._periodic is not None:
            self._periodic.stop()
        for connection in list(self._connections):
            connection.drop()

    # --- private ------------------------------------------------------------------------------

    def _begin(self, connected: socket.socket, host: str) -> Coroutine[object, object, None] | None:
        network = _network_of(host)
        if not self._make_room(network):
            return None
        connection = _Connection(network)
        self._connections[connection] = None
        self._by_network[network] = self._by_network.get(network, 0) + 1
        return self._tls_handshake(connected, connection)

    def _make_room(self, network: str) -> bool:
        """Make room for a connection from `network`; returns False if no idle one can be closed for it."""
        is_of_many = self._by_network.get(network, 0) >= self._address_max
        if not is_of_many and len(self._connections) < self._settings.connections_max:
            return True
        for connection in self._connections:
            if connection.is_idle and (connection.network == network or not is_of_many):
                self._forget(connection)
                connection.drop()
                return True
        logger.warning("refused an HTTP connection from %s: too many are open", network)
        return False

    async def _tls_handshake(self, connected: socket.socket, connection: _Connection) -> None:
        connection.task = asyncio.current_task()

        def protocol() -> HttpProtocol:
            made = self._make_protocol(self._settings.timeouts)
            made.on_open = lambda: self._opened(connection, made)
            made.on_lost = lambda: self._forget(connection)
            return made

        try:
            await accept(connected, protocol, self._settings.tls, self._settings.tls_handshake_s)
        except (OSError, TimeoutError) as error:
            logger.debug("TLS handshake failed: %s", error)
            connected.close()
        except asyncio.CancelledError:
            connected.close()
            raise
        finally:
            connection.task = None
            if connection.protocol is None:
                self._forget(connection)

    def _opened(self, connection: _Connection, protocol: HttpProtocol) -> None:
        if connection in self._connections:
            connection.protocol = protocol
        else:
            # The connection was closed during the handshake, to make room for another.
            protocol.drop()

    def _forget(self, connection: _Connection) -> None:
        if connection not in self._connections:
            return
        del self._connections[connection]
        self._by_network[connection.network] -= 1
        if not self._by_network[connection.network]:
            del self._by_network[connection.network]

    def _check_timeouts(self) -> None:
        """Close connections that exceed a timeout, and move busy ones to the end of the order."""
        for connection in list(self._connections):
            if connection.protocol is not None:
                connection.protocol.check_timeouts()
            if not connection.is_idle and connection in self._connections:
                del self._connections[connection]
                self._connections[connection] = None


def _network_of(host: str) -> str:
    """The network of `host` that counts as one address: an IPv4 address, or the first 64 bits of IPv6."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(int(address) >> (address.max_prefixlen - _NETWORK_BITS))
    return host
