"""Nodes that tell each other their states, and shut out clients, while the network between them is cut."""

import random
from collections.abc import Iterable, Sequence
from itertools import combinations, permutations
from typing import TypeAlias

import pytest
from tests.seeds import SEEDS
from tests.sim.simulated_cluster import AMQP_PORT
from tests.sim.telling_cluster import TellingCluster, TellingNode
from tests.sim.test_cluster import is_settled

from warren.access.client_counts import ClientCountKind
from warren.cluster.cluster_member import TICK_MS
from warren.cluster.node_digest import NodeListener
from warren.cluster.partition_handling import PartitionMode, PartitionSettings
from warren.errors import AmqpError
from warren.flow.alarms import Resource, ResourceLevel
from warren.limits_cluster import CLUSTER_MINORITY_MS, CLUSTER_PAUSE_MS, CLUSTER_PING_MS
from warren.metadata.commands import PutUser, Reply, SetUserLimits

# When a node must know that it is in the minority, and have shut out its clients: with the tick after that.
NOTICED_MS = CLUSTER_MINORITY_MS + CLUSTER_PING_MS + TICK_MS
PAUSED_MS = CLUSTER_PAUSE_MS + CLUSTER_PING_MS + TICK_MS
STEP_MS = 20
Pairs: TypeAlias = list[tuple[TellingNode, TellingNode]]
CONNECTIONS, CHANNELS = ClientCountKind.USER_CONNECTIONS, ClientCountKind.USER_CHANNELS
LIMITS = {"max-connections": 100, "max-channels": 100}


def formed(seed: int, count: int = 3, settings: PartitionSettings | None = None) -> TellingCluster:
    """A cluster of so many nodes, in which the user u has limits."""
    cluster = TellingCluster(seed, settings)
    first = cluster.add("one@here")
    replies: list[Reply | AmqpError] = []
    for number in range(2, count + 1):
        cluster.add(f"node{number}@here").join(first)
        assert cluster.run(lambda number=number: is_settled(cluster, number))
    first.propose(PutUser(name="u", password_hash=b"", hashing_algorithm=""), replies)
    first.propose(SetUserLimits(name="u", limits=LIMITS), replies)
    assert cluster.run(lambda: len(replies) == 2 and agree(cluster))
    return cluster


def agree(cluster: TellingCluster) -> bool:
    """True if all nodes are up, serve clients, and know the alarms and counts of all."""
    nodes = cluster.telling
    low = {resource for node in nodes for resource in node.alarms.low}
    reason = "low on " + " & ".join(one.value for one in Resource if one in low) if low else ""
    return is_settled(cluster, len(nodes)) and all(
        node.is_open
        and not node.states.minority.is_in_minority
        and node.reason == reason
        and len(node.states.others.digests) == len(nodes) - 1
        and not any(node.states.partitions(other.node_id) for other in nodes)
        and all(node.total(kind) == sum(other.count(kind) for other in nodes) for kind in ClientCountKind)
        for node in nodes
    )


def set_alarm(node: TellingNode, resource: Resource, *, is_low: bool) -> None:
    """Measure a level of a resource that is beyond its limit, or is not."""
    is_high = is_low == (resource is Resource.MEMORY)
    node.alarms.update(ResourceLevel(resource, 2 if is_high else 0, 1))


def names(cluster: TellingCluster, node: TellingNode) -> list[list[str]]:
    """The partitions of all nodes, as `node` knows them."""
    return [node.states.partitions(other.node_id) for other in cluster.telling]


def test_an_alarm_of_a_node_blocks_publishers_on_all_until_it_is_over() -> None:
    cluster = formed(1)
    one, two, three = cluster.telling
    set_alarm(two, Resource.MEMORY, is_low=True)
    assert cluster.run(lambda: one.reason == three.reason == "low on memory", ms_max=2 * CLUSTER_PING_MS)
    set_alarm(three, Resource.DISK, is_low=True)
    assert cluster.run(lambda: one.reason == two.reason == "low on disk & memory")
    set_alarm(two, Resource.MEMORY, is_low=False)
    set_alarm(three, Resource.DISK, is_low=False)
    assert cluster.run(lambda: agree(cluster) and not one.reason)


