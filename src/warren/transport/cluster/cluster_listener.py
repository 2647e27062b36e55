"""Accepts connections of other nodes, and bounds what those cost that have not proved themselves.

An address from which too many peers did not prove themselves waits before it is listened to, as after failed
logins.
"""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Coroutine

from msgspec import Struct

from warren.access.login_throttle import LoginThrottle, LoginThrottleSettings
from warren.cluster.link_connection import LinkConnection
from warren.cluster.node_link import PeerNode
from warren.cluster.node_links import NodeLinks
from warren.limits import TLS_HANDSHAKE_MS
from warren.limits_cluster import (
    CLUSTER_UNPROVEN_DELAY_MS_MAX,
    CLUSTER_UNPROVEN_MAX,
    CLUSTER_UNPROVEN_PER_ADDRESS_MAX,
)
from warren.transport.acceptor import Acceptor
from warren.transport.cluster.cluster_tls import ClusterTls, check_certificate
from warren.transport.cluster.link_protocol import LinkProtocol, LinkRegistry
from warren.transport.protocol import LoopContext
from warren.transport.sockets import SocketOptions, bind
from warren.transport.tls import accept

logger = logging.getLogger("warren.cluster")

_OPTIONS = SocketOptions(is_keepalive=True)
_BACKLOG = 128
_THROTTLE = LoginThrottleSettings(delay_ms_max=CLUSTER_UNPROVEN_DELAY_MS_MAX)


class ClusterListenerSettings(Struct, frozen=True, kw_only=True):
    """Where a node listens to others, and what it grants to peers that have not proved themselves."""

    host: str = ""
    port: int = 25672
    login_throttle: LoginThrottleSettings = _THROTTLE


class ClusterListener:
    """The listening sockets of a node for other nodes."""

    def __init__(
        self,
        settings: ClusterListenerSettings,
        links: NodeLinks,
        loop_context: LoopContext,
        buffer: memoryview,
        *,
        tls: ClusterTls | None,
    ) -> None:
        """`buffer` is that of all reads."""
        self._settings = settings
        self.links = links
        self.loop_context = loop_context
        self.buffer = buffer
        self.tls = tls
        self.throttle = LoginThrottle(settings.login_throttle)
        self.protocols: set[LinkProtocol] = set()
        self.addresses: list[tuple[str, int]] = []
        self._acceptors: list[Acceptor] = []
        # Connections whose peer has not proved itself, by address.
        self._unproven: Counter[str] = Counter()

    async def start(self) -> None:
        """Listen; OSError if the address cannot be used."""
        for listening in bind(self._settings.host, self._settings.port, _BACKLOG):
            self.addresses.append(listening.getsockname()[:2])
            self._acceptors.append(Acceptor(listening, self._begin))

    async def stop(self) -> None:
        """Stop accepting; connections remain."""
        for acceptor in self._acceptors:
            acceptor.close()
            await acceptor.wait_closed()

    def abort(self) -> None:
        """Drop all connections at once."""
        for protocol in list(self.protocols):
            protocol.abort()

    def release(self, host: str) -> None:
        """Note that a connection from `host` has proved itself, or is gone."""
        self._unproven[host] -= 1
        if not self._unproven[host]:
            del self._unproven[host]

    def _begin(self, connected: socket.socket, host: str) -> Coroutine[object, object, None] | None:
        """Start the handshakes of a new connection; None if there is no place for it."""
        if self._unproven[host] >= CLUSTER_UNPROVEN_PER_ADDRESS_MAX:
            logger.warning("refused a node at %s: too many connections without a proof from there", host)
            return None
        if self._unproven.total() >= CLUSTER_UNPROVEN_MAX:
            logger.warning("refused a node at %s: too many connections without a proof", host)
            return None
        self._unproven[host] += 1
        return _AcceptedLink(self, host).begin(connected)


class _AcceptedLink(LinkRegistry):
    """One accepted connection: the registry of its protocol."""

    def __init__(self, listener: ClusterListener, host: str) -> None:
        self._listener = listener
        self._host = host
        self._is_counted = True

    async def begin(self, connected: socket.socket) -> None:
        """Wait if this address has to, perform the handshake of TLS, and start the protocol."""
        listener = self._listener
        protocol = LinkProtocol(self, listener.loop_context, listener.buffer)
        try:
            # The address is the name as well: nobody is delayed by what comes from another one.
            wait_ms = listener.throttle.wait_ms(self._host, self._host, listener.loop_context.turn.now())
            if wait_ms is None:
                # It waits for others, and has done nothing yet.
                connected.close()
                self._release()
                logger.warning("refused a node at %s: too many attempts without a proof", self._host)
                return
            await asyncio.sleep(wait_ms / 1000)
            _OPTIONS.set(connected)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            tls = listener.tls.accepted if listener.tls is not None else None
            await accept(connected, lambda: protocol, tls, TLS_HANDSHAKE_MS / 1000)
        except TimeoutError:
            connected.close()
            self._release()
            logger.warning("refused a node at %s: no TLS handshake in time", self._host)
        except OSError as error:
            connected.close()
            self._failed(str(error))
        except asyncio.CancelledError:
            protocol.abandon()
            connected.close()
            self._release()
            raise

    def connect(self, protocol: LinkProtocol, transport: asyncio.Transport) -> LinkConnection:
        """Create the connection of a connected socket."""
        listener = self._listener
        listener.protocols.add(protocol)
        now = listener.loop_context.turn.now()
        if listener.tls is None:
            return listener.links.accept(protocol, now)

        def check(peer: PeerNode) -> None:
            check_certificate(transport, peer)

        return listener.links.accept(protocol, now, check)

    def proven(self, protocol: LinkProtocol) -> None:
        """The peer has proved itself."""
        self._release()
        now = self._listener.loop_context.turn.now()
        self._listener.throttle.succeeded(self._host, self._host, now)

    def ended(self, protocol: LinkProtocol, connection: LinkConnection) -> None:
        """The socket was closed."""
        self._listener.protocols.discard(protocol)
        if connection.is_unproven and connection.is_suspect:
            self._failed(connection.reason)
        else:
            # A peer that has said nothing, or has closed the connection itself, has guessed nothing.
            self._release()
            logger.info("the connection of a node at %s has ended: %s", self._host, connection.reason)

    def _failed(self, reason: str) -> None:
        self._release()
        logger.warning("refused a node at %s: %s", self._host, reason)
        now = self._listener.loop_context.turn.now()
        if self._listener.throttle.failed(self._host, self._host, now):
            logger.warning("too many nodes at %s without a proof: further ones are delayed", self._host)

    def _release(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._listener.release(self._host)
