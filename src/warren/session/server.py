"""What every connection of one broker shares; built by the node, used by the sessions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from warren import limits
from warren.model.samples import Samples
from warren.session.admission_control import AdmissionControl
from warren.session.amqp_connection import AmqpConnection
from warren.session.events.connection_log import ConnectionLog
from warren.session.events.event_publisher import EventPublisher
from warren.session.handshake import HandshakeSettings, Offer
from warren.session.outbox import Outbox
from warren.session.throttle import HeldTotal
from warren.session.vhost_services import VhostServices
from warren.vhost.coroutine_driver import Later
from warren.vhost.requester import Owner
from warren.vhost.vhost import VirtualHost


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """What one client may do, and how long it may take."""

    handshake: HandshakeSettings
    message_size_max: int = limits.MESSAGE_SIZE_MAX
    # How long a delivery may be unsettled before its consumer is cancelled; None is for ever.
    consumer_timeout_ms: int | None = limits.CONSUMER_TIMEOUT_MS
    # None is no limit.
    consumers_per_channel_max: int | None = limits.CHANNEL_CONSUMERS_MAX
    # The virtual host in which what happens is announced.
    event_vhost: str = "/"


class StreamClient(Protocol):
    """An open connection of another protocol."""

    @property
    def user(self) -> str:
        """Whose it is."""

    @property
    def vhost(self) -> str:
        """The name of the virtual host that it works in."""

    @property
    def octets_received(self) -> int:
        """How many have come."""

    @property
    def outbox(self) -> Outbox:
        """What is sent, and how much was."""

    # How many were received and sent when its virtual host has counted them.
    octets_counted: tuple[int, int]
    # Its samples.
    history: Samples | None

    def block(self, reason: str) -> None:
        """Hold it up if it publishes, for `reason`; an empty one lets it go on."""

    def disconnect(self, reason: str) -> None:
        """End it for `reason`, which it may be told."""


class Server:
    """The broker, as a connection sees it."""

    __slots__ = (
        "_channels",
        "_connections_of_user",
        "_connections_of_vhost",
        "_serial",
        "admission_control",
        "blocked_reason",
        "channels_closed_count",
        "channels_opened_count",
        "connection_log",
        "connections",
        "connections_closed_count",
        "connections_opened_count",
        "event_publisher",
        "held",
        "later",
        "log",
        "moved",
        "offer",
        "random_octets",
        "report",
        "settings",
        "stream_clients",
        "vhost_services",
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
        # The virtual hosts that are alive, by name.
        self.vhost_services: dict[str, VhostServices] = {}
        self.event_publisher = EventPublisher(
            self._event_vhost, dependencies.later, node_name=dependencies.node_name
        )
        self.connection_log = ConnectionLog(dependencies.log, self.event_publisher.pid)
        self.random_octets = dependencies.random_octets
        self.later = dependencies.later
        self.report = dependencies.report
        self.log = dependencies.log
        # Why publishers are held up now, as connection.blocked says it; empty when they are not.
        self.blocked_reason = ""
        self.held = HeldTotal(dependencies.later)
        # The open connections, in the order in which they came.
        self.connections: dict[AmqpConnection, None] = {}
        # And those of other protocols.
        self.stream_clients: dict[StreamClient, None] = {}
        # Those of them whose numbers have changed since somebody took this.
        self.moved: dict[AmqpConnection, None] = {}
        # Since the start.
        self.connections_opened_count = 0
        self.connections_closed_count = 0
        self.channels_opened_count = 0
        self.channels_closed_count = 0
        self._serial = 0
        # By user, and by virtual host; who has none is not in them.
        self._channels: dict[str, int] = {}
        self._connections_of_user: dict[str, int] = {}
        self._connections_of_vhost: dict[str, int] = {}

    def _event_vhost(self) -> VirtualHost | None:
        services = self.vhost_services.get(self.settings.event_vhost)
        return None if services is None else services.vhost

    def next_owner(self) -> Owner:
        """What the exclusive queues of one more connection belong to."""
        self._serial += 1
        return Owner(f"connection {self._serial}", self._serial)

    def block(self, reason: str) -> None:
        """Hold every publisher up (a memory or disk alarm); an empty `reason` lets them go on."""
        self.blocked_reason = reason
        for connection in list(self.connections):
            connection.block(reason)
        for stream_client in list(self.stream_clients):
            stream_client.block(reason)

    def opened(self, connection: AmqpConnection) -> None:
        """`connection` is open."""
        self.connections[connection] = None
        self.connections_opened_count += 1
        user, vhost = _user_and_vhost(connection)
        _count(self._connections_of_user, user, 1)
        _count(self._connections_of_vhost, vhost, 1)
        self.event_publisher.opened(connection)
        self.connection_log.opened(connection)

    def closed(self, connection: AmqpConnection) -> None:
        """`connection` was open, and is not any more."""
        del self.connections[connection]
        self.moved.pop(connection, None)
        self.count_octets(connection, _user_and_vhost(connection)[1])
        self.connections_closed_count += 1
        user, vhost = _user_and_vhost(connection)
        _count(self._connections_of_user, user, -1)
        _count(self._connections_of_vhost, vhost, -1)
        self.event_publisher.closed(connection)

    def stream_client_opened(self, stream_client: StreamClient) -> None:
        """`stream_client` is open: it counts for limits."""
        self.stream_clients[stream_client] = None
        self.connections_opened_count += 1
        _count(self._connections_of_user, stream_client.user, 1)
        _count(self._connections_of_vhost, stream_client.vhost, 1)

    def stream_client_closed(self, stream_client: StreamClient) -> None:
        """`stream_client` was open, and is not any more."""
        del self.stream_clients[stream_client]
        self.count_octets(stream_client, stream_client.vhost)
        self.connections_closed_count += 1
        _count(self._connections_of_user, stream_client.user, -1)
        _count(self._connections_of_vhost, stream_client.vhost, -1)

    @property
    def connection_count(self) -> int:
        """How many connections are open, of any protocol."""
        return len(self.connections) + len(self.stream_clients)

    def count_octets(self, connection: AmqpConnection | StreamClient, name: str) -> None:
        """Add what `connection` has received and sent since this was called to what its virtual host has."""
        services = self.vhost_services.get(name)
        if services is None:
            return
        vhost = services.vhost
        received, sent = connection.octets_counted
        connection.octets_counted = connection.octets_received, connection.outbox.total
        vhost.octets_received += connection.octets_received - received
        vhost.octets_sent += connection.outbox.total - sent

    def channel_opened(self, connection: AmqpConnection) -> None:
        """`connection` has one more channel."""
        self.channels_opened_count += 1
        _count(self._channels, _user_and_vhost(connection)[0], 1)

    def channels_closed(self, connection: AmqpConnection, count: int) -> None:
        """`connection` has `count` channels less."""
        self.channels_closed_count += count
        _count(self._channels, _user_and_vhost(connection)[0], -count)

    def take_dirty(self) -> list[AmqpConnection]:
        """The connections whose numbers have changed since this was asked last."""
        moved = list(self.moved)
        self.moved = {}
        return moved

    def channels_of(self, user: str) -> int:
        """How many channels `user` has open."""
        return self._channels.get(user, 0)

    def connections_of(self, user: str) -> int:
        """How many connections `user` has open."""
        return self._connections_of_user.get(user, 0)

    def connections_to(self, vhost: str) -> int:
        """How many connections to `vhost` are open."""
        return self._connections_of_vhost.get(vhost, 0)

    def is_alive(self, vhost: str) -> bool:
        """Whether `vhost`, which exists, can be worked in: not while its disk has failed."""
        return vhost in self.vhost_services


def _no_log(category: str, level: str, text: str, fields: Mapping[str, object]) -> None:
    """Whoever runs sessions without a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDependencies:
    """What the sessions need from above the waterline."""

    random_octets: Callable[[int], bytes]
    later: Later
    node_name: str
    # Told what went wrong that nobody expected, in one line.
    report: Callable[[str], None]
    # And what became of clients: the category and level of a line, its text, and what is known as data.
    log: Callable[[str, str, str, Mapping[str, object]], None] = _no_log


def _user_and_vhost(connection: AmqpConnection) -> tuple[str, str]:
    """User and virtual host of an open connection."""
    assert connection.login is not None
    assert connection.services is not None
    return connection.login.user, connection.services.vhost.name


def _count(counts: dict[str, int], key: str, change: int) -> None:
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
