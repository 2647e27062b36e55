"""The links of a node with their sockets and timers."""

import asyncio
import logging
from collections.abc import Callable

from msgspec import Struct, field

from warren.cluster.hello import LocalNode
from warren.cluster.node_link import LinkListener, NodeLinkDependencies
from warren.cluster.node_links import NodeLinks
from warren.limits_cluster import CLUSTER_PING_MS, CLUSTER_READ_SIZE
from warren.runtime.randomness import random_bytes
from warren.runtime.timers import Timer
from warren.session.peer import is_loopback
from warren.transport.cluster.cluster_listener import ClusterListener, ClusterListenerSettings
from warren.transport.cluster.cluster_tls import ClusterTls, ClusterTlsSettings
from warren.transport.cluster.link_dialer import LinkDialer
from warren.transport.protocol import LoopContext

logger = logging.getLogger("warren.cluster")


class ClusterTransportSettings(Struct, frozen=True, kw_only=True):
    """How a node listens to others and dials them."""

    listener: ClusterListenerSettings = field(default_factory=ClusterListenerSettings)
    # Without it, links are not encrypted.
    tls: ClusterTlsSettings | None = None


class ClusterTransportDependencies(Struct, frozen=True, kw_only=True):
    """What the links of a node need of it."""

    loop_context: LoopContext
    listener: LinkListener
    # What is told with each ping.
    digest: Callable[[], bytes]
    # True if the node with this number was removed from the cluster.
    is_removed: Callable[[int], bool] = lambda _: False
    # Called every `tick_ms`: the interval of the pings is a multiple, so that one wake is for both.
    tick: Callable[[], None] = lambda: None
    tick_ms: int = CLUSTER_PING_MS


class ClusterTransport:
    """All links of one node."""

    def __init__(
        self,
        settings: ClusterTransportSettings,
        node: LocalNode,
        cookie: bytes,
        dependencies: ClusterTransportDependencies,
    ) -> None:
        """Raises TlsError if the certificates cannot be used."""
        loop_context = dependencies.loop_context
        self._loop_context = loop_context
        self.tls = None if settings.tls is None else ClusterTls(settings.tls)
        buffer = memoryview(bytearray(CLUSTER_READ_SIZE))
        self._dialer = LinkDialer(loop_context, buffer, self._schedule, tls=self.tls)
        link_dependencies = NodeLinkDependencies(
            listener=dependencies.listener,
            random_bytes=random_bytes,
            dial=lambda link, purpose: self._dialer.dial(self.links, link, purpose),
            probe=lambda link: self._dialer.probe(self.links, link),
            is_removed=dependencies.is_removed,
            digest=dependencies.digest,
            schedule=self._schedule,
        )
        self.links = NodeLinks(node, cookie, link_dependencies, loop_context.turn.now())
        self._listener = ClusterListener(settings.listener, self.links, loop_context, buffer, tls=self.tls)
        self._timer: Timer | None = None
        self._tick, self._tick_ms = dependencies.tick, dependencies.tick_ms
        # When the next tick is due, as a time of the links.
        self._tick_at = 0

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where the node listens."""
        return self._listener.addresses

    async def start(self) -> None:
        """Listen, and keep links connected; OSError if the address cannot be used."""
        await self._listener.start()
        if self.tls is None and not all(is_loopback(host) for host, _ in self.addresses):
            logger.warning("links between nodes are not encrypted: set cluster.ssl_options")
        self._timer = Timer(asyncio.get_running_loop(), self._loop_context.turn, self._ring)
        self._schedule()

    async def stop(self) -> None:
        """Close all links, and listen no more."""
        if self._timer is not None:
            self._timer.stop()
        self._dialer.stop()
        await self._listener.stop()
        self.links.close()
        self._dialer.abort()
        self._listener.abort()

    def _schedule(self) -> None:
        """Have the timer ring in time, after something is due earlier."""
        if self._timer is not None:
            self._timer.set(self._due())

    def _due(self) -> int:
        """When the timer rings next, on the clock of the node."""
        tick_at, due = self.links.clock_at(self._tick_at), self.links.deadline()
        return tick_at if due is None else min(tick_at, due)

    def _ring(self, now: int) -> int:
        try:
            self.links.tick(now)
            elapsed_ms = self.links.elapsed_ms
            if elapsed_ms >= self._tick_at:
                self._tick_at = elapsed_ms - elapsed_ms % self._tick_ms + self._tick_ms
                self._tick()
        except Exception:
            # The links are a unit of their own: an error of what they call stops neither them nor the node.
            logger.exception("internal error of the links between nodes")
        return self._due()
