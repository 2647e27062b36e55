"""Two nodes, the link between them, and a network, in one thread, driven by seeds.

The network delays, cuts connections at any byte, tells one end of a cut seconds later or not at all, lets
nothing pass in one direction, changes bytes, and refuses connections. Either node restarts with another
incarnation, and has a clock that is set forward and back.

What is sent between two losses of a session is delivered exactly once and in order, up to a loss, in one
session of the other node; nothing of it is delivered after that one was told of its loss. What an end keeps
is bounded. When the network is whole again, everything arrives that was sent since the last loss. Without
restarts and long failures no session is lost.
"""

import random
import struct
from collections.abc import Callable

import pytest
from tests.seeds import SEEDS
from tests.sim.link_network import SimulatedNetwork, SimulatedSocket

from warren.cluster import link_session
from warren.cluster.hello import LinkPurpose, LocalNode
from warren.cluster.node_link import LinkListener, NodeLink, NodeLinkDependencies, PeerNode
from warren.cluster.node_links import NodeLinks

STEPS = 120
HEALED_MS = 9_000
CLUSTER = b"c" * 16
COOKIE = b"the cookie of the cluster"
NAMES = {1: "one@here", 2: "two@here"}
WINDOW, PART, PAYLOAD = 1_500, 200, 1_000
OVERHEAD = 20
PURPOSES = (LinkPurpose.CONTROL, LinkPurpose.DATA, LinkPurpose.BULK)
# Weights of the faults, of which each seed has one row: short ones, after which no session may be lost, and
# more and more.
SHORT: dict[str, int] = {"cut": 6, "refuse": 1}
FAULTS: tuple[dict[str, int], ...] = (
    SHORT,
    {"cut": 4, "cut_late": 4, "corrupt": 3, "silence": 2},
    {"cut": 3, "part": 3, "clock": 4},
    {"cut": 3, "cut_late": 3, "corrupt": 2, "silence": 2, "part": 1, "clock": 2, "restart": 3},
)
# Payloads: incarnation, number of losses before, and number since; then bytes that depend on these.
HEAD = struct.Struct(">QQQ")

# One session of a node: its number, its incarnation, the purpose, and the losses before.
Session = tuple[int, int, LinkPurpose, int]


