"""What the nodes of a cluster tell each other of their state, and what follows on this one.

    each ping   │ a digest ─▶ `other_nodes`: alarms, numbers of clients, where the others listen
    control     │ counts of clients under limits ─▶ `client_count_sharing`
    each tick   │ links that are silent ─▶ `minority` ─▶ `partition_handling`

It is told what the links tell the member of the cluster, as far as it concerns it.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from warren.access.client_counts import ClientCounts
from warren.cluster.client_count_sharing import ClientCountPayload, ClientCountSharing
from warren.cluster.hello import LinkPurpose
from warren.cluster.minority import Minority
from warren.cluster.node_digest import (
    AdvertisedStreams,
    NodeDigest,
    NodeListener,
    bounded_listeners,
    encode_digest,
)
from warren.cluster.node_link import NodeLink
from warren.cluster.other_nodes import OtherNodes
from warren.cluster.partition_handling import PartitionActions, PartitionHandling, PartitionSettings
from warren.flow.alarms import Alarms
from warren.journal.journal import Journal
from warren.limits_cluster import CLUSTER_DIGEST_SILENT_MAX
from warren.metadata.events import Event, MemberChanged, MemberRemoved
from warren.metadata.machine import Metadata

# The protocol of streams in the list of listeners.
_STREAM = "stream"
_STREAM_TLS = "stream/ssl"


class NodeStatesDependencies(Struct, frozen=True, kw_only=True):
    """The parts of this node whose state is told, and on which the states of others have an effect."""

    # The number of this node, and the version of the broker.
    node: int
    release: str
    metadata: Metadata
    journal: Journal
    # The links to the other members, by their numbers.
    links: Mapping[int, NodeLink]
    alarms: Alarms
    client_counts: ClientCounts
    # The numbers of connections and channels.
    client_totals: Callable[[], tuple[int, int]]
    # Where this node listens to clients.
    listeners: Callable[[], Sequence[NodeListener]]
    # Where it wants clients of the stream protocol to connect.
    advertised_streams: AdvertisedStreams = AdvertisedStreams()
    partition_settings: PartitionSettings
    access: PartitionActions
    # Called with what an operator should know.
    report: Callable[[str], None]


class NodeStates:
    """The state of this node and of the others, as this node knows it."""

    def __init__(self, dependencies: NodeStatesDependencies) -> None:
        self._dependencies = dependencies
        metadata, journal, report = dependencies.metadata, dependencies.journal, dependencies.report
        self.others = OtherNodes(metadata, dependencies.alarms, report)
        self.minority = Minority(
            lambda: journal.group.replica.configuration, lambda: journal.group.leader[1], self._is_heard
        )
        self.partition_handling = PartitionHandling(
            self.minority, metadata, journal.barrier,
            settings=dependencies.partition_settings, access=dependencies.access, report=report,
        )  # fmt: skip
        self._sharing = ClientCountSharing(dependencies.client_counts, metadata)
        # What is told with the pings of one tick; empty until it is asked for.
        self._digest = b""
        metadata.listen(self._changed, (MemberChanged, MemberRemoved))

    def tick(self, elapsed_ms: int) -> None:
        """Note that some time has passed."""
        self._digest = b""
        self._sharing.tick()
        self.minority.tick(elapsed_ms)
        self.partition_handling.tick(elapsed_ms)

    def digest(self) -> bytes:
        """What this node tells with a ping, to all others the same in one tick."""
        if not self._digest:
            self._digest = self._new_digest()
        return self._digest

    def _new_digest(self) -> bytes:
        dependencies = self._dependencies
        member = dependencies.metadata.members.by_id.get(dependencies.node)
        connections, channels = dependencies.client_totals()
        return encode_digest(
            NodeDigest(
                alarms=tuple(dependencies.alarms.low),
                index=dependencies.metadata.index,
                is_draining=member is not None and member.is_draining,
                is_paused=self.partition_handling.is_paused,
                release=dependencies.release,
                connections=connections,
                channels=channels,
                silent=tuple(self._silent()[:CLUSTER_DIGEST_SILENT_MAX]),
                listeners=bounded_listeners(dependencies.listeners()),
                streams=dependencies.advertised_streams,
            )
        )

    def partitions(self, node: int) -> list[str]:
        """The members that are up by the metadata and that `node` does not hear, by their names.

        Nothing is known of that if this node does not hear `node`.
        """
        members = self._dependencies.metadata.members.by_id
        if node == self._dependencies.node:
            silent: Sequence[int] = self._silent()
        else:
            digest = self.others.digests.get(node)
            silent = () if digest is None else digest.silent
        return [members[id].name for id in silent if id in members]

    def stream_address(self, node: int, is_tls: bool) -> tuple[str, int] | None:
        """Where clients of streams connect to another member; None if it is not heard, or does not listen.

        It is what the settings of the member advertise, and else the host that it has for members, and the
        port of its listener.
        """
        member = self._dependencies.metadata.members.by_id.get(node)
        digest = self.others.digests.get(node)
        if member is None or digest is None:
            return None
        protocol = _STREAM_TLS if is_tls else _STREAM
        listening = next((one.port for one in digest.listeners if one.protocol == protocol), 0)
        host, port = digest.streams.address(is_tls=is_tls)
        return (host or member.host, port or listening) if listening else None

    # --- what the links call --------------------------------------------------------------------------

    @staticmethod
    def takes(kind: int) -> bool:
        """True if payloads of `kind` are for `received`."""
        return kind == ClientCountPayload.COUNTS

    def received(self, link: NodeLink, kind: int, body: bytes) -> None:
        """Take a payload of a control connection. Raises PayloadError if it is none of its own."""
        self._sharing.received(link, kind, body)

    def session_began(self, link: NodeLink, purpose: LinkPurpose) -> None:
        """Begin to tell a node what pings do not tell."""
        if purpose is LinkPurpose.CONTROL:
            self._sharing.session_began(link)

    def session_lost(self, link: NodeLink, purpose: LinkPurpose) -> None:
        """Forget what a node has told in its session."""
        if purpose is LinkPurpose.CONTROL:
            self._sharing.session_lost(link)

    def silent(self, link: NodeLink) -> None:
        """Forget what a node tells all the time, and do not count its clients."""
        self.others.forget(link.peer.node_id)
        self._sharing.silent(link.peer.node_id)

    def heard(self, link: NodeLink) -> None:
        """Count the clients of a node again."""
        self._sharing.heard(link.peer.node_id)

    def pinged(self, link: NodeLink, digest: bytes) -> None:
        """Take what a node tells with a ping. Raises PayloadError."""
        self.others.pinged(link, digest)

    # --- private --------------------------------------------------------------------------------------

    def _is_heard(self, node: int) -> bool:
        link = self._dependencies.links.get(node)
        return node == self._dependencies.node or (link is not None and not link.is_silent)

    def _silent(self) -> list[int]:
        members = self._dependencies.metadata.members.by_id.values()
        return [member.id for member in members if member.is_up and not self._is_heard(member.id)]

    def _changed(self, event: Event) -> None:
        if isinstance(event, MemberRemoved) or (isinstance(event, MemberChanged) and not event.member.is_up):
            self.others.forget(event.member.id)
