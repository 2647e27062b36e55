"""What the HTTP API looks at: the node's objects, gathered by who built them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from warren.flow.alarms import Alarms
from warren.jobs.jobs import Jobs
from warren.management.arrow_responses import ArrowResponses
from warren.management.controls import Controls
from warren.management.quarantine_view import QuarantineView
from warren.management.queue_index import QueueIndex
from warren.management.web_sessions import WebSessions
from warren.metadata.definitions_import import PasswordHasher
from warren.metadata.machine import Metadata
from warren.metadata.parameters import CLUSTER_ID, CLUSTER_NAME
from warren.metadata.proposals import Proposals
from warren.metrics.sampler import Sampler
from warren.session.server import Server
from warren.session.streams.counts import StreamCounts
from warren.staging.staging import Staging


@dataclass(frozen=True, slots=True)
class ListenerView:
    """One listening address; `protocol` is RabbitMQ's name: amqp, amqp/ssl, http, https, http/prometheus …"""

    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol} {host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VhostStatus:
    """How a virtual host is."""

    name: str
    # False while it is restarted, and when it is down.
    is_running: bool
    # True while confirms wait for room on the disk.
    is_full: bool
    # What could not be read of its messages: each with its file and its place.
    damage: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Messages that were on the disk, and cannot be read any more."""

    vhost: str
    # Of the store of that virtual host, and from which octet on.
    file: str
    offset: int
    reason: str
    # How many at most, and of which queues; None, and no queue, if nobody knows.
    messages: int | None
    queues: tuple[str, ...]
    # True when an operator has said that this is known.
    acknowledged: bool = False


@dataclass(slots=True, kw_only=True)
class ManagedNode:
    """One node."""

    node_name: str
    # What it is called as long as nobody has called it something else.
    first_cluster_name: str
    metadata: Metadata
    proposals: Proposals
    # Hashes a password with a salt of its own.
    hash_password: PasswordHasher
    # The same, as RabbitMQ hashes unless it is told otherwise.
    default_hash: PasswordHasher
    server: Server
    alarms: Alarms
    sampler: Sampler
    queue_index: QueueIndex
    jobs: Jobs
    staging: Staging
    # What clients of the stream protocol did.
    stream_counts: StreamCounts
    # Where it keeps what survives, and what it was configured with; empty without.
    data_directory: str
    config_files: tuple[str, ...]
    vhosts: Callable[[], list[VhostStatus]]
    # What was lost of messages; and that an operator knows of it, of all or of one virtual host: how many
    # nobody had known of.
    losses: Callable[[], list[Loss]]
    acknowledge_losses: Callable[[str | None], int]
    # Starts a virtual host that exists, if it is down; answers what is in the way, if anything.
    start_vhost: Callable[[str], Awaitable[str]]
    # What is on the disk and the metadata do not name.
    quarantine: QuarantineView
    # Who is signed in to the web interface.
    sessions: WebSessions
    # Until when the certificates in use are valid, by file (Unix time, ms).
    certificates: Callable[[], dict[str, int]]
    # Its settings, its limits and its log.
    controls: Controls
    now: Callable[[], int]
    started_at: int
    # Who is sent messages as rows.
    arrow_responses: ArrowResponses = field(init=False)
    # How many clients each listener takes; None for as many as there are descriptors for.
    connections_max: int | None = None
    # Ways to log in that are offered, and what sockets of clients are given.
    mechanisms: tuple[str, ...] = ()
    socket_options: Mapping[str, object] = field(default_factory=dict)
    # Filled as they are started.
    listeners: list[ListenerView] = field(default_factory=list)

    def __post_init__(self) -> None:
        # A connection has moved if it did anything since the sample before.
        self.arrow_responses = ArrowResponses(lambda: bool(self.server.moved))

    @property
    def cluster_name(self) -> str:
        """What clients and people are told that they are connected to."""
        name = self.metadata.global_parameters.by_name.get(CLUSTER_NAME)
        return name if isinstance(name, str) else self.first_cluster_name

    @property
    def cluster_id(self) -> str:
        """What tells the cluster from every other; its name where nobody has given it one."""
        found = self.metadata.global_parameters.by_name.get(CLUSTER_ID)
        return found if isinstance(found, str) else self.cluster_name
