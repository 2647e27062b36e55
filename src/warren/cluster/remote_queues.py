"""The queues of other nodes, and the traffic with each of them over the data connection of its link."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from warren.cluster.groups.group_traffic import GroupTraffic
from warren.cluster.hello import LinkPurpose
from warren.cluster.link_session import LinkFullError
from warren.cluster.node_link import NodeLink
from warren.cluster.node_traffic import NodeTraffic, TrafficDependencies
from warren.cluster.remote_queue import RemoteQueue
from warren.cluster.remote_stream import RemoteStream
from warren.cluster.replicated.background_proposals import BackgroundProposals
from warren.cluster.replicated.queue_leaders import QueueLeaders
from warren.cluster.replicated.replicated_queues import ReplicatedNode, ReplicatedQueues
from warren.cluster.reply_forwarding import ReplyForwarding
from warren.limits_cluster import DISCONNECTED_MS
from warren.metadata.incarnation import Incarnation
from warren.metadata.proposals import Proposals
from warren.metadata.records import QueueRecord
from warren.model.arguments import QUORUM, STREAM, QueueSettings
from warren.queues.quorum.quorum_queue import ReplicaMaker
from warren.queues.vhost_queue import VhostQueue
from warren.vhost.vhost import VirtualHost

_DATA = LinkPurpose.DATA


class Replication(Struct, frozen=True, kw_only=True):
    """What the replicas of quorum queues on this node need."""

    traffic: GroupTraffic
    random_bytes: Callable[[int], bytes]
    proposals: Proposals
    # How long (ms) a node that was lost keeps what it holds of a queue that does not say otherwise.
    disconnected_ms: int = DISCONNECTED_MS


class RemoteQueues:
    """What this node has to do with the queues of all others, and they with its own."""

    def __init__(
        self,
        incarnation: Incarnation,
        links: Mapping[int, NodeLink],
        dependencies: TrafficDependencies,
        replication: Replication,
    ) -> None:
        """`incarnation` is the run of this node, and `links` has the links to the other members."""
        self._node = incarnation.node
        self._links = links
        self._dependencies = dependencies
        self._traffic: dict[int, NodeTraffic] = {}
        self._replicated = ReplicatedQueues(
            ReplicatedNode(
                incarnation=incarnation,
                metadata=dependencies.metadata,
                later=dependencies.later,
                after=dependencies.after,
                home_of=lambda other, vhost: self._traffic_with(other).home_of(vhost),
                traffic=replication.traffic,
                random_bytes=replication.random_bytes,
                metadata_proposals=replication.proposals,
                proposals=BackgroundProposals(replication.proposals, dependencies.after, dependencies.report),
                disconnected_ms=replication.disconnected_ms,
            )
        )

    def queue(
        self, vhost: VirtualHost, record: QueueRecord, settings: QueueSettings, make: ReplicaMaker
    ) -> VhostQueue | None:
        """The queue of `record` if its home is another node, also one that is no member any more.

        A quorum queue is used in the same way wherever it is: `make` makes the one of its replica here.
        """
        if settings.kind == QUORUM and record.survives_restart and vhost.stores is not None:
            return self._replicated.queue(vhost, record, settings, make)
        if record.home == self._node:
            return None
        kind = RemoteStream if settings.kind == STREAM else RemoteQueue
        return kind(record, vhost, settings, self._traffic_with(record.home).home_of(vhost))

    @property
    def leaders(self) -> QueueLeaders:
        """Who leads each quorum queue."""
        return self._replicated.leaders

    def hand_over(self) -> None:
        """Have other members lead the quorum queues that this node leads."""
        self._replicated.hand_over()

    @property
    def is_handing_over(self) -> bool:
        """True while another member is about to lead a quorum queue that this node leads."""
        return self._replicated.is_handing_over

    def tick(self, elapsed_ms: int) -> None:
        """Note that some time has passed."""
        self._replicated.tick(elapsed_ms)

    def replies(self, vhost: VirtualHost) -> ReplyForwarding:
        """The requesters of direct replies of `vhost` on other nodes."""
        return ReplyForwarding(
            self._node, self._dependencies.metadata, lambda node: self._traffic_with(node).home_of(vhost)
        )

    def vhost_began(self, name: str) -> None:
        """Handle what has waited for the virtual host `name`, which has started on this node."""
        for traffic in list(self._traffic.values()):
            traffic.vhost_began(name)

    def vhost_ended(self, name: str) -> None:
        """End all that concerns the virtual host `name`, which has ended on this node."""
        self._replicated.vhost_ended(name)
        for traffic in list(self._traffic.values()):
            traffic.vhost_ended(name)

    # --- what the links call --------------------------------------------------------------------------

    def session_began(self, link: NodeLink) -> None:
        """A session of a data connection has begun."""
        self._traffic_with(link.peer.node_id).session_began()

    def session_lost(self, link: NodeLink) -> None:
        """The session has ended: nothing of it follows."""
        self._traffic_with(link.peer.node_id).session_lost()

    def received(self, link: NodeLink, kind: int, body: bytes) -> None:
        """Handle a payload."""
        self._traffic_with(link.peer.node_id).received(kind, body)

    def writable(self, link: NodeLink) -> None:
        """The link takes payloads again."""
        self._traffic_with(link.peer.node_id).writable()

    # --- private --------------------------------------------------------------------------------------

    def _traffic_with(self, node: int) -> NodeTraffic:
        traffic = self._traffic.get(node)
        if traffic is None:
            channel = _LinkChannel(lambda: self._links.get(node), self._dependencies)
            traffic = self._traffic[node] = NodeTraffic(
                self._name(node), channel, self._dependencies, node=node
            )
        return traffic

    def _name(self, node: int) -> str:
        """The name of a node that is a member, or was one."""
        link, members = self._links.get(node), self._dependencies.metadata.members
        if link is not None:
            return link.peer.name
        found = members.by_id.get(node) or members.removed.get(node)
        return f"node {node}" if found is None else found.name


class _LinkChannel:
    """The data connection of a link: implements port `NodeChannel`."""

    def __init__(self, find: Callable[[], NodeLink | None], dependencies: TrafficDependencies) -> None:
        """`find` returns the link; None if there is none."""
        self._find = find
        self._dependencies = dependencies

    @property
    def is_writable(self) -> bool:
        """False while what was sent must be waited for."""
        link = self._find()
        return link is not None and link.is_writable(_DATA)

    def send(self, kind: int, body: bytes) -> None:
        """Send a payload; the session ends if the other node lags behind too far."""
        link = self._find()
        if link is None:
            return
        try:
            link.send(_DATA, kind, body)
        except LinkFullError as error:
            self.end_session(str(error))

    def end_session(self, reason: str) -> None:
        """End the session in a turn of its own; `session_lost` follows."""
        link = self._find()
        if link is None:
            return
        lost = link.session_number(_DATA)

        def end(_: int) -> None:
            if link.session_number(_DATA) == lost:
                link.end_session(_DATA, reason)

        self._dependencies.later(end)
