"""The parts of a node that the HTTP API reads and controls."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from warren.flow.alarms import Alarms
from warren.jobs.jobs import Jobs
from warren.management.arrow_responses import ArrowResponses
from warren.management.cluster_controls import ClusterControls
from warren.management.cluster_nodes import ClusterNodes, HeldAnswers
from warren.management.controls import Controls
from warren.management.group_status import GroupStatus, HomeGroups
from warren.management.oauth_logins import OAuthLogins
from warren.management.quarantine_view import QuarantineView
from warren.management.queue_index import QueueIndex
from warren.management.relay_view import RelayView
from warren.management.web_sessions import WebSessions
from warren.metadata.commands import MetadataCommand
from warren.metadata.definitions_import import PasswordHasher
from warren.metadata.machine import Metadata
from warren.metadata.parameters import CLUSTER_ID, CLUSTER_NAME
from warren.metadata.proposals import Proposals
from warren.metadata.records import QueueRecord
from warren.metrics.sampler import Sampler
from warren.session.server import Server
from warren.session.streams.counts import StreamCounts
from warren.staging.staging import Staging

# RabbitMQ's name of what nodes speak with each other.
CLUSTERING = "clustering"


class ListenerView(Struct, frozen=True):
    """A listening address; `protocol` is RabbitMQ's name: amqp, amqp/ssl, http, https, http/prometheus …"""

    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        if self.host.startswith("/"):
            return f"{self.protocol} {self.host}"
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
    # Sessions of the web interface, and logins for them at OAuth 2 providers.
    sessions: WebSessions
    oauth_logins: OAuthLogins
    # The end of validity of each certificate in use, by file (Unix time, ms).
    certificates: Callable[[], dict[str, int]]
    # The operations on settings, limits and log.
    controls: Controls
    # What the node says of its cluster, and the operations on it.
    cluster_controls: ClusterControls
    now: Callable[[], int]
    started_at: int
    # The responses in Arrow format that are being sent.
    arrow_responses: ArrowResponses = field(init=False)
    # Who leads the quorum queues.
    groups: GroupStatus = field(init=False)
    # Shovels and federation links.
    relays: RelayView = field(default_factory=RelayView)
    # The other nodes of the cluster; None if it has none.
    cluster: ClusterNodes | None = None
    # What was received of their answers and is not used yet.
    held_answers: HeldAnswers = field(default_factory=HeldAnswers)
    # The connection limit of each listener; None if only file descriptors limit it.
    connections_max: int | None = None
    # How many nodes the cluster is to have.
    target_cluster_size: int = 1
    # The offered SASL mechanisms, and the options of client sockets.
    mechanisms: tuple[str, ...] = ()
    socket_options: Mapping[str, object] = field(default_factory=dict)
    # True if operator policies are not changed one by one.
    has_fixed_operator_policies: bool = False
    # True if requests for users are not answered with hashes of passwords.
    has_hidden_password_hashes: bool = False
    # True if requests with a name and password are refused.
    is_basic_auth_refused: bool = False
    # Listeners for clients are added as they start.
    listeners: list[ListenerView] = field(default_factory=list)
    # Where the node listens to other nodes at present.
    cluster_addresses: Callable[[], Sequence[tuple[str, int]]] = tuple
    # Adds the members of the cluster that get replicas to a command of definitions.
    placed: Callable[[MetadataCommand], MetadataCommand] = lambda command: command
    # The type of imported queues without one, in virtual hosts without a default; empty: classic.
    default_queue_type: str = ""

    def __post_init__(self) -> None:
        # `moved` holds the connections that did anything since the last sample.
        self.arrow_responses = ArrowResponses(lambda: bool(self.server.moved))
        self.groups = HomeGroups(self.metadata.members, self.server.vhost_services, self.is_own)

    def name_of(self, node_id: int) -> str:
        """The name of a node of the cluster, or of one that was a member."""
        members = self.metadata.members
        found = members.by_id.get(node_id) or members.removed.get(node_id)
        return self.node_name if found is None else found.name

    def is_own(self, node_id: int) -> bool:
        """True if `node_id` is the number of this node."""
        return self.cluster is None or node_id == self.cluster.own_id

    def is_up(self, node_id: int) -> bool:
        """True if a node is this one, or a member of the cluster that is up."""
        return self.is_own(node_id) or self.metadata.members.run_of(node_id) is not None

    def home_of(self, record: QueueRecord) -> int:
        """The node that serves a queue: its home, or the node that leads its replicas if one is known."""
        leader = self.groups.leader_of(record) if record.members else None
        return record.home if leader is None else leader

    @property
    def all_listeners(self) -> list[ListenerView]:
        """The listeners for clients, and those for other nodes."""
        return self.listeners + [ListenerView(CLUSTERING, *address) for address in self.cluster_addresses()]

    @property
    def active_listeners(self) -> list[ListenerView]:
        """The addresses that accept connections now: without those of clients while they are refused."""
        if self.cluster_controls.accepts_clients:
            return self.all_listeners
        return [one for one in self.all_listeners if one.protocol.startswith(("http", CLUSTERING))]

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
