"""Nodes of a cluster with their links, in one thread: metadata, journals on disks, admission and presence.

Beside what holds of the members of a metadata group: a node is what its disk says, which is lost, torn and
full; the network delays, cuts, silences and corrupts; clocks are those of the nodes.
"""

import random
from collections import deque
from collections.abc import Callable

from tests.sim.agreement import Agreement
from tests.sim.disk import SimulatedDisk
from tests.sim.link_network import SimulatedNetwork, SimulatedSocket

from warren.access.client_counts import ClientCountKind, ClientCounts
from warren.cluster.admission import AdmissionAnswer, KnownMember
from warren.cluster.cluster_member import TICK_MS, ClusterAddress, ClusterDependencies, ClusterMember
from warren.cluster.formation import FormationPlan
from warren.cluster.groups.group_traffic import GroupTraffic, GroupTrafficDependencies
from warren.cluster.hello import FEATURE_LEVEL, NO_CLUSTER, LinkPurpose, LocalNode
from warren.cluster.metadata_peers import MetadataPeers
from warren.cluster.node_digest import AdvertisedStreams, NodeListener
from warren.cluster.node_link import NodeLink, NodeLinkDependencies
from warren.cluster.node_links import NodeLinks
from warren.cluster.node_queries import NodeQueries
from warren.cluster.node_states import NodeStates, NodeStatesDependencies
from warren.cluster.node_traffic import TrafficDependencies
from warren.cluster.partition_handling import PartitionSettings
from warren.cluster.remote_queues import RemoteQueues, Replication
from warren.errors import AmqpError
from warren.flow.alarms import Alarms
from warren.journal.journal import Journal
from warren.journal.journal_dependencies import JournalDependencies
from warren.journal.message_codec import MessageCodec
from warren.journal.recovery import recover
from warren.metadata.commands import MetadataCommand, PutVhost, Reply
from warren.metadata.incarnation import NODE_ALONE, Incarnation
from warren.metadata.machine import Metadata
from warren.model.coroutine_driver import drive
from warren.model.turn import Turn
from warren.simulation.ports import JournalFuture

COOKIE = b"the cookie of the cluster"
AMQP_PORT = 5672


