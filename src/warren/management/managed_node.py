"""The parts of a node that the HTTP API reads and controls."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from warren.flow.alarms import Alarms
from warren.jobs.jobs import Jobs
from warren.management.arrow_responses import ArrowResponses
from warren.management.controls import Controls
from warren.management.quarantine_view import QuarantineView
from warren.management.queue_index import QueueIndex
from warren.management.relay_view import RelayView
from warren.management.web_sessions import WebSessions
from warren.metadata.definitions_import import PasswordHasher
from warren.metadata.machine import Metadata
from warren.metadata.parameters import CLUSTER_ID, CLUSTER_NAME
from warren.metadata.proposals import Proposals
from warren.metrics.sampler import Sampler
from warren.session.server import Server
from warren.session.streams.counts import StreamCounts
from warren.staging.staging import Staging


class ListenerView(Struct, frozen=True):
    """A listening address; `protocol` is RabbitMQ's name: amqp, amqp/ssl, http, https, http/prometheus …"""

    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol} {host}:{self.port}"


class VhostStatus(Struct, frozen=True, kw_only=True):
    """The state of a virtual host."""

    name: str
    # False while it is being restarted, and while it is down.
    is_running: bool
    # True while confirms wait for disk space.
    is_full: bool
    # Damaged parts of its message store, each with file and offset.
    damage: tuple[str, ...]


class Loss(Struct, frozen=True, kw_only=True):
    """Persistent messages that can no longer be read."""

    vhost: str
    # A file of the message store of the virtual host, and the offset in bytes at which the damage begins.
    file: str
    offset: int
    reason: str
    # The greatest possible number of messages and their queues; None and empty if they are not known.
    messages: int | None
    queues: tuple[str, ...]
    # True when an operator has acknowledged the loss.
    acknowledged: bool = False


@dataclass(slots=True, kw_only=True)
class ManagedNode:
    """A node, as the HTTP API needs it."""

    node_name: str
    # The cluster name until an operator sets another.
    first_cluster_name: str
    metadata: Metadata
    proposals: Proposals
    # Hashes a password with a new salt, using the configured algorithm.
    hash_password: PasswordHasher
    # Hashes a password with a new salt, using RabbitMQ's default algorithm.
    default_hash: PasswordHasher
    server: Server
    alarms: Alarms
    sampler: Sampler
    queue_index: QueueIndex
    jobs: Jobs
    staging: Staging
    # Counters of the stream protocol.
    stream_counts: StreamCounts
    # The data directory, empty if the node is in memory only, and the configuration files.
    data_directory: str
    config_files: tuple[str, ...]
    vhosts: Callable[[], list[VhostStatus]]
    # Losses of messages, and their acknowledgement, of all virtual hosts or of one, which returns how many
    # were not acknowledged before.
    losses: Callable[[], list[Loss]]
    acknowledge_losses: Callable[[str | None], int]
    # Starts an existing virtual host that is down; returns the reason if it cannot, else an empty text.
    start_vhost: Callable[[str], Awaitable[str]]
    # Data on disk that the metadata do not name.
    quarantine: QuarantineView
    # Sessions of the web interface.
    sessions: WebSessions
    # The end of validity of each certificate in use, by file (Unix time, ms).
    certificates: Callable[[], dict[str, int]]
    # The operations on settings, limits and log.
    controls: Controls
    now: Callable[[], int]
    started_at: int
    # The responses in Arrow format that are being sent.
    arrow_responses: ArrowResponses = field(init=False)
    # Shovels and federation links.
    relays: RelayView = field(default_factory=RelayView)
    # The connection limit of each listener; None if only file descriptors limit it.
    connections_max: int | None = None
    # The offered SASL mechanisms, and the options of client sockets.
    mechanisms: tuple[str, ...] = ()
    socket_options: Mapping[str, object] = field(default_factory=dict)
    # Listeners are added as they start.
    listeners: list[ListenerView] = field(default_factory=list)

    def __post_init__(self) -> None:
        # `moved` holds the connections that did anything since the last sample.
        self.arrow_responses = ArrowResponses(lambda: bool(self.server.moved))

    @property
    def cluster_name(self) -> str:
        """The cluster name that clients and the API report."""
        name = self.metadata.global_parameters.by_name.get(CLUSTER_NAME)
        return name if isinstance(name, str) else self.first_cluster_name

    @property
    def cluster_id(self) -> str:
        """The unique id of the cluster; its name if no id has been set."""
        found = self.metadata.global_parameters.by_name.get(CLUSTER_ID)
        return found if isinstance(found, str) else self.cluster_name