class Node(LinkListener):
    """A node with its link, and what it was told."""

    def __init__(self, simulation: "Simulation", node_id: int) -> None:
        self.simulation = simulation
        self.id = node_id
        self.incarnation = 0
        self.offset = 0
        self.other = 3 - node_id
        self.dials: list[tuple[NodeLink, LinkPurpose]] = []
        self.probes: list[NodeLink] = []
        self.start()

    def now(self) -> int:
        return self.simulation.network.time + self.offset

    def start(self) -> None:
        """Start with the next incarnation; whatever the former one had is gone."""
        self.incarnation += 1
        self.losses = dict.fromkeys(PURPOSES, 0)
        self.sent = dict.fromkeys(PURPOSES, 0)
        self.is_silent = True
        self.dials.clear()
        self.probes.clear()
        random_bytes = self.simulation.chance.randbytes
        node = LocalNode(
            cluster_id=CLUSTER, node_id=self.id, name=NAMES[self.id], incarnation=self.incarnation,
            feature_level=1,
        )  # fmt: skip
        dependencies = NodeLinkDependencies(
            listener=self,
            random_bytes=random_bytes,
            dial=self.dial,
            probe=self.probe,
            digest=lambda: b"digest",
        )
        self.links = NodeLinks(node, COOKIE, dependencies, self.now())
        self.link = self.links.connect(PeerNode(node_id=self.other, name=NAMES[self.other]), self.now())

    def dial(self, link: NodeLink, purpose: LinkPurpose) -> None:
        self.dials.append((link, purpose))

    def probe(self, link: NodeLink) -> None:
        self.probes.append(link)

    def session(self, purpose: LinkPurpose) -> Session:
        return self.id, self.incarnation, purpose, self.losses[purpose]

    def send(self, purpose: LinkPurpose, size: int) -> None:
        number = self.sent[purpose] = self.sent[purpose] + 1
        head = HEAD.pack(self.incarnation, self.losses[purpose], number)
        self.link.send(purpose, number % 256, (head * (size // len(head) + 1))[: max(size, len(head))])

    def tick(self) -> None:
        due = self.links.deadline()
        assert due is not None
        if due <= self.now() or self.simulation.chance.random() < 0.1:
            self.links.tick(self.now())
        assert self.link.kept_size <= 3 * (WINDOW + 2 * PAYLOAD + 8 * OVERHEAD)

    # --- LinkListener ---

    def received(self, link: NodeLink, purpose: LinkPurpose, kind: int, body: bytes) -> None:
        assert link is self.link
        assert not self.is_silent
        incarnation, losses, number = HEAD.unpack_from(body)
        assert kind == number % 256
        assert body == (body[: HEAD.size] * (len(body) // HEAD.size + 1))[: len(body)]
        self.simulation.delivered(self.session(purpose), (self.other, incarnation, purpose, losses), number)

    def session_began(self, link: NodeLink, purpose: LinkPurpose) -> None:
        pass

    def session_lost(self, link: NodeLink, purpose: LinkPurpose) -> None:
        assert not self.simulation.is_short, "a session was lost after short failures"
        self.losses[purpose] += 1
        self.sent[purpose] = 0

    def silent(self, link: NodeLink) -> None:
        assert not self.is_silent
        self.is_silent = True

    def heard(self, link: NodeLink) -> None:
        assert self.is_silent
        self.is_silent = False

    def writable(self, link: NodeLink, purpose: LinkPurpose) -> None:
        assert link.kept_size <= 3 * (WINDOW + 2 * PAYLOAD)

    def pinged(self, link: NodeLink, digest: bytes) -> None:
        assert digest == b"digest"


class Simulation:
    """Two nodes and what was delivered between them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.faults = FAULTS[seed % len(FAULTS)]
        self.is_short = self.faults is SHORT
        self.network = SimulatedNetwork(self.chance)
        # The one session of the peer with which each has exchanged anything; the last delivered number.
        self.pairs: dict[Session, Session] = {}
        self.numbers: dict[Session, int] = {}
        self.refused_until = 0
        self.nodes = {1: Node(self, 1), 2: Node(self, 2)}

    def delivered(self, receiver: Session, sender: Session, number: int) -> None:
        assert self.pairs.setdefault(receiver, sender) == sender
        assert self.pairs.setdefault(sender, receiver) == receiver
        assert number == self.numbers.get(sender, 0) + 1
        self.numbers[sender] = number

    def step(self) -> None:
        for node in self.nodes.values():
            if self.chance.random() < 0.5:
                self.send(node)
            node.tick()
            self.dial(node)
        if self.chance.random() < 0.15:
            self.fault()
        # A flow of pings is not interrupted for longer than a session lasts, unless by faults.
        self.network.advance(self.chance.randint(1, 60), is_calm=False)

    def send(self, node: Node) -> None:
        purpose = self.chance.choice(PURPOSES)
        for _ in range(self.chance.choice([1, 1, 3, 10])):
            if node.link.is_writable(purpose):
                node.send(purpose, self.chance.choice([0, 30, PART, PART + 1, 3 * PART, PAYLOAD]))

    def dial(self, node: Node) -> None:
        is_refused = self.network.time < self.refused_until
        # Something in the network may say that nobody listens where a node does: then sessions are lost.
        is_told = is_refused and not self.is_short
        probes, node.probes = node.probes, []
        for link in probes:
            link.probed(is_refused=is_told)
        dials, node.dials = node.dials, []
        for link, purpose in dials:
            other = self.nodes[node.other]
            if is_refused or self.network.is_parted:
                link.dial_failed(purpose, "nobody listens there", is_refused=is_told)
                continue
            near, far = SimulatedSocket(node.now), SimulatedSocket(other.now)
            self.network.pair(near, far)
            near.is_ready = True
            near.connection = node.links.dialed(link, purpose, near, node.now())
            far.connection = other.links.accept(far, other.now())

    def fault(self) -> None:
        network, chance = self.network, self.chance
        kinds: dict[str, Callable[[], None]] = {
            "cut": lambda: network.cut(is_told_late=False),
            "cut_late": lambda: network.cut(is_told_late=True),
            "corrupt": network.corrupt,
            "silence": network.silence,
            "part": lambda: network.part(chance.choice([100, 1_500, 4_800, 5_200, 8_000])),
            "refuse": self.refuse,
            "clock": self.set_clock,
            "restart": self.restart,
        }
        kinds[chance.choices(list(self.faults), list(self.faults.values()))[0]]()

    def refuse(self) -> None:
        self.refused_until = self.network.time + self.chance.randint(1, 500)

    def set_clock(self) -> None:
        node = self.chance.choice(list(self.nodes.values()))
        node.offset += self.chance.choice([-3_600_000, -700, 700, 3_600_000])

    def restart(self) -> None:
        node = self.chance.choice(list(self.nodes.values()))
        for pair in self.network.pairs:
            for end in pair:
                if end.connection is not None and end.now.__self__ is node:  # type: ignore[attr-defined]
                    end.is_lost = True
                    end.connection = None
        node.start()

    def heal(self) -> None:
        self.refused_until = self.network.parted_until = 0
        end = self.network.time + HEALED_MS
        while self.network.time < end:
            for node in self.nodes.values():
                node.tick()
                self.dial(node)
            self.network.advance(40, is_calm=True)

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
        self.heal()
        for node in self.nodes.values():
            for purpose in PURPOSES:
                assert node.link.is_writable(purpose)
                node.send(purpose, 30)
        self.heal()
        for node in self.nodes.values():
            assert not node.is_silent
            for purpose in PURPOSES:
                session = node.session(purpose)
                assert self.pairs[session] == self.nodes[node.other].session(purpose)
                assert self.numbers[session] == node.sent[purpose]
            assert node.link.kept_size == 0


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use small parts and windows, so that a simulation fills many."""
    monkeypatch.setattr(link_session, "CLUSTER_PART_SIZE_MAX", PART)
    monkeypatch.setattr(link_session, "CLUSTER_PART_OVERHEAD", OVERHEAD)
    monkeypatch.setattr(link_session, "CLUSTER_PAYLOAD_SIZE_MAX", PAYLOAD)
    monkeypatch.setattr(link_session, "CLUSTER_WINDOW_SIZE", WINDOW)
    monkeypatch.setattr(link_session, "_WINDOW_MIN", PART + OVERHEAD)


@pytest.mark.seeds(SEEDS * 5 // 2)
def test_what_is_sent_in_a_session_arrives_once_and_in_order_or_is_lost_at_both_ends(seed: int) -> None:
    Simulation(seed).run()