class ClusterNode:
    """One machine: its disk, what it knows of its cluster, and its run if it is up."""

    def __init__(
        self, name: str, cluster: "SimulatedCluster", port: int, plan: FormationPlan | None = None
    ) -> None:
        self.name = name
        # How it forms a cluster with others; None: it begins one when it is asked.
        self.plan = plan
        self.cluster = cluster
        self.disk = SimulatedDisk(cluster.chance)
        self.port = port
        self.run = 0
        self.is_up = False
        # What a node keeps of its admission, beside the metadata.
        self.node_id = NODE_ALONE
        self.cluster_id = NO_CLUSTER
        self.known: tuple[KnownMember, ...] = ()
        self.is_joining = False
        self.answers: list[AdmissionAnswer] = []
        self.turns: deque[Callable[[int], None]] = deque()
        self.start()

    def now(self) -> int:
        return self.cluster.network.time

    def start(self) -> None:
        """Start with what is on the disk."""
        self.is_up = True
        self.run += 1
        self.turns.clear()
        self.dials: list[tuple[NodeLink, LinkPurpose]] = []
        self.peers = MetadataPeers(MessageCodec(None))
        self.metadata, self.journal = self.opened_journal(Incarnation(self.node_id, self.run))
        random_bytes = self.cluster.chance.randbytes
        members = self.metadata.members
        local = LocalNode(
            cluster_id=members.cluster_id or self.cluster_id, node_id=self.node_id, name=self.name,
            incarnation=self.run, feature_level=FEATURE_LEVEL,
        )  # fmt: skip
        self.states = self.new_states()
        self.group_traffic = self.new_group_traffic()
        self.member = ClusterMember(
            local,
            ClusterDependencies(
                metadata=self.metadata, journal=self.journal, peers=self.peers,
                remote_queues=self.new_remote_queues(),
                group_traffic=self.group_traffic,
                states=self.states, queries=NodeQueries(self.peers.links, self.now, {}),
                address=ClusterAddress(host="here", port=self.port), random_bytes=random_bytes,
                later=self.later, on_removed=self.removed,
                while_blank=None if self.plan is None else self.plan.blank_answer(),
            ),
        )  # fmt: skip
        self.links = NodeLinks(
            local.introduced,
            COOKIE,
            NodeLinkDependencies(
                listener=self.member,
                random_bytes=random_bytes,
                dial=self._dial,
                probe=lambda link: self.cluster.probe(self, link),
                digest=self.states.digest,
            ),
            self.now(),
        )
        self.member.begin(self.links, self.now, self.known)
        self.journal.begin()
        self.ticked_at = self.cluster.network.time

    def opened_journal(self, incarnation: Incarnation) -> tuple[Metadata, Journal]:
        """What is on the disk, and the journal that continues it, which does not begin yet."""
        metadata = Metadata()
        found = recover(self.disk, metadata, node=self.node_id)
        assert (found.damage, found.loss) == ([], None), f"{self.name}: {found.damage} {found.loss}"
        dependencies = JournalDependencies(
            now=self.now, random_bytes=self.cluster.chance.randbytes, make_future=JournalFuture,
            report=lambda _: None, incarnation=incarnation, others=self.peers, is_joining=self.is_joining,
        )  # fmt: skip
        return metadata, Journal(metadata, self.disk, dependencies, found)

    def later(self, action: Callable[[int], None]) -> None:
        """Call `action` in a later turn."""
        self.turns.append(action)

    def removed(self) -> None:
        """The members have removed this node."""

    def new_states(self) -> NodeStates:
        """What a new run tells the others of itself."""
        self.reports: list[str] = []
        self.alarms = Alarms(self.set_reason)
        self.counts = ClientCounts()
        self.listeners = [NodeListener("amqp", self.name, AMQP_PORT)]
        self.advertised_streams = AdvertisedStreams()
        return NodeStates(
            NodeStatesDependencies(
                node=self.node_id, release="1.0", metadata=self.metadata, journal=self.journal,
                links=self.peers.links, alarms=self.alarms, client_counts=self.counts,
                client_totals=lambda: (self.count(ClientCountKind.USER_CONNECTIONS), 0),
                listeners=lambda: self.listeners, advertised_streams=self.advertised_streams,
                partition_settings=self.cluster.partition_settings, access=self,
                report=self.reports.append,
            )
        )  # fmt: skip

    def count(self, kind: ClientCountKind) -> int:
        """A count of the user u on this node."""
        return self.counts.here((kind, "u"))

    def set_reason(self, reason: str) -> None:
        """Publishers are blocked for a reason, or not any more."""

    # Port `PartitionActions`.

    def pause(self, reason: str) -> None:
        """Shut out clients."""

    def resume(self) -> None:
        """Let clients in again."""

    def new_group_traffic(self) -> GroupTraffic:
        """The traffic of replicas: there are none here."""
        return GroupTraffic(
            GroupTrafficDependencies(
                node=self.node_id, links=self.peers.links, later=self.later,
                after=lambda *_: None, report=lambda _: None,
            )
        )  # fmt: skip

    def new_remote_queues(self) -> RemoteQueues:
        """The queues of the other nodes: no virtual host runs here."""
        dependencies = TrafficDependencies(
            metadata=self.metadata, later=self.later, after=lambda _ms, _action: None,
            turn=Turn(self.now, lambda _: None), vhost=lambda _: None, report=lambda _: None,
        )  # fmt: skip
        replication = Replication(
            traffic=self.group_traffic, random_bytes=self.cluster.chance.randbytes,
            proposals=self.journal,
        )  # fmt: skip
        incarnation = Incarnation(self.node_id, self.run)
        return RemoteQueues(incarnation, self.peers.links, dependencies, replication)

    def stop(self, *, is_power_lost: bool) -> None:
        """Crash."""
        self.is_up = False
        self.disk.fault = None
        if is_power_lost:
            self.disk.lose_power()
        else:
            self.disk.die()
        self.cluster.lose_sockets_of(self)

    def join(self, other: "ClusterNode") -> None:
        """Ask another node to be admitted; when it is, start again without what was here."""
        self.member.join("here", other.port, self.answered)

    def answered(self, answer: AdmissionAnswer) -> None:
        self.answers.append(answer)
        if not answer.refusal:
            self.later(lambda _: self._become(answer))

    def _become(self, answer: AdmissionAnswer) -> None:
        self.stop(is_power_lost=False)
        self.erase()
        self.node_id, self.cluster_id, self.known = answer.node_id, answer.cluster_id, answer.members
        self.is_joining = True
        self.start()

    def erase(self) -> None:
        """Delete what is on the disk."""
        self.disk = SimulatedDisk(self.cluster.chance)

    def _dial(self, link: NodeLink, purpose: LinkPurpose) -> None:
        self.dials.append((link, purpose))

    def propose(self, command: MetadataCommand, replies: list[Reply | AmqpError]) -> None:
        """Propose a command, whose reply or error is appended to `replies`."""
        drive(self._propose(command, replies))

    async def _propose(self, command: MetadataCommand, replies: list[Reply | AmqpError]) -> None:
        try:
            replies.append(await self.journal.propose(command))
        except AmqpError as error:
            replies.append(error)

    def work(self) -> None:
        """Do what is due, and write."""
        self.follow_time()
        self.disk.advance()
        while self.turns and self.is_up:
            self.turns.popleft()(self.now())

    def follow_time(self) -> None:
        """Do what is due, and dial."""
        due = self.links.deadline()
        if due is not None and due <= self.now():
            self.links.tick(self.now())
        if self.cluster.network.time - self.ticked_at >= TICK_MS:
            self.ticked_at = self.cluster.network.time
            self.tick()
        dials, self.dials = self.dials, []
        for link, purpose in dials:
            self.cluster.connect(self, link, purpose)

    def tick(self) -> None:
        """Do what is done each TICK_MS."""
        self.member.tick()
        self.journal.maintain()


