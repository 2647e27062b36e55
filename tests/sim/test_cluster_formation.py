"""Nodes of a simulated cluster that form it by a plan: with links, journals and disks."""

import pytest
from tests.seeds import SEEDS
from tests.sim.simulated_cluster import ClusterNode, SimulatedCluster

from warren.cluster.admission import AdmissionAnswer
from warren.cluster.formation import (
    AskNode,
    BeginCluster,
    Formation,
    FormationNode,
    FormationPlan,
    PauseUntil,
)
from warren.cluster.hello import NO_CLUSTER
from warren.cluster.node_link import NodeLink
from warren.limits_cluster import FORMATION_PROOF_MS
from warren.metadata.commands import Reply
from warren.model.coroutine_driver import drive

NODES = tuple(FormationNode(name=f"n{port}@here", host="here", port=port) for port in (1, 2, 3))


def plan(port: int) -> FormationPlan:
    return FormationPlan(own_name=NODES[port - 1].name, seed="n1@here", nodes=NODES, interval_ms=500)


def added(cluster: SimulatedCluster, port: int) -> ClusterNode:
    return cluster.add(NODES[port - 1].name, port, plan(port))


class FormingNode:
    """Drives the formation of one node, until it is a member."""

    def __init__(self, node: ClusterNode) -> None:
        self.node = node
        self.begin_again()

    def begin_again(self) -> None:
        assert self.node.plan is not None
        self.formation = Formation(self.node.plan, self.node.now())
        # The link by which it asks, and when it gives up.
        self.link: NodeLink | None = None
        self.asked_until: int | None = None
        self.replies: list[Reply] = []
        self.is_begun = False

    @property
    def is_member(self) -> bool:
        return bool(self.node.metadata.members.by_id) or self.node.cluster_id != NO_CLUSTER

    def work(self) -> None:
        node, now = self.node, self.node.now()
        if not node.is_up or self.is_member or self.is_begun:
            return
        if self.asked_until is not None:
            if now >= self.asked_until:
                self.asked_until = None
                asked = self.link
                assert asked is not None
                node.member.stop_joining()
                if asked.hello is not None and asked.hello.cluster_id != NO_CLUSTER:
                    self.formation.heard_member("no answer", now)
                else:
                    self.formation.heard_nothing(asked.failure, now)
            return
        match self.formation.next(now):
            case AskNode(other):
                self.asked_until = now + FORMATION_PROOF_MS
                formation = self.formation
                self.link = node.member.join(
                    other.host, other.port, lambda answer: self.answered(formation, answer)
                )
            case PauseUntil():
                pass
            case BeginCluster():
                self.is_begun = True
                drive(self.form())
            case step:
                raise AssertionError(step)

    async def form(self) -> None:
        self.replies.append(await self.node.member.form())

    def answered(self, formation: Formation, answer: AdmissionAnswer) -> None:
        if formation is not self.formation:
            return
        self.asked_until = None
        if answer.blank is not None:
            formation.heard_blank(answer.blank, self.node.now())
        elif answer.refusal:
            formation.heard_member(answer.refusal, self.node.now())
        else:
            self.node.answered(answer)


def is_one_cluster(cluster: SimulatedCluster) -> bool:
    first = cluster.nodes[0].metadata.members
    return len(first.by_id) == len(NODES) and all(
        node.is_up and node.metadata.members.cluster_id == first.cluster_id for node in cluster.nodes
    )


def test_a_blank_node_that_is_not_the_seed_begins_no_cluster_for_one_that_asks() -> None:
    cluster = SimulatedCluster(1)
    second, third = added(cluster, 2), added(cluster, 3)
    third.join(second)
    assert cluster.run(lambda: bool(third.answers))
    answer = third.answers[0]
    assert answer.refusal == "'n2@here' has no cluster yet; it is not the seed, which is 'n1@here'"
    assert answer.blank is not None
    assert (answer.blank.name, answer.blank.seed) == ("n2@here", "n1@here")
    assert not second.metadata.members.by_id


def test_a_blank_seed_admits_nobody_until_it_has_begun_a_cluster() -> None:
    cluster = SimulatedCluster(2)
    first, second = added(cluster, 1), added(cluster, 2)
    second.join(first)
    assert cluster.run(lambda: bool(second.answers))
    assert second.answers[0].blank is not None
    assert second.answers[0].refusal.startswith("'n1@here' has no cluster yet; it is the seed")
    drive(FormingNode(first).form())
    second.join(first)
    assert cluster.run(lambda: len(second.answers) == 2)
    assert (second.answers[1].refusal, second.answers[1].node_id) == ("", 2)


def test_a_node_that_is_admitted_and_has_no_metadata_yet_is_not_blank() -> None:
    cluster = SimulatedCluster(3)
    first, second, third = (added(cluster, port) for port in (1, 2, 3))
    drive(FormingNode(first).form())
    second.join(first)
    assert cluster.run(lambda: second.is_joining)
    first.stop(is_power_lost=False)
    third.join(second)
    assert cluster.run(lambda: bool(third.answers))
    assert third.answers[0].blank is None
    assert third.answers[0].refusal == "this member has only just joined the cluster: ask another one"


@pytest.mark.seeds(SEEDS // 10)
def test_blank_nodes_form_one_cluster_whatever_fails(seed: int) -> None:
    cluster = SimulatedCluster(seed)
    chance = cluster.chance
    forming: list[FormingNode] = []
    ports = chance.sample((1, 2, 3), 3)

    def work() -> bool:
        for one in forming:
            one.work()
        return False

    for _ in range(chance.randint(3, 20)):
        if ports and chance.random() < 0.5:
            forming.append(FormingNode(added(cluster, ports.pop())))
        if forming and chance.random() < 0.2:
            one = chance.choice(forming)
            if one.node.is_up:
                one.node.stop(is_power_lost=chance.random() < 0.5)
            else:
                one.node.start()
                one.begin_again()
        if chance.random() < 0.2:
            cluster.network.part(chance.randrange(6_000))
        cluster.run(work, ms_max=chance.randrange(4_000))
    forming += [FormingNode(added(cluster, port)) for port in ports]
    for one in forming:
        if not one.node.is_up:
            one.node.start()
            one.begin_again()
    assert cluster.run(lambda: work() or is_one_cluster(cluster), ms_max=120_000), [
        (node.name, node.is_up, node.metadata.members.cluster_id, list(node.metadata.members.by_id))
        for node in cluster.nodes
    ]
