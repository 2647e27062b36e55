"""A member that goes on alone when the others are lost: what it knew is there, and nobody else comes back."""

import pytest
from tests.seeds import SEEDS
from tests.sim.simulated_cluster import ClusterNode, SimulatedCluster
from tests.sim.test_cluster import formed, queues, states
from tests.sim.test_cluster_controls import declare, leader_of

from warren.errors import AmqpError
from warren.journal.journal import Journal
from warren.journal.journal_dependencies import JournalDependencies
from warren.journal.recovery import recover
from warren.journal.sole_member import make_sole_member
from warren.metadata.commands import DeclareQueue, Reply
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.records import QueueMember
from warren.simulation.ports import JournalFuture

CLUSTER_ID = b"another cluster "


def recovered(node: ClusterNode) -> None:
    """Make a stopped node the only member, and start it."""
    metadata = Metadata()
    found = recover(node.disk, metadata, node=node.node_id)
    make_sole_member(metadata, found, node.node_id, CLUSTER_ID)
    dependencies = JournalDependencies(
        now=node.now,
        random_bytes=node.cluster.chance.randbytes,
        make_future=JournalFuture,
        report=lambda _: None,
        incarnation=Incarnation(node.node_id, node.run),
    )
    Journal(metadata, node.disk, dependencies, found).begin()
    node.known = ()
    node.start()


def stopped(cluster: SimulatedCluster, *, is_power_lost: bool = True) -> None:
    for node in cluster.nodes:
        if node.is_up:
            node.stop(is_power_lost=is_power_lost)


def test_the_node_has_what_it_knew_and_decides_alone() -> None:
    cluster, (one, two, three) = formed(1)
    declare(cluster, one, "on-one")
    declare(cluster, two, "on-two")
    declare(cluster, three, "transient-on-three", durable=False)
    assert cluster.run(lambda: len(queues(two)) == 3)
    stopped(cluster)
    recovered(two)
    assert cluster.run(lambda: two.journal.group.is_leader)
    assert queues(two) == ["on-one", "on-two"]
    assert list(two.metadata.members.by_id) == [two.node_id]
    assert {removed.name for removed in two.metadata.members.removed.values()} == {one.name, three.name}
    assert two.metadata.homes[one.node_id] == 1
    declare(cluster, two, "new")
    assert queues(two) == ["on-one", "on-two", "new"]
    # A crash changes nothing of that.
    two.stop(is_power_lost=True)
    two.start()
    assert cluster.run(lambda: two.journal.group.is_leader)
    assert queues(two) == ["on-one", "on-two", "new"]
    assert two.metadata.members.cluster_id == CLUSTER_ID


def test_it_is_the_only_member_of_the_quorum_queues_of_which_it_has_a_replica() -> None:
    cluster, (one, two, _) = formed(4)
    replies: list[Reply | AmqpError] = []
    ids = {"shared": (1, 3, 2), "elsewhere": (1, 3)}
    for name, members in ids.items():
        arguments = {"x-queue-type": "quorum"}
        one.propose(
            DeclareQueue(vhost="/", name=name, durable=True, arguments=arguments, members=members), replies
        )
    assert cluster.run(lambda: len(replies) == 2)
    assert cluster.run(lambda: len(queues(two)) == 2)
    stopped(cluster)
    recovered(two)
    assert cluster.run(lambda: two.journal.group.is_leader)
    found = two.metadata.vhosts.by_name["/"].topology.queues
    assert (found["shared"].members, found["shared"].home) == ((QueueMember(two.node_id, 3),), two.node_id)
    assert found["elsewhere"].replica_on(two.node_id) == 0
    assert found["elsewhere"].home in two.metadata.members.removed


def test_former_members_that_come_back_do_not_meet_it_again() -> None:
    cluster, (one, two, three) = formed(2)
    declare(cluster, one, "before")
    assert cluster.run(lambda: queues(two) == queues(three) == ["before"])
    stopped(cluster)
    recovered(two)
    one.start()
    three.start()
    assert cluster.run(lambda: one.journal.group.is_leader or three.journal.group.is_leader), states(cluster)
    declare(cluster, one, "theirs")
    declare(cluster, two, "own")
    cluster.run(lambda: False, ms_max=10_000)
    assert queues(one) == queues(three) == ["before", "theirs"]
    assert queues(two) == ["before", "own"]
    assert two.journal.group.replica.configuration.voters == (two.node_id,)


def test_what_was_not_known_as_agreed_on_counts_since_it_may_have_been_answered() -> None:
    cluster, nodes = formed(3)
    leader = leader_of(cluster)
    for node in nodes:
        if node is not leader:
            node.stop(is_power_lost=True)
    replies: list[Reply | AmqpError] = []
    leader.propose(DeclareQueue(vhost="/", name="written", durable=True), replies)
    cluster.run(lambda: False, ms_max=400)
    assert replies == []
    leader.stop(is_power_lost=False)
    metadata = Metadata()
    found = recover(leader.disk, metadata, node=leader.node_id)
    assert found.tail
    recovered(leader)
    assert cluster.run(lambda: leader.journal.group.is_leader)
    assert queues(leader) == ["written"]


@pytest.mark.seeds(SEEDS // 100)
def test_every_answered_declaration_of_a_member_that_was_up_to_date_survives(seed: int) -> None:
    cluster, nodes = formed(seed)
    chance = cluster.chance
    names = [f"q{number}" for number in range(chance.randrange(1, 30))]
    for name in names:
        declare(cluster, chance.choice(nodes), name)
    node = chance.choice(nodes)
    assert cluster.run(lambda: sorted(queues(node)) == sorted(names))
    stopped(cluster, is_power_lost=chance.random() < 0.5)
    recovered(node)
    assert cluster.run(lambda: node.journal.group.is_leader)
    assert sorted(queues(node)) == sorted(names)
    declare(cluster, node, "afterwards")