class SimulatedCluster:
    """All nodes, and the network between them."""

    node_type: type[ClusterNode] = ClusterNode
    partition_settings = PartitionSettings()

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.network = SimulatedNetwork(self.chance)
        self.nodes: list[ClusterNode] = []
        self.agreement = Agreement()
        self.sockets: list[tuple[ClusterNode, SimulatedSocket]] = []
        # Ports of nodes that the network does not reach, though nobody says so.
        self.hidden: set[int] = set()

    def add(self, name: str, port: int = 0, plan: FormationPlan | None = None) -> ClusterNode:
        """A new node, in no cluster."""
        node = self.node_type(name, self, port or len(self.nodes) + 1, plan)
        self.nodes.append(node)
        replies: list[Reply | AmqpError] = []
        node.propose(PutVhost(name="/"), replies)
        node.disk.advance()
        return node

    def connect(self, node: ClusterNode, link: NodeLink, purpose: LinkPurpose) -> None:
        """Open a socket to where the peer of a link listens."""
        target = next((one for one in self.nodes if one.port == link.peer.port), None)
        if target is None or not target.is_up or self.network.is_parted:
            is_refused = self._is_refused(target)
            reason = "nobody listens there" if is_refused else "no route to host"
            link.dial_failed(purpose, reason, is_refused=is_refused)
            return
        near, far = SimulatedSocket(node.now), SimulatedSocket(target.now)
        self.network.pair(near, far)
        near.is_ready = True
        near.connection = node.links.dialed(link, purpose, near, node.now())
        self.sockets += [(node, near), (target, far)]
        self.accept(target, far)

    def accept(self, target: ClusterNode, socket: SimulatedSocket) -> None:
        """Have a node accept a connection."""
        socket.connection = target.links.accept(socket, target.now())

    def probe(self, node: ClusterNode, link: NodeLink) -> None:
        """Say whether anybody listens where the peer of a link does."""
        target = next((one for one in self.nodes if one.port == link.peer.port), None)
        link.probed(is_refused=self._is_refused(target))

    def _is_refused(self, target: ClusterNode | None) -> bool:
        """Whether the host of a node says that nobody listens there."""
        if target is None or target.is_up or self.network.is_parted:
            return False
        return target.port not in self.hidden

    def lose_sockets_of(self, node: ClusterNode) -> None:
        """The process has ended, with its sockets."""
        for owner, socket in self.sockets:
            if owner is node:
                socket.connection = None
                socket.is_lost = True
        self.sockets = [(owner, socket) for owner, socket in self.sockets if not socket.is_lost]

    def run(self, until: Callable[[], bool], *, ms_max: int = 60_000) -> bool:
        """Let everything work until something is true; return whether it became so in time."""
        end = self.network.time + ms_max
        while self.network.time < end:
            self.step()
            if until():
                return True
        return False

    def step(self) -> None:
        """Let some time pass, and check what must be true."""
        self.network.advance(20, is_calm=True)
        for node in self.nodes:
            if node.is_up:
                node.work()
        self.check()

    def check(self) -> None:
        """Check what must be true at every step."""
        for node in self.nodes:
            if node.is_up:
                self.agreement.check(node)
