"""Blank nodes form exactly one cluster: whenever they start, whatever they reach, however often they restart.

The nodes here are models: each runs a `Formation`, and answers others by what it is. What it is survives its
restarts, the formation does not. A network is cut and healed between any two nodes, an answer takes its time
or is lost on its way, and the DNS tells any part of the addresses, or nothing.
"""

import random
from collections.abc import Callable

import pytest
from tests.seeds import SEEDS

from warren.cluster.admission import BlankNode
from warren.cluster.formation import (
    AskNode,
    BeginCluster,
    Formation,
    FormationNode,
    FormationPlan,
    LookUpNodes,
    PauseUntil,
)
from warren.limits_cluster import FORMATION_PROOF_MS

STEP_MS = 50
STEPS = 1_200
INTERVAL_MS = 500
HEALED_MS = 60_000
PORT = 25_672


class SimulatedNode:
    """One machine, blank or a member."""

    def __init__(self, forming: "SimulatedForming", number: int, starts_at: int) -> None:
        self.forming = forming
        self.name = f"n{number}@h{number}"
        self.host = f"h{number}"
        self.starts_at = starts_at
        self.is_up = False
        # The number of its cluster, which survives restarts.
        self.cluster: int | None = None
        self.formation: Formation | None = None
        # What is done at a time: the end of a request, of a pause, or of the writing of a cluster.
        self.due: tuple[int, Callable[[], None]] | None = None

    def start(self) -> None:
        self.is_up = True
        self.formation = None if self.cluster is not None else Formation(self.plan(), self.forming.now)
        self.due = None

    def stop(self) -> None:
        self.is_up = False
        self.formation = self.due = None

    def plan(self) -> FormationPlan:
        return self.forming.plan(self)

    def work(self) -> None:
        if self.formation is None:
            return
        if self.due is not None:
            if self.forming.now < self.due[0]:
                return
            action = self.due[1]
            self.due = None
            action()
            return
        match self.formation.next(self.forming.now):
            case AskNode(node):
                self.ask(self.formation, node)
            case LookUpNodes():
                found = self.forming.lookup()
                if found is None:
                    self.formation.found_nothing("no such name", self.forming.now)
                else:
                    self.formation.found(found)
            case PauseUntil(due):
                self.due = (due, lambda: None)
            case BeginCluster():
                self.due = (self.forming.soon(100), self.begin)
            case other:
                raise AssertionError(other)

    def begin(self) -> None:
        self.forming.clusters += 1
        self.become(self.forming.clusters)

    def become(self, cluster: int) -> None:
        assert self.cluster is None
        self.cluster = cluster
        self.forming.records[self.name] = True
        self.formation = None

    def ask(self, formation: Formation, asked: FormationNode) -> None:
        """Ask another node, which obeys when the request arrives; the answer arrives later, or never."""
        forming = self.forming
        target = next(node for node in forming.nodes if node.host == asked.host)
        nothing = (forming.now + FORMATION_PROOF_MS, lambda: formation.heard_nothing("", forming.now))
        if target is self or not target.is_up or forming.is_cut(self, target):
            self.due = nothing
            return
        blank = BlankNode(target.name, target.plan().seed)
        cluster = target.cluster
        # A member that was wiped is a stranger with the name of a member.
        is_refused = forming.records.get(self.name, False)
        if cluster is not None:
            forming.records[self.name] = is_refused
        at = forming.soon(600)

        def answered() -> None:
            if forming.is_cut(self, target) or not target.is_up:
                # Its HELLO has arrived in half of the cases.
                if cluster is not None and forming.chance.random() < 0.5:
                    formation.heard_member("no answer", forming.now)
                else:
                    formation.heard_nothing("", forming.now)
            elif cluster is None:
                formation.heard_blank(blank, forming.now)
            elif is_refused:
                formation.heard_member("it is a member already", forming.now)
            else:
                self.become(cluster)

        self.due = (at, answered)