def test_a_node_that_crashes_has_no_alarm_and_no_clients() -> None:
    cluster = formed(2)
    one, _, three = cluster.telling
    set_alarm(three, Resource.DISK, is_low=True)
    three.counts.add(CONNECTIONS, "u", 7)
    one.counts.add(CONNECTIONS, "u", 1)
    assert cluster.run(lambda: one.reason == "low on disk" and one.total(CONNECTIONS) == 8)
    three.stop(is_power_lost=True)
    assert cluster.run(lambda: one.reason == "" and one.total(CONNECTIONS) == 1, ms_max=1_500)
    assert one.reports == [
        "disk alarm of node3@here: publishers wait until it is cleared there",
        "no disk alarm of node3@here any more",
    ]
    three.start()
    assert cluster.run(lambda: agree(cluster))


def test_each_node_knows_the_listeners_and_clients_of_the_others_and_whom_they_do_not_hear() -> None:
    cluster = formed(3)
    one, two, three = cluster.telling
    two.counts.add(CONNECTIONS, "u", 5)
    assert cluster.run(lambda: one.states.others.digests[2].connections == 5)
    digest = one.states.others.digests[2]
    assert [(told.protocol, told.address, told.port) for told in digest.listeners] == [
        ("amqp", "node2@here", AMQP_PORT)
    ]
    assert digest.release == "1.0"
    assert cluster.run(lambda: one.states.others.digests[2].index == two.metadata.index)
    assert one.states.stream_address(2, False) is None
    two.listeners += [NodeListener("stream", "0.0.0.0", 5552), NodeListener("stream/ssl", "0.0.0.0", 5551)]
    assert cluster.run(lambda: one.states.stream_address(2, False) is not None)
    host = one.metadata.members.by_id[2].host
    assert one.states.stream_address(2, False) == (host, 5552)
    assert one.states.stream_address(2, True) == (host, 5551)
    assert one.states.stream_address(1, False) is None
    assert one.states.stream_address(99, False) is None
    cluster.cut([(two, three), (three, two)])
    assert cluster.run(lambda: names(cluster, one) == [[], ["node3@here"], ["node2@here"]])
    assert names(cluster, two) == [[], ["node3@here"], []]
    cluster.heal()
    assert cluster.run(lambda: agree(cluster))


def test_both_of_two_nodes_pause_and_return() -> None:
    cluster = formed(4, 2)
    one, two = cluster.telling
    cluster.cut([(one, two), (two, one)])
    assert cluster.run(lambda: not one.is_open and not two.is_open, ms_max=PAUSED_MS)
    cluster.run(lambda: False, ms_max=20_000)
    cluster.heal()
    assert cluster.run(lambda: agree(cluster), ms_max=10_000)


def test_the_listed_node_decides_who_pauses() -> None:
    settings = PartitionSettings(mode=PartitionMode.PAUSE_IF_ALL_DOWN, nodes=("one@here",))
    cluster = formed(5, 3, settings)
    one, two, three = cluster.telling
    cluster.cut(between([one], [two, three]))
    assert cluster.run(lambda: not two.is_open and not three.is_open, ms_max=PAUSED_MS)
    cluster.run(lambda: False, ms_max=5_000)
    assert one.is_open
    assert one.states.minority.is_in_minority
    cluster.heal()
    assert cluster.run(lambda: agree(cluster))


def test_a_silence_shorter_than_that_of_a_minority_shuts_nobody_out() -> None:
    cluster = formed(6)
    one, two, three = cluster.telling
    cluster.cut(between([one], [two, three]))
    cluster.run(lambda: False, ms_max=1_000)
    cluster.heal()
    cluster.run(lambda: False, ms_max=5_000)
    assert agree(cluster)
    assert not any(node.paused_at for node in cluster.telling)


def between(
    some: Iterable[TellingNode], others: Sequence[TellingNode]
) -> list[tuple[TellingNode, TellingNode]]:
    """Both directions between each of `some` and each of `others`."""
    return [pair for one in some for other in others for pair in ((one, other), (other, one))]


