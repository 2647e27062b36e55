"""Connects to other nodes: names, sockets and TLS, within a time."""

import asyncio
import logging
import ssl
from collections.abc import Callable, Coroutine

from warren.cluster.hello import LinkPurpose
from warren.cluster.link_connection import LinkConnection
from warren.cluster.node_link import NodeLink
from warren.cluster.node_links import NodeLinks
from warren.limits_cluster import CLUSTER_DIAL_MS
from warren.transport.cluster.cluster_tls import ClusterTls
from warren.transport.cluster.link_protocol import LinkProtocol, LinkRegistry
from warren.transport.host_socket import HostUnreachable, addresses_of, connect_to_one, failure_reason
from warren.transport.protocol import LoopContext

logger = logging.getLogger("warren.cluster")

# Who joins says so itself, since it asks one node after the other; and a refusal is what answers an inquiry.
_UNREPORTED = (LinkPurpose.JOIN, LinkPurpose.INQUIRY)


class LinkDialer:
    """Opens the connections of one node to others, and knows those that are open."""

    def __init__(
        self,
        loop_context: LoopContext,
        buffer: memoryview,
        schedule: Callable[[], None],
        *,
        tls: ClusterTls | None,
    ) -> None:
        """`buffer` is that of all reads; `schedule` is called when an attempt is due earlier."""
        self.loop_context = loop_context
        self.buffer = buffer
        self.tls = tls
        self._schedule = schedule
        self.protocols: set[LinkProtocol] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        # What was logged last of each connection that does not succeed, so that it is logged once.
        self._told: dict[tuple[NodeLink, LinkPurpose], str] = {}

    def dial(self, links: NodeLinks, link: NodeLink, purpose: LinkPurpose) -> None:
        """Begin an attempt; a link is told of its failure, or attached to the connection."""
        self._begin(_DialedLink(self, links, link, purpose).open())

    def probe(self, links: NodeLinks, link: NodeLink) -> None:
        """Find out whether anybody listens where the peer of `link` does, and has this node as a member."""
        self._begin(_DialedLink(self, links, link, LinkPurpose.INQUIRY).open())

    def _begin(self, attempt: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(attempt)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Give up all attempts."""
        for task in list(self._tasks):
            task.cancel()

    def abort(self) -> None:
        """Drop all connections at once."""
        for protocol in list(self.protocols):
            protocol.abort()

    def succeeded(self, link: NodeLink, purpose: LinkPurpose) -> None:
        """Log the next failure of this connection."""
        self._told.pop((link, purpose), None)

    def failed(self, link: NodeLink, purpose: LinkPurpose, reason: str) -> None:
        """Log why a connection is not there, unless that was logged last."""
        self._schedule()
        self._told = {key: text for key, text in self._told.items() if not key[0].is_closed}
        if link.is_closed or self._told.get((link, purpose)) == reason:
            return
        self._told[link, purpose] = reason
        peer = link.peer
        name = f"'{peer.name}' at " if peer.name else ""
        logger.log(
            logging.DEBUG if purpose in _UNREPORTED else logging.WARNING,
            "no %s connection to node %s%s:%d: %s",
            purpose.name.lower(),
            name,
            peer.host,
            peer.port,
            reason,
        )


class _DialedLink(LinkRegistry):
    """One attempt: the registry of its protocol."""

    def __init__(self, dialer: LinkDialer, links: NodeLinks, link: NodeLink, purpose: LinkPurpose) -> None:
        self._dialer = dialer
        self._links = links
        self._link = link
        self._purpose = purpose
        self._is_connected = False

    async def open(self) -> None:
        """Connect the socket, perform the handshake of TLS, and start the protocol."""
        try:
            async with asyncio.timeout(CLUSTER_DIAL_MS / 1000):
                await self._open()
        except ssl.SSLCertVerificationError as error:
            self._failed(f"its certificate is not accepted: {error.verify_message}")
        except TimeoutError:
            self._failed(f"no answer within {CLUSTER_DIAL_MS} ms")
        except HostUnreachable as error:
            self._failed(str(error), is_refused=error.is_refused)
        except (OSError, ValueError) as error:
            self._failed(failure_reason(error))
        except asyncio.CancelledError:
            self._failed("the node stops")
            raise

    async def _open(self) -> None:
        peer, dialer = self._link.peer, self._dialer
        context = await dialer.tls.dialed() if dialer.tls is not None else None
        connected = await connect_to_one(await addresses_of(peer.host, peer.port), CLUSTER_DIAL_MS / 1000)
        protocol = LinkProtocol(self, dialer.loop_context, dialer.buffer)
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: protocol,
                sock=connected,
                ssl=context,
                server_hostname=peer.host if context is not None else None,
            )
        except BaseException:
            protocol.abandon()
            connected.close()
            raise

    def _failed(self, reason: str, *, is_refused: bool = False) -> None:
        """Tell the link, unless its connection does."""
        if not self._is_connected:
            self._link.dial_failed(self._purpose, reason, is_refused=is_refused)
            self._dialer.failed(self._link, self._purpose, reason)

    # --- LinkRegistry -----------------------------------------------------------------------------

    def connect(self, protocol: LinkProtocol, transport: asyncio.Transport) -> LinkConnection:
        """Create the connection of a connected socket."""
        self._is_connected = True
        self._dialer.protocols.add(protocol)
        now = self._dialer.loop_context.turn.now()
        return self._links.dialed(self._link, self._purpose, protocol, now)

    def proven(self, protocol: LinkProtocol) -> None:
        """The peer has proved itself."""
        self._dialer.succeeded(self._link, self._purpose)

    def ended(self, protocol: LinkProtocol, connection: LinkConnection) -> None:
        """The socket was closed."""
        self._dialer.protocols.discard(protocol)
        self._dialer.failed(self._link, self._purpose, connection.reason)
