"""The state shared by all connections of one broker."""

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from warren import limits
from warren.access.client_counts import ClientCountKind, ClientCounts
from warren.metadata.incarnation import FIRST_INCARNATION, Incarnation
from warren.model.coroutine_driver import Later
from warren.model.turn import Turn
from warren.session.admission_control import AdmissionControl
from warren.session.amqp_connection import AmqpConnection
from warren.session.any_connection import AnyConnection
from warren.session.events.connection_log import ConnectionLog
from warren.session.events.event_publisher import EventPublisher
from warren.session.handshake import HandshakeSettings, Offer
from warren.session.throttle import HeldTotal
from warren.session.vhost_services import VhostServices
from warren.vhost.requester import Owner
from warren.vhost.vhost import VirtualHost


class SessionSettings(Struct, frozen=True, kw_only=True):
    """The limits and timeouts of a client."""

    handshake: HandshakeSettings
    message_size_max: int = limits.MESSAGE_SIZE_MAX
    # The time a delivery may be unacknowledged before its consumer is cancelled (ms); None is no limit.
    consumer_timeout_ms: int | None = limits.CONSUMER_TIMEOUT_MS
    # None is no limit.
    consumers_per_channel_max: int | None = limits.CHANNEL_CONSUMERS_MAX
    # The open channels of all clients of the node; None is no limit.
    channels_max: int | None = None
    # The uncommitted publishes of a transaction; None is no limit.
    transaction_publishes_max: int | None = None
    # The virtual host of the event exchange.
    event_vhost: str = "/"