class Partitions:
    """A cluster whose network is cut, and whose nodes crash, again and again; between that it heals."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.chance = chance
        self.cluster = formed(seed, chance.choice([2, 3, 3, 5]))

    def round(self) -> None:
        """Cut something for a while, and check who has noticed it; then wait until all agree again."""
        kind = self.chance.choice([self.split, self.split, self.crash, self.partial, self.one_way])
        began_at = self.cluster.network.time
        groups = kind()
        end = began_at + self.chance.choice([300, 1_500, 3_000, 6_000, 15_000])
        while self.cluster.network.time < end:
            self.change()
            self.cluster.run(lambda: False, ms_max=self.chance.choice([20, 200, 1_000]))
            if groups:
                self.check(groups, began_at)
        self.cluster.heal()
        for node in self.cluster.telling:
            if not node.is_up:
                node.start()
        assert self.cluster.run(lambda: agree(self.cluster)), self.states()
        if groups:
            self.check_majority(groups, began_at)

    def split(self) -> list[list[TellingNode]]:
        """Cut the nodes into groups."""
        nodes = self.cluster.telling
        of = [self.chance.randrange(self.chance.choice([2, 2, 3])) for _ in nodes]
        groups = [[node for node, mine in zip(nodes, of, strict=True) if mine == one] for one in set(of)]
        for some, others in combinations(groups, 2):
            self.cluster.cut(between(some, others))
        return groups

    def crash(self) -> list[list[TellingNode]]:
        """Crash a node."""
        node = self.chance.choice(self.cluster.telling)
        node.stop(is_power_lost=self.chance.random() < 0.5)
        return [[one for one in self.cluster.telling if one is not node]]

    def partial(self) -> list[list[TellingNode]]:
        """Cut some pairs of nodes, which others may still hear."""
        pairs = list(combinations(self.cluster.telling, 2))
        for one, other in self.chance.sample(pairs, self.chance.randint(1, len(pairs))):
            self.cluster.cut(between([one], [other]))
        return []

    def one_way(self) -> list[list[TellingNode]]:
        """Let nothing pass between some pairs in one direction."""
        pairs = list(permutations(self.cluster.telling, 2))
        self.cluster.cut(self.chance.sample(pairs, self.chance.randint(1, len(pairs))))
        return []

    def change(self) -> None:
        """Change the alarms and the clients of a node."""
        node = self.chance.choice(self.cluster.telling)
        if node.is_up:
            set_alarm(node, self.chance.choice(list(Resource)), is_low=self.chance.random() < 0.5)
            kind = self.chance.choice([CONNECTIONS, CHANNELS])
            node.counts.add(kind, "u", self.chance.randint(-node.count(kind), 3))

    def check(self, groups: list[list[TellingNode]], began_at: int) -> None:
        """A node in the minority has shut out its clients in time, and the majority has not."""
        passed = self.cluster.network.time - began_at - STEP_MS
        for node in (node for group in groups if not self.is_majority(group) for node in group):
            assert passed < NOTICED_MS or node.states.minority.is_in_minority, self.states()
            assert passed < PAUSED_MS or not node.is_open, self.states()
        self.check_majority(groups, began_at)

    def check_majority(self, groups: list[list[TellingNode]], began_at: int) -> None:
        for group in groups:
            if self.is_majority(group):
                assert not any(at > began_at for node in group for at in node.paused_at), self.states()

    def is_majority(self, group: list[TellingNode]) -> bool:
        return 2 * len(group) > len(self.cluster.nodes)

    def states(self) -> list[object]:
        return [
            (
                node.name, node.is_up, node.is_open, node.reason, node.states.minority.is_in_minority,
                node.journal.group.leader, node.metadata.index, node.counts.elsewhere, node.reports[-5:],
            )
            for node in self.cluster.telling
        ]  # fmt: skip


@pytest.mark.seeds(SEEDS // 20)
def test_after_cuts_of_any_shape_all_agree_again_and_only_the_minority_has_paused(seed: int) -> None:
    partitions = Partitions(seed)
    for _ in range(5):
        partitions.round()