class SimulatedForming:
    """All nodes, the network between them, and the DNS."""

    def __init__(self, seed: int, count: int, plan: Callable[[SimulatedNode], FormationPlan]) -> None:
        self.chance = random.Random(seed)
        self.plan = plan
        self.now = 0
        self.clusters = 0
        # The members that clusters know, and whether they were up once.
        self.records: dict[str, bool] = {}
        self.is_healed = False
        starts = [self.chance.choice((0, self.chance.randrange(20_000))) for _ in range(count)]
        self.nodes = [SimulatedNode(self, number, at) for number, at in enumerate(starts)]
        self.cuts: set[frozenset[str]] = set()

    def addresses(self) -> tuple[FormationNode, ...]:
        return tuple(FormationNode(name=node.name, host=node.host, port=PORT) for node in self.nodes)

    def lookup(self) -> list[FormationNode] | None:
        """What the DNS tells: without names, and, as long as it is not healed, any part."""
        all_nodes = [FormationNode(host=node.host, port=PORT) for node in self.nodes]
        if self.is_healed:
            return all_nodes
        if self.chance.random() < 0.2:
            return None
        return self.chance.sample(all_nodes, self.chance.randint(1, len(all_nodes)))

    def is_cut(self, one: SimulatedNode, other: SimulatedNode) -> bool:
        return frozenset((one.name, other.name)) in self.cuts

    def soon(self, ms_max: int) -> int:
        return self.now + self.chance.randint(1, ms_max)

    def work(self) -> None:
        self.now += STEP_MS
        for node in self.chance.sample(self.nodes, len(self.nodes)):
            if node.is_up:
                node.work()
        assert self.clusters <= 1, [(node.name, node.cluster) for node in self.nodes]

    def run(self) -> None:
        """Let nodes start, stop and be cut from each other; then let all be well."""
        chance = self.chance
        for _ in range(STEPS):
            for node in self.nodes:
                if not node.is_up and self.now >= node.starts_at:
                    node.start()
            if chance.random() < 0.02 and len(self.nodes) > 1:
                one, other = chance.sample(self.nodes, 2)
                self.cuts ^= {frozenset((one.name, other.name))}
            if chance.random() < 0.02:
                node = chance.choice(self.nodes)
                node.stop()
                node.starts_at = self.now + chance.randrange(5_000)
            self.work()
        self.cuts.clear()
        self.is_healed = True
        for node in self.nodes:
            if not node.is_up:
                node.start()
        healed_at = self.now
        while self.now < healed_at + HEALED_MS and not self.is_formed:
            self.work()

    @property
    def is_formed(self) -> bool:
        return {node.cluster for node in self.nodes} == {1}


Plan = Callable[[SimulatedNode], FormationPlan]


def listed(size_hint: int | None = None) -> Plan:
    """All nodes are in the settings; the first is the seed."""

    def plan(node: SimulatedNode) -> FormationPlan:
        nodes = node.forming.addresses()
        return FormationPlan(
            own_name=node.name, seed=nodes[0].name, nodes=nodes, size_hint=size_hint, interval_ms=INTERVAL_MS
        )

    return plan


def looked_up(seed: str = "", size_hint: int | None = None) -> Plan:
    """The nodes are those of the DNS."""

    def plan(node: SimulatedNode) -> FormationPlan:
        return FormationPlan(
            own_name=node.name, seed=seed, is_looked_up=True, size_hint=size_hint, interval_ms=INTERVAL_MS
        )

    return plan


@pytest.mark.parametrize(
    ("count", "plan"),
    [
        (1, listed()),
        (3, listed()),
        (5, listed()),
        (3, listed(size_hint=3)),
        (5, listed(size_hint=3)),
        (3, looked_up(seed="n1@h1")),
        (5, looked_up(seed="n4@h4")),
        (3, looked_up(size_hint=3)),
        (5, looked_up(size_hint=5)),
    ],
)
@pytest.mark.seeds(SEEDS // 4)
def test_nodes_form_one_cluster(seed: int, count: int, plan: Plan) -> None:
    forming = SimulatedForming(seed, count, plan)
    forming.run()
    assert forming.is_formed, [(node.name, node.cluster) for node in forming.nodes]


@pytest.mark.parametrize("plan", [listed(size_hint=2), listed(size_hint=3), looked_up(size_hint=3)])
@pytest.mark.seeds(SEEDS // 4)
def test_nodes_that_lose_their_disks_begin_no_second_cluster_if_several_must_be_blank(
    seed: int, plan: Plan
) -> None:
    forming = SimulatedForming(seed, 3, plan)
    forming.run()
    assert forming.is_formed
    for _ in range(3):
        wiped = forming.chance.choice(forming.nodes)
        if sum(node.cluster is not None for node in forming.nodes) == 2:
            break
        wiped.stop()
        wiped.cluster = None
        wiped.starts_at = 0
        forming.is_healed = False
        forming.run()
    assert forming.clusters == 1


def test_a_seed_that_loses_its_disk_and_reaches_nobody_begins_a_second_cluster_without_a_number() -> None:
    """What the number of blank nodes is for."""
    forming = SimulatedForming(1, 3, listed())
    forming.run()
    seed, *others = forming.nodes
    for other in others:
        other.stop()
    seed.cluster = None
    seed.start()
    forming.clusters = 0
    for _ in range(200):
        forming.work()
    assert forming.clusters == 1