class Server:
    """The broker as its connections see it."""

    __slots__ = (
        "_incarnation", "_serial", "admission_control", "blocked_reason", "channels_closed_count",
        "channels_opened_count", "client_counts", "connection_log", "connections",
        "connections_closed_count", "connections_opened_count",
        "event_publisher", "held", "later", "log", "moved", "offer", "random_bytes", "report",
        "settings", "stream_connections", "turn", "vhost_services", "wait_for_vhost",
    )  # fmt: skip

    def __init__(
        self,
        admission_control: AdmissionControl,
        settings: SessionSettings,
        dependencies: "ServerDependencies",
    ) -> None:
        self.admission_control = admission_control
        self.settings = settings
        self.offer = Offer(settings.handshake)
        # The running virtual hosts by name.
        self.vhost_services: dict[str, VhostServices] = {}
        # Waits while a virtual host starts for the first time.
        self.wait_for_vhost: Callable[[str], Awaitable[None]] = _at_once
        self.event_publisher = EventPublisher(
            self._event_vhost,
            dependencies.later,
            node_name=dependencies.node_name,
            run=dependencies.incarnation.number,
        )
        self.connection_log = ConnectionLog(dependencies.log, self.event_publisher.pid)
        self.random_bytes = dependencies.random_bytes
        self.later = dependencies.later
        self.turn = dependencies.turn
        self.report = dependencies.report
        self.log = dependencies.log
        # The reason sent in connection.blocked while publishers are blocked; else empty.
        self.blocked_reason = ""
        self.held = HeldTotal(dependencies.later)
        # The open connections of AMQP, and those of the stream protocol, in order of arrival.
        self.connections: dict[AmqpConnection, None] = {}
        self.stream_connections: dict[AnyConnection, None] = {}
        # The connections whose counters have changed since `take_dirty`.
        self.moved: dict[AnyConnection, None] = {}
        # Counters since the start of the node.
        self.connections_opened_count = 0
        self.connections_closed_count = 0
        self.channels_opened_count = 0
        self.channels_closed_count = 0
        self._serial = 0
        self._incarnation = dependencies.incarnation
        # Channels by user, and connections by user and virtual host, also those of other nodes.
        self.client_counts = ClientCounts()

    def _event_vhost(self) -> VirtualHost | None:
        services = self.vhost_services.get(self.settings.event_vhost)
        return None if services is None else services.vhost

    @property
    def next_serial(self) -> int:
        """The serial number of the next connection."""
        return self._serial + 1

    def next_owner(self) -> Owner:
        """Create the owner of a new connection's exclusive queues."""
        self._serial += 1
        return Owner(self._incarnation.owner(self._serial), self._serial)

    def block(self, reason: str) -> None:
        """Block all publishers (memory or disk alarm); an empty reason unblocks them."""
        self.blocked_reason = reason
        for connection in self.all_connections():
            connection.block(reason)

    def opened(self, connection: AmqpConnection) -> None:
        """Register `connection`, which has been opened."""
        self.connections[connection] = None
        self._count_opened(connection)
        self.connection_log.opened(connection)

    def closed(self, connection: AmqpConnection) -> None:
        """Remove `connection`, which has ended."""
        del self.connections[connection]
        self._count_closed(connection)

    def stream_opened(self, connection: AnyConnection) -> None:
        """Register `connection` of the stream protocol, which has been opened."""
        self.stream_connections[connection] = None
        self._count_opened(connection)

    def stream_closed(self, connection: AnyConnection) -> None:
        """Remove `connection` of the stream protocol, which has ended."""
        del self.stream_connections[connection]
        self._count_closed(connection)

    def _count_opened(self, connection: AnyConnection) -> None:
        """Count `connection` for the limits and the statistics, and publish its event."""
        self.connections_opened_count += 1
        self.client_counts.add(ClientCountKind.USER_CONNECTIONS, connection.identity, 1)
        self.client_counts.add(ClientCountKind.VHOST_CONNECTIONS, connection.vhost_name, 1)
        self.event_publisher.opened(connection)

    def _count_closed(self, connection: AnyConnection) -> None:
        self.moved.pop(connection, None)
        self.count_bytes(connection)
        self.connections_closed_count += 1
        self.client_counts.add(ClientCountKind.USER_CONNECTIONS, connection.identity, -1)
        self.client_counts.add(ClientCountKind.VHOST_CONNECTIONS, connection.vhost_name, -1)
        self.event_publisher.closed(connection)

    def all_connections(self) -> list[AnyConnection]:
        """The open connections of both protocols, those of AMQP first."""
        return [*self.connections, *self.stream_connections]

    @property
    def channel_count(self) -> int:
        """The number of open channels."""
        return self.channels_opened_count - self.channels_closed_count

    @property
    def connection_count(self) -> int:
        """The number of open connections of both protocols."""
        return len(self.connections) + len(self.stream_connections)

    def count_bytes(self, connection: AnyConnection) -> None:
        """Add the bytes of `connection` since the last call to the counters of its virtual host."""
        services = self.vhost_services.get(connection.vhost_name)
        if services is None:
            return
        vhost = services.vhost
        received, sent = connection.bytes_counted
        connection.bytes_counted = connection.bytes_received, connection.outbox.total
        vhost.bytes_received += connection.bytes_received - received
        vhost.bytes_sent += connection.outbox.total - sent

    def channel_opened(self, connection: AmqpConnection) -> None:
        """Count a channel that `connection` has opened."""
        self.channels_opened_count += 1
        self.client_counts.add(ClientCountKind.USER_CHANNELS, connection.identity, 1)

    def channels_closed(self, connection: AmqpConnection, count: int) -> None:
        """Count `count` channels that `connection` has closed."""
        self.channels_closed_count += count
        self.client_counts.add(ClientCountKind.USER_CHANNELS, connection.identity, -count)

    def take_dirty(self) -> list[AnyConnection]:
        """Return the connections whose counters have changed since the last call."""
        moved = list(self.moved)
        self.moved = {}
        return moved

    def channels_of(self, user: str) -> int:
        """The number of open channels of `user`, on all nodes of the cluster."""
        return self.client_counts.total(ClientCountKind.USER_CHANNELS, user)

    def connections_of(self, user: str) -> int:
        """The number of open connections of `user`, on all nodes of the cluster."""
        return self.client_counts.total(ClientCountKind.USER_CONNECTIONS, user)

    def connections_to(self, vhost: str) -> int:
        """The number of open connections to `vhost`, on all nodes of the cluster."""
        return self.client_counts.total(ClientCountKind.VHOST_CONNECTIONS, vhost)

    def is_alive(self, vhost: str) -> bool:
        """True if `vhost`, which exists, is running; False after a failure of its disk."""
        return vhost in self.vhost_services

    async def wait_until_started(self, vhost: str) -> None:
        """Wait while `vhost`, which exists, starts for the first time."""
        await self.wait_for_vhost(vhost)


async def _at_once(vhost: str) -> None:
    """Used where virtual hosts start at once."""


def _no_log(category: str, level: str, text: str, fields: Mapping[str, object]) -> None:
    """Used where sessions run without a log."""


class ServerDependencies(Struct, frozen=True, kw_only=True):
    """The functions that sessions need from above the waterline."""

    random_bytes: Callable[[int], bytes]
    later: Later
    turn: Turn
    node_name: str
    # The run of the node, which is in the names of owners of exclusive queues.
    incarnation: Incarnation = FIRST_INCARNATION
    # Reports an unexpected error in one line.
    report: Callable[[str], None]
    # Writes a log entry: its category, level, text and fields.
    log: Callable[[str, str, str, Mapping[str, object]], None] = _no_log
