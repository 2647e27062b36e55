"""Nodes with replicas of several quorum queues, each with a disk and links over a simulated network.

A node has one store for all its replicas, as a virtual host has. A replica has another number than its node.
Clients publish, get and acknowledge at the nodes that lead. These hold after each step:

- A group has at most one leader in a term, and one entry at an index that is committed.
- What waits for a node, or is received of it, is bounded.

At the end all is whole again: each group has a leader that all nodes know, all members of a group have the
same machine and messages, what was confirmed and not acknowledged is there once, and all groups fall asleep.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence

from tests.sim.disk import SimulatedDisk
from tests.sim.link_network import SimulatedNetwork, SimulatedSocket
from tests.sim.test_quorum_queue import Confirms, Port
from tests.unit.queues.samples import Host, Reader

from warren.cluster.groups.group_leaders import GroupLeader
from warren.cluster.groups.group_traffic import GroupTraffic, GroupTrafficDependencies, election_chance
from warren.cluster.groups.quorum_replica import QuorumReplica
from warren.cluster.hello import LinkPurpose, LocalNode
from warren.cluster.node_link import LinkListener, NodeLink, NodeLinkDependencies, PeerNode
from warren.cluster.node_links import NodeLinks
from warren.limits_raft import GROUP_HELD_MESSAGES_MAX, GROUP_SLEEP_TICKS, GROUP_TICK_MS
from warren.metadata.incarnation import Incarnation
from warren.model.arguments import QueueSettings
from warren.model.message import BODY_END, PERSISTENT, StoredMessage, encode_address
from warren.queues.queue import Consumer
from warren.queues.quorum.group import GroupMembership, QuorumGroup
from warren.queues.quorum.pending_batch import PendingBatch
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.replication.raft.raft_messages import RaftMessage
from warren.store.recovery import RecoveryDependencies, open_erased, open_store
from warren.store.stores import Stores
from warren.wire.properties import BasicProperties

CLUSTER = b"c" * 16
COOKIE = b"the cookie of the cluster"
FIRST_GROUP = 7
# The number of a replica is that of its node, and this.
REPLICA = 10
HEALED_MS = 60_000
NODE_TICK_MS = 400
KEPT_MAX = 64_000_000


class Member:
    """One replica, with its queue."""

    def __init__(self, node: "GroupNode", number: int) -> None:
        self.node = node
        self.number = number
        self.confirms = Confirms()
        self.published: dict[int, int] = {}
        self.reader: Reader | None = None
        # The term in which this member has told all nodes that it leads.
        self.told = 0
        cluster = node.cluster
        self.queue = QuorumQueue(
            f"q{number}", "/", Host(cluster.network.time), QueueSettings(priority_max=None),
            incarnation=Incarnation(node.id, node.incarnation),
            membership=GroupMembership(
                replica=REPLICA + node.id, send=self.send,
                voters=tuple(sorted(cluster.members[number])),
                chance=election_chance(cluster.chance.randbytes),
            ),
        )  # fmt: skip
        self.queue.ended = self.ended
        transient = open_erased(SimulatedDisk(cluster.chance), Port(), cluster.chance.randbytes)
        self.queue.attach_store(Stores(node.store, transient), number)
        for level, found in node.recovered.queues.get(number, {}).items():
            self.queue.restore(level, found)
        node.traffic.add(QuorumReplica(self.group, node.store), cluster.members[number])

    @property
    def group(self) -> QuorumGroup:
        """The replica."""
        group = self.queue.group
        assert group is not None
        return group

    @property
    def is_asleep(self) -> bool:
        """True if it is not ticked."""
        return not self.node.traffic.is_awake(self.number)

    def send(self, number: int, messages: Sequence[RaftMessage]) -> None:
        """Hand messages to the traffic of the node."""
        self.node.traffic.send(number, messages)

    def ended(self, queue: QuorumQueue, consumers: list[Consumer], unanswered: list[PendingBatch]) -> None:
        """Another one leads."""
        self.note()
        self.confirms = Confirms()
        self.published = {}
        self.reader = None
        self.queue = queue.successor()

    def publish(self, number: int, size: int) -> None:
        """Publish message `number`."""
        properties = BasicProperties(delivery_mode=2)
        body = b"%d." % number + bytes(size) + BODY_END
        message = StoredMessage(encode_address("", "q"), properties.encode_list(), body, 0)
        message.flags = PERSISTENT
        sequence = len(self.published) + len(self.confirms.expected) + 1
        while sequence in self.confirms.expected:
            sequence += 1
        self.published[sequence] = number
        self.queue.publish(message, self.confirms, sequence)

    def consume(self) -> None:
        """Get the next message, or acknowledge one."""
        cluster = self.node.cluster
        if self.reader is None:
            self.reader = Reader(prefetch=5)
            self.queue.add_consumer(self.reader)
        elif self.reader.unsettled:
            delivery = self.reader.unsettled.pop(0)
            cluster.acknowledged.add(number_of(delivery.message.body))
            self.queue.acknowledge(delivery)
            self.queue.unpark(self.reader)
            self.queue.pump()

    def note(self) -> None:
        """Record what was confirmed."""
        for sequence in [one for one in self.published if one in self.confirms.confirmed]:
            self.node.cluster.confirmed[self.number].add(self.published.pop(sequence))

    def tell(self) -> None:
        """Tell all nodes that this member leads, or does not any more."""
        term = self.group.driver.replica.hard_state.term if self.group.is_open else 0
        if term and term != self.told:
            self.node.traffic.leaders.opened(self.number, term)
        elif not term and self.told:
            self.node.traffic.leaders.resigned(self.number, self.told)
        self.told = term

    def bodies(self) -> dict[tuple[int, int], bytes]:
        """The messages, by level and position in the group."""
        found = {}
        for level in self.group.levels():
            for position, location in self.group.messages.rows(level):
                message = self.node.store.reader().read(location)
                assert message is not None
                found[level, position] = message.body
        return found


class GroupNode(LinkListener):
    """One node: its disk, its links, and its replicas while it runs."""

    def __init__(self, cluster: "GroupNodes", node: int) -> None:
        self.cluster = cluster
        self.id = node
        self.name = f"node{node}"
        self.incarnation = 0
        self.disk = SimulatedDisk(cluster.chance)
        self.turns: deque[Callable[[int], None]] = deque()
        self.is_up = False

    def now(self) -> int:
        return self.cluster.network.time

    def start(self) -> None:
        """Start with what is on the disk."""
        cluster, chance = self.cluster, self.cluster.chance
        self.is_up = True
        self.incarnation += 1
        self.turns.clear()
        # When what is to be called, and when the node was ticked.
        self.timers: list[tuple[int, Callable[[], None]]] = []
        self.ticked_at = self.now()
        self.dials: list[tuple[NodeLink, LinkPurpose]] = []
        self.probes: list[NodeLink] = []
        self.reports: list[str] = []
        own = [number for number, nodes in cluster.members.items() if self.id in nodes.values()]
        dependencies = RecoveryDependencies(
            random_bytes=chance.randbytes, has_queue=own.__contains__, progress=lambda *_: None
        )
        self.recovered = open_store(self.disk, Port(), dependencies)
        assert not self.recovered.damage
        self.store = self.recovered.store
        local = LocalNode(
            cluster_id=CLUSTER, node_id=self.id, name=self.name, incarnation=self.incarnation, feature_level=1
        )
        link_dependencies = NodeLinkDependencies(
            listener=self, random_bytes=chance.randbytes, dial=lambda *dial: self.dials.append(dial),
            probe=self.probes.append, digest=lambda: b"digest",
        )  # fmt: skip
        self.node_links = NodeLinks(local, COOKIE, link_dependencies, self.now())
        self.links: dict[int, NodeLink] = {}
        self.traffic = GroupTraffic(
            GroupTrafficDependencies(
                node=self.id,
                links=self.links,
                later=self.turns.append,
                after=self.after,
                report=self.reports.append,
            )
        )
        for other in cluster.numbers:
            if other != self.id:
                peer = PeerNode(node_id=other, name=f"node{other}")
                self.links[other] = self.node_links.connect(peer, self.now())
        self.members = {number: Member(self, number) for number in own}

    def after(self, ms: int, action: Callable[[], None]) -> None:
        """Call `action` after `ms`."""
        self.timers.append((self.now() + ms, action))

    def stop(self, *, is_power_lost: bool) -> None:
        """Crash."""
        self.is_up = False
        for member in self.members.values():
            member.note()
        (self.disk.lose_power if is_power_lost else self.disk.die)()

    def turn(self) -> None:
        """Do what is due in a turn of the loop."""
        deadline = self.node_links.deadline()
        if deadline is not None and deadline <= self.now():
            self.node_links.tick(self.now())
        if self.ticked_at + NODE_TICK_MS <= self.now():
            self.traffic.tick(self.now() - self.ticked_at)
            self.ticked_at = self.now()
        due = [timer for timer in self.timers if timer[0] <= self.now()]
        self.timers = [timer for timer in self.timers if timer not in due]
        for _, action in due:
            action()
        for _ in range(len(self.turns)):
            self.turns.popleft()(self.now())
        for member in self.members.values():
            member.note()
            member.tell()

    def write(self, steps: int | None) -> None:
        """Have some steps of the disk done."""
        self.store.commit()
        self.disk.advance(steps)

    # --- LinkListener ---------------------------------------------------------------------------------

    def received(self, link: NodeLink, purpose: LinkPurpose, kind: int, body: bytes) -> None:
        assert GroupTraffic.takes(kind)
        self.cluster.received(self, purpose, kind, body)
        self.traffic.received(link, purpose, kind, body)

    def session_began(self, link: NodeLink, purpose: LinkPurpose) -> None:
        self.traffic.session_began(link, purpose)

    def session_lost(self, link: NodeLink, purpose: LinkPurpose) -> None:
        self.traffic.session_lost(link, purpose)

    def silent(self, link: NodeLink) -> None:
        self.traffic.silent(link)

    def heard(self, link: NodeLink) -> None:
        self.traffic.heard(link)

    def writable(self, link: NodeLink, purpose: LinkPurpose) -> None:
        self.traffic.writable(link, purpose)

    def pinged(self, link: NodeLink, digest: bytes) -> None:
        assert digest == b"digest"


class GroupNodes:
    """All nodes, their network and their clients."""

    def __init__(self, seed: int, nodes: int = 3, groups: int = 3) -> None:
        self.chance = random.Random(seed)
        self.network = SimulatedNetwork(self.chance)
        self.numbers = tuple(range(1, nodes + 1))
        # Group -> replica -> node.
        self.members = {
            number: {REPLICA + node: node for node in sorted(self.chance.sample(self.numbers, 3))}
            for number in range(FIRST_GROUP, FIRST_GROUP + groups)
        }
        self.refused_until = 0
        self.published = 0
        self.confirmed: dict[int, set[int]] = {number: set() for number in self.members}
        self.acknowledged: set[int] = set()
        # Who led a group in a term, and the term of an entry that is committed.
        self.terms: dict[tuple[int, int], int] = {}
        self.committed: dict[tuple[int, int], int] = {}
        self.nodes = {node: GroupNode(self, node) for node in self.numbers}
        for node in self.nodes.values():
            node.start()

    # --- what happens ---------------------------------------------------------------------------------

    def running(self) -> list[GroupNode]:
        """The nodes that run."""
        return [node for node in self.nodes.values() if node.is_up]

    def step(self, *, is_calm: bool = False) -> None:
        """Let some time pass."""
        for node in self.running():
            node.turn()
            self._dial(node, is_calm=is_calm)
            if is_calm or self.chance.random() < 0.7:
                node.write(None if is_calm else self.chance.choice((1, 3, None)))
        self.network.advance(20 if is_calm else self.chance.randint(1, 40), is_calm=is_calm)
        self.check()

    def run_for(self, ms: int) -> None:
        """Let `ms` pass, in which nothing fails."""
        end = self.network.time + ms
        while self.network.time < end:
            self.step(is_calm=True)

    def leaders(self, number: int) -> list[Member]:
        """The members that lead a group, as far as they know."""
        return [
            node.members[number]
            for node in self.running()
            if number in node.members and node.members[number].group.is_open
        ]

    def leader(self, number: int) -> Member:
        """The member that leads a group: the one in the highest term."""
        return max(self.leaders(number), key=lambda each: each.group.driver.replica.hard_state.term)

    def publish(self, number: int, size: int = 0) -> None:
        """Publish to a group at a member that leads, if there is one."""
        for member in self.leaders(number)[:1]:
            self.published += 1
            member.publish(self.published, size)

    def consume(self, number: int) -> None:
        """Get or acknowledge a message of a group."""
        for member in self.leaders(number)[:1]:
            member.consume()

    def crash(self, node: GroupNode, *, is_power_lost: bool) -> None:
        """Crash a node: its connections are closed."""
        node.stop(is_power_lost=is_power_lost)
        self.disconnect(node)

    def disconnect(self, node: GroupNode) -> None:
        """Close the connections of a node, which learns nothing of it."""
        for pair in self.network.pairs:
            for end in pair:
                if end.connection is not None and end.now.__self__ is node:  # type: ignore[attr-defined]
                    end.is_lost = True
                    end.connection = None

    def _dial(self, node: GroupNode, *, is_calm: bool) -> None:
        is_refused = self.network.time < self.refused_until and not is_calm
        probes, node.probes = node.probes, []
        for link in probes:
            link.probed(is_refused=not self.nodes[link.peer.node_id].is_up)
        dials, node.dials = node.dials, []
        for link, purpose in dials:
            other = self.nodes[link.peer.node_id]
            if is_refused or self.network.is_parted or not other.is_up:
                link.dial_failed(purpose, "nobody listens there", is_refused=not other.is_up)
                continue
            near, far = SimulatedSocket(node.now), SimulatedSocket(other.now)
            self.network.pair(near, far)
            near.is_ready = True
            near.connection = node.node_links.dialed(link, purpose, near, node.now())
            far.connection = other.node_links.accept(far, other.now())

    def received(self, node: GroupNode, purpose: LinkPurpose, kind: int, body: bytes) -> None:
        """A payload arrives at a node."""

    # --- what must hold -------------------------------------------------------------------------------

    def check(self) -> None:
        """Election safety, the same log up to what is committed, and bounds."""
        for node in self.running():
            for number, member in node.members.items():
                replica = member.group.driver.replica
                log, commit = member.group.log, member.group.driver.commit
                for index in range(max(log.first, commit - 3), min(commit, log.last) + 1):
                    term = log.term(index)
                    assert self.committed.setdefault((number, index), term) == term
                if replica.leads():
                    term = replica.hard_state.term
                    assert self.terms.setdefault((number, term), node.id) == node.id
            for other in node.links:
                assert node.traffic.waiting_count(other) < GROUP_HELD_MESSAGES_MAX
                assert node.links[other].kept_size < KEPT_MAX
            assert not node.reports

    def heal(self) -> None:
        """Let everything work again."""
        self.refused_until = self.network.parted_until = 0
        for node in self.nodes.values():
            if not node.is_up:
                node.start()

    def settle(self) -> None:
        """Wait until each group has a leader, and all of its members have the same."""
        self.heal()
        end = self.network.time + HEALED_MS
        while self.network.time < end:
            self.step(is_calm=True)
            if all(map(self._is_settled, self.members)):
                return
        raise AssertionError([self.state(number) for number in self.members])

    def fall_asleep(self) -> None:
        """Wait until all groups sleep."""
        end = self.network.time + (4 * GROUP_SLEEP_TICKS + 100) * GROUP_TICK_MS
        while any(node.traffic.ticks.awake_count for node in self.running()):
            assert self.network.time < end, [self.state(number) for number in self.members]
            self.step(is_calm=True)

    def state(self, number: int) -> str:
        """What the members of a group are, for a failure."""
        return f"{number}: " + ", ".join(
            f"{node.id} {node.members[number].group.status()} asleep {node.members[number].is_asleep}"
            for node in self.running()
            if number in node.members
        )

    def check_end(self) -> None:
        """All members have the same, nothing that was confirmed is missing, and all know who leads."""
        self.settle()
        for number in self.members:
            members = [node.members[number] for node in self.running() if number in node.members]
            assert len({member.group.machine.encode() for member in members}) == 1
            bodies = [member.bodies() for member in members]
            assert all(each == bodies[0] for each in bodies)
            there = [number_of(body) for body in bodies[0].values()]
            assert len(set(there)) == len(there), "a message is there twice"
            missing = self.confirmed[number] - set(there) - self.acknowledged
            assert not missing, f"confirmed, and lost: {sorted(missing)}"
        end = self.network.time + HEALED_MS
        while not all(map(self._is_known, self.members)):
            assert self.network.time < end, "not all nodes know who leads"
            self.step(is_calm=True)

    def _is_known(self, number: int) -> bool:
        """True if all nodes know who leads a group."""
        leader = self.leader(number)
        known = GroupLeader(leader.node.id, leader.told)
        return all(node.traffic.leaders.leader(number) == known for node in self.running())

    def _is_settled(self, number: int) -> bool:
        leaders = self.leaders(number)
        members = [node.members[number] for node in self.running() if number in node.members]
        applied = {member.group.driver.applied for member in members}
        last = {member.group.driver.replica.log.last_index() for member in members}
        is_idle = all(member.node.store.is_idle and member.group.proposals.is_idle for member in members)
        return len(leaders) == 1 and is_idle and len(applied) == 1 and applied == last


def number_of(body: bytes) -> int:
    """The number of a message."""
    return int(body.split(b".")[0])
