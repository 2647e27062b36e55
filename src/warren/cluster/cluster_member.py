"""This node as a member of its cluster: what its links are for, and what follows from the metadata.

    control, bulk │ the metadata group: `metadata_peers`
    control       │ states of the nodes: `node_states`; questions of their operators: `node_queries`
    data          │ queues whose home is another node: `remote_queues`
    all of these  │ replicas of groups: `groups/group_traffic`
    joins         │ nodes that ask, and this node while it asks: `admission`

Links follow the records of the members. The members of the metadata group, and who is up, are decided by the
leader of that group: `group_members`, `presence`.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from warren.cluster.admission import (
    Admission,
    AdmissionAnswer,
    AdmissionRequest,
    KnownMember,
    ask,
    read_answer,
)
from warren.cluster.group_members import GroupMembers
from warren.cluster.groups.group_traffic import GroupTraffic
from warren.cluster.hello import NO_CLUSTER, LinkPurpose, LocalNode
from warren.cluster.member_list import MemberList
from warren.cluster.metadata_peers import MetadataPeers
from warren.cluster.node_link import LinkListener, NodeLink, PeerNode
from warren.cluster.node_links import NodeLinks
from warren.cluster.node_queries import NodeQueries
from warren.cluster.node_states import NodeStates
from warren.cluster.presence import Presence
from warren.cluster.remote_queues import RemoteQueues
from warren.journal.journal import Journal
from warren.limits_metadata import CLUSTER_ID_SIZE, METADATA_TICK_MS
from warren.metadata.commands import Reply
from warren.metadata.events import Event, MemberChanged, MemberRemoved
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import FormCluster, MemberUp
from warren.metadata.records import MemberRecord
from warren.model.coroutine_driver import Later

# The interval of the ticks, with which pings are sent, too.
TICK_MS = METADATA_TICK_MS
# The answer of a node that was admitted to a cluster, and has not been sent its metadata.
_WITHOUT_METADATA = AdmissionAnswer(refusal="this member has only just joined the cluster: ask another one")
# How long the link to a removed member stays at least: some heartbeats, by which it hears that it is removed.
_REMOVED_TICKS = 3
# How long a removed member waits at most until the others do without its vote.
_LEAVING_TICKS_MAX = 25


class ClusterAddress(Struct, frozen=True, kw_only=True):
    """Where the other members reach a node, and where clients do, if that is advertised."""

    host: str
    port: int
    amqp_host: str | None = None
    amqp_port: int | None = None


class ClusterDependencies(Struct, frozen=True, kw_only=True):
    """What a member needs of its node."""

    metadata: Metadata
    journal: Journal
    # The way of the journal to the other members.
    peers: MetadataPeers
    remote_queues: RemoteQueues
    group_traffic: GroupTraffic
    states: NodeStates
    queries: NodeQueries
    address: ClusterAddress
    random_bytes: Callable[[int], bytes]
    later: Later
    # What this node answers to nodes that ask while it is in no cluster; None: it begins one for them.
    while_blank: AdmissionAnswer | None = None
    # Called when this node is no member of its cluster any more.
    on_removed: Callable[[], None] = lambda: None
    # Called with the name of a member that refuses this node, because it was removed from the cluster.
    on_refused: Callable[[str], None] = lambda _: None


class ClusterMember(LinkListener):
    """One run of this node in its cluster; a node that has met no other is ready to form one."""

    def __init__(self, local: LocalNode, dependencies: ClusterDependencies) -> None:
        """`begin` follows."""
        self._dependencies = dependencies
        self._local = local
        metadata, journal = dependencies.metadata, dependencies.journal
        self._node_links: NodeLinks | None = None
        self._now: Callable[[], int] = lambda: 0
        self._group_members = GroupMembers(journal, metadata)
        self._presence = Presence(
            journal, metadata, dependencies.peers.links, own=self._up(), later=dependencies.later
        )
        while_blank = dependencies.while_blank if local.cluster_id == NO_CLUSTER else _WITHOUT_METADATA
        self._member_list = MemberList(metadata, dependencies.peers.links, self._connect)
        self._admission = Admission(metadata, journal, self._form, while_blank=while_blank)
        # Members that were removed, and for how many ticks they have been; also this one.
        self._removed: dict[int, int] = {}
        self._is_refused = False
        # While this node asks to join: what it asks for, and what is called with the answer.
        self._request: AdmissionRequest | None = None
        self._answered: Callable[[AdmissionAnswer], None] = lambda _: None

    @property
    def group_traffic(self) -> GroupTraffic:
        """The traffic of this node's replicas with those on other members."""
        return self._dependencies.group_traffic

    def begin(self, node_links: NodeLinks, now: Callable[[], int], known: Sequence[KnownMember] = ()) -> None:
        """Connect to the members, and to those that are `known` to a node without metadata."""
        dependencies = self._dependencies
        self._node_links = node_links
        self._now = now
        dependencies.peers.begin(dependencies.journal)
        dependencies.metadata.listen(self._changed, (MemberChanged, MemberRemoved))
        for member in known:
            self._connect(
                PeerNode(node_id=member.node_id, name=member.name, host=member.host, port=member.port)
            )
        for record in list(dependencies.metadata.members.by_id.values()):
            self._know(record)

    def tick(self) -> None:
        """Do what is due; called every TICK_MS."""
        if self._local.cluster_id == NO_CLUSTER:
            return
        self._dependencies.peers.tick()
        self._group_members.tick()
        self._presence.tick(TICK_MS)
        self._dependencies.states.tick(TICK_MS)
        self._dependencies.queries.tick()
        self.group_traffic.tick(TICK_MS)
        self._dependencies.remote_queues.tick(TICK_MS)
        self._notice_refusal()
        for member in list(self._removed):
            self._removed[member] += 1
            if self._is_dispensable(member):
                self._forget(member)

    def join(self, host: str, port: int, answered: Callable[[AdmissionAnswer], None]) -> NodeLink:
        """Ask the member that listens there to admit this node; `answered` is called once.

        Returns the link by which it asks.
        """
        assert self._node_links is not None
        address = self._dependencies.address
        self._request = AdmissionRequest(address.host, address.port)
        self._answered = answered
        link = self._node_links.join(host, port, self._now())
        ask(link, self._request)
        return link

    async def form(self) -> Reply:
        """Begin a cluster, of which this node is the first member."""
        return await self._admission.form()

    def stop_joining(self) -> None:
        """Ask no more."""
        assert self._node_links is not None
        self._request = None
        self._node_links.stop_joining()

    # --- LinkListener --------------------------------------------------------------------------------

    def received(self, link: NodeLink, purpose: LinkPurpose, kind: int, body: bytes) -> None:
        """Hand a payload to what it is for. Raises PayloadError."""
        if purpose is not LinkPurpose.JOIN and GroupTraffic.takes(kind):
            self.group_traffic.received(link, purpose, kind, body)
        elif purpose is LinkPurpose.DATA:
            self._dependencies.remote_queues.received(link, kind, body)
        elif purpose is not LinkPurpose.JOIN:
            self._received_of_member(link, purpose, kind, body)
        elif not link.is_dialer:
            self._admission.received(link, kind, body)
        elif self._request is not None:
            answer = read_answer(kind, body)
            self.stop_joining()
            self._answered(answer)

    def session_began(self, link: NodeLink, purpose: LinkPurpose) -> None:
        """Use the queues of a member from now on, and let it use those of this node."""
        if purpose is LinkPurpose.DATA:
            self._dependencies.remote_queues.session_began(link)
        elif purpose is LinkPurpose.CONTROL:
            self._member_list.tell(link)
        if purpose is not LinkPurpose.JOIN:
            self.group_traffic.session_began(link, purpose)
        self._dependencies.states.session_began(link, purpose)

    def session_lost(self, link: NodeLink, purpose: LinkPurpose) -> None:
        """Note that what was sent may not have arrived."""
        if purpose is not LinkPurpose.JOIN:
            self.group_traffic.session_lost(link, purpose)
        if purpose is LinkPurpose.DATA:
            self._dependencies.remote_queues.session_lost(link)
        elif purpose is not LinkPurpose.JOIN:
            self._dependencies.peers.session_lost(link, purpose)
            self._dependencies.states.session_lost(link, purpose)
            if purpose is LinkPurpose.CONTROL:
                self._dependencies.queries.session_lost(link)
        elif link.is_dialer and self._request is not None and not link.is_closed:
            ask(link, self._request)

    def silent(self, link: NodeLink) -> None:
        """Forget what the node tells all the time: what else follows from a silence, see `Presence`."""
        self._dependencies.states.silent(link)
        self._dependencies.peers.silent(link)
        self.group_traffic.silent(link)

    def heard(self, link: NodeLink) -> None:
        """Count on the node again."""
        self._dependencies.states.heard(link)
        self.group_traffic.heard(link)

    def writable(self, link: NodeLink, purpose: LinkPurpose) -> None:
        """Go on with what waits for the link."""
        if purpose is not LinkPurpose.JOIN:
            self.group_traffic.writable(link, purpose)
        if purpose is LinkPurpose.DATA:
            self._dependencies.remote_queues.writable(link)
            return
        self._dependencies.peers.writable(link, purpose)
        if purpose is LinkPurpose.CONTROL:
            self._dependencies.queries.writable(link)

    def pinged(self, link: NodeLink, digest: bytes) -> None:
        """Take what the node tells of its state. Raises PayloadError."""
        self._dependencies.states.pinged(link, digest)

    # --- private -------------------------------------------------------------------------------------

    def _received_of_member(self, link: NodeLink, purpose: LinkPurpose, kind: int, body: bytes) -> None:
        dependencies = self._dependencies
        if purpose is LinkPurpose.CONTROL and NodeQueries.takes(kind):
            dependencies.queries.received(link, kind, body)
        elif purpose is LinkPurpose.CONTROL and NodeStates.takes(kind):
            dependencies.states.received(link, kind, body)
        elif purpose is LinkPurpose.CONTROL and MemberList.takes(kind):
            self._member_list.received(body)
        else:
            dependencies.peers.received(link, kind, body)

    def _notice_refusal(self) -> None:
        """Report the first member that refuses this node as one that was removed."""
        if self._is_refused:
            return
        for link in self._dependencies.peers.links.values():
            if link.is_removed_by_peer:
                self._is_refused = True
                self._dependencies.on_refused(link.peer.name)
                return

    def _up(self) -> MemberUp:
        """The command that says that this node is there."""
        address, local = self._dependencies.address, self._local
        return MemberUp(
            id=local.node_id, incarnation=local.incarnation, host=address.host, cluster_port=address.port,
            feature_level=local.feature_level, amqp_host=address.amqp_host, amqp_port=address.amqp_port,
        )  # fmt: skip

    def _form(self) -> FormCluster:
        """The command by which this node becomes the first member of a cluster."""
        address, local = self._dependencies.address, self._local
        return FormCluster(
            cluster_id=self._dependencies.random_bytes(CLUSTER_ID_SIZE), name=local.name, host=address.host,
            cluster_port=address.port, incarnation=local.incarnation, feature_level=local.feature_level,
            amqp_host=address.amqp_host, amqp_port=address.amqp_port,
        )  # fmt: skip

    def _changed(self, event: Event) -> None:
        if isinstance(event, MemberChanged):
            if self._know(event.member):
                self._member_list.tell_all()
        elif isinstance(event, MemberRemoved):
            self._removed[event.member.id] = 0
            minority, own = self._dependencies.states.minority, self._local.node_id
            if event.member.id == own and minority.reaches_majority(without=own):
                self._forget(own)

    def _is_dispensable(self, member: int) -> bool:
        """True if the others can agree without a removed member, as far as this node knows.

        They count its vote until the group is changed, for which they may need it: two nodes, of which one
        leaves, have no majority without it.
        """
        ticks = self._removed[member]
        if ticks <= _REMOVED_TICKS:
            return False
        dependencies = self._dependencies
        if member not in dependencies.journal.group.replica.configuration.members:
            return True
        if member != self._local.node_id:
            return False
        # Nobody tells it of a change that is agreed on without it: the others close their links.
        links = dependencies.peers.links.values()
        return ticks > _LEAVING_TICKS_MAX or all(link.is_silent for link in links)

    def _forget(self, member: int) -> None:
        """Close the link to a removed member; if it is this one, it is no member any more."""
        assert self._node_links is not None
        del self._removed[member]
        if member == self._local.node_id:
            self._dependencies.on_removed()
            return
        self._node_links.forget(member)
        self._dependencies.peers.links.pop(member, None)

    def _know(self, record: MemberRecord) -> bool:
        """Follow the record of a member; True if it is new to this node, or has moved."""
        if record.id != self._local.node_id:
            return self._connect(
                PeerNode(node_id=record.id, name=record.name, host=record.host, port=record.cluster_port)
            )
        if self._local.cluster_id == NO_CLUSTER:
            # This node has just formed the cluster.
            local = self._local
            self._local = LocalNode(
                cluster_id=self._dependencies.metadata.members.cluster_id, node_id=local.node_id,
                name=local.name, incarnation=local.incarnation, feature_level=local.feature_level,
            )  # fmt: skip
            assert self._node_links is not None
            self._node_links.become(self._local)
        return False

    def _connect(self, peer: PeerNode) -> bool:
        """Connect to another member, or wait for it to connect; True if it is new, or has moved."""
        assert self._node_links is not None
        links = self._dependencies.peers.links
        known = links.get(peer.node_id)
        is_new = peer.node_id != self._local.node_id and (known is None or known.peer != peer)
        if is_new:
            links[peer.node_id] = self._node_links.connect(peer, self._now())
        return is_new
