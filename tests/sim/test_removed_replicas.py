"""Replicas of quorum queues that are removed while they vote, or that are to lead no more, on whole brokers.

A change of the voters is agreed on by those that vote before it, so that a replica which is removed may be
needed for its own removal.
"""

from itertools import permutations

import pytest
from tests.sim.broker_cluster import BrokerCluster
from tests.sim.broker_node import VHOST, BrokerNode

from warren.metadata.commands import ChangeQueueMembers, DeclareQueue
from warren.metadata.member_commands import RemoveMember
from warren.metadata.records import QueueRecord

NODES = 3
QUEUE = "q"


def record(node: BrokerNode) -> QueueRecord:
    return next(each for each in node.records() if each.name == QUEUE)


def node_of(cluster: BrokerCluster, id: int) -> BrokerNode:
    return next(node for node in cluster.nodes if node.node_id == id)


def with_queue(*members: int) -> BrokerCluster:
    """A cluster with a queue that has replicas on these nodes, the first of which leads."""
    cluster = BrokerCluster(1)
    cluster.form(NODES)
    declare = DeclareQueue(
        vhost=VHOST, name=QUEUE, durable=True, arguments={"x-queue-type": "quorum"}, members=members
    )
    cluster.nodes[0].propose(declare, [])
    assert cluster.run(
        lambda: has_voters(cluster, *members) and not record(cluster.nodes[0]).initial_replicas
    )
    return cluster


def change_members(
    cluster: BrokerCluster, *, added: tuple[int, ...] = (), removed: tuple[int, ...] = ()
) -> None:
    number = record(cluster.nodes[0]).number
    command = ChangeQueueMembers(vhost=VHOST, queue=QUEUE, number=number, added=added, removed=removed)
    cluster.nodes[0].propose(command, [])


def group_on(cluster: BrokerCluster, node: int) -> int:
    """The number of the replica that runs on a node; 0 if there is none."""
    group = node_of(cluster, node).group_of(QUEUE)
    return 0 if group is None else group.driver.replica.id


def has_voters(cluster: BrokerCluster, *nodes: int) -> bool:
    """True if a replica leads whose group has voters on these nodes, and perhaps learners on others."""
    for node in cluster.nodes:
        group = node.group_of(QUEUE) if node.is_up else None
        if group is not None and group.is_open and group.driver.is_leader:
            replicas = {group_on(cluster, each) for each in nodes}
            return {*group.driver.replica.configuration.voters} == replicas
    return False


@pytest.mark.parametrize(("leader", "follower"), list(permutations(range(1, NODES + 1), 2)))
def test_one_of_two_replicas_is_removed(leader: int, follower: int) -> None:
    cluster = with_queue(leader, follower)
    change_members(cluster, removed=(follower,))
    assert cluster.run(lambda: has_voters(cluster, leader), ms_max=20_000)
    assert cluster.run(lambda: node_of(cluster, follower).group_of(QUEUE) is None, ms_max=30_000)


@pytest.mark.parametrize("leader", [1, 2, 3])
def test_two_of_three_replicas_are_removed_at_once(leader: int) -> None:
    others = tuple({1, 2, 3} - {leader})
    cluster = with_queue(leader, *others)
    change_members(cluster, removed=others)
    assert cluster.run(lambda: has_voters(cluster, leader), ms_max=20_000)


@pytest.mark.parametrize(("leader", "replaced"), [(1, 2), (2, 1), (1, 1), (2, 2)])
def test_one_of_two_replicas_is_replaced_by_one_on_another_node(leader: int, replaced: int) -> None:
    cluster = with_queue(leader, 3 - leader)
    change_members(cluster, added=(3,), removed=(replaced,))
    assert cluster.run(lambda: has_voters(cluster, 3 - replaced, 3), ms_max=20_000)


@pytest.mark.parametrize("replaced", [1, 2])
def test_a_replica_votes_until_the_one_that_replaces_it_is_there(replaced: int) -> None:
    cluster = with_queue(1, 2)
    node_of(cluster, 3).stop(is_power_lost=False)
    change_members(cluster, added=(3,), removed=(replaced,))
    cluster.run(lambda: False, ms_max=30_000)
    assert has_voters(cluster, 1, 2)
    node_of(cluster, 3).start()
    assert cluster.run(lambda: has_voters(cluster, 3 - replaced, 3), ms_max=30_000)
    assert cluster.run(lambda: node_of(cluster, replaced).group_of(QUEUE) is None, ms_max=30_000)


def forget(cluster: BrokerCluster, forgotten: int, at: int) -> None:
    """Have a node that is down from now on removed from the cluster, by another one."""
    if node_of(cluster, forgotten).is_up:
        node_of(cluster, forgotten).stop(is_power_lost=True)
    asked = node_of(cluster, at)
    asked.propose(RemoveMember(id=forgotten, is_forgotten=True), [])
    assert cluster.run(lambda: forgotten not in asked.metadata.members.by_id, ms_max=60_000)


@pytest.mark.parametrize(("kept", "forgotten"), [(1, 2), (2, 1)])
def test_one_of_two_replicas_goes_on_when_the_node_of_the_other_is_forgotten(
    kept: int, forgotten: int
) -> None:
    cluster = with_queue(1, 2)
    forget(cluster, forgotten, at=kept)
    assert cluster.run(lambda: has_voters(cluster, kept), ms_max=60_000)
    node = node_of(cluster, kept)
    node.stop(is_power_lost=True)
    node.start()
    # Its log says that there is no other: it does not wait again.
    assert cluster.run(lambda: has_voters(cluster, kept), ms_max=5_000)


def test_it_goes_on_as_well_if_its_node_was_down_meanwhile() -> None:
    cluster = with_queue(1, 2)
    for name in ("node4@here", "node5@here"):
        cluster.admit(cluster.add(name), cluster.nodes[2])
    assert cluster.run(cluster.is_settled, ms_max=60_000)
    cluster.nodes[0].stop(is_power_lost=True)
    forget(cluster, 2, at=3)
    cluster.nodes[0].start()
    assert cluster.run(lambda: has_voters(cluster, 1), ms_max=60_000)


def test_a_replica_of_a_group_that_has_never_begun_does_not_lead_alone() -> None:
    cluster = BrokerCluster(1)
    cluster.form(NODES)
    node_of(cluster, 2).stop(is_power_lost=True)
    declare = DeclareQueue(
        vhost=VHOST, name=QUEUE, durable=True, arguments={"x-queue-type": "quorum"}, members=(1, 2)
    )
    node_of(cluster, 1).propose(declare, [])
    assert cluster.run(lambda: node_of(cluster, 1).front_of(QUEUE) is not None, ms_max=60_000)
    forget(cluster, 2, at=1)
    assert record(node_of(cluster, 1)).never_begins
    cluster.run(lambda: False, ms_max=60_000)
    front = node_of(cluster, 1).front_of(QUEUE)
    assert front is not None
    assert not front.is_left_alone
    assert not has_voters(cluster, 1)


def test_one_of_three_replicas_goes_on_without_the_others_only_if_an_operator_accepts_the_loss() -> None:
    cluster = with_queue(1, 2, 3)
    for name in ("node4@here", "node5@here"):
        cluster.admit(cluster.add(name), cluster.nodes[0])
    assert cluster.run(cluster.is_settled, ms_max=60_000)
    for each in (2, 3):
        node_of(cluster, each).stop(is_power_lost=True)
    forget(cluster, 2, at=1)
    forget(cluster, 3, at=1)
    cluster.run(lambda: False, ms_max=60_000)
    assert not has_voters(cluster, 1)
    front = node_of(cluster, 1).front_of(QUEUE)
    assert front is not None
    assert front.is_left_alone
    front.recover()
    assert cluster.run(lambda: has_voters(cluster, 1), ms_max=20_000)
    assert not front.is_left_alone


def test_a_node_that_hands_over_leads_nothing_any_more_when_it_says_that_it_is_done() -> None:
    cluster = with_queue(1, 2, 3)
    queues = node_of(cluster, 1).new_remote_queues()
    assert not queues.is_handing_over
    queues.hand_over()
    assert queues.is_handing_over
    assert cluster.run(lambda: not queues.is_handing_over)
    group = node_of(cluster, 1).group_of(QUEUE)
    assert group is not None
    assert not group.driver.is_leader
    assert cluster.run(lambda: has_voters(cluster, 1, 2, 3))


def test_a_node_whose_group_nobody_can_lead_is_not_kept_by_that() -> None:
    cluster = with_queue(1, 2)
    node_of(cluster, 2).stop(is_power_lost=False)
    queues = node_of(cluster, 1).new_remote_queues()
    queues.hand_over()
    assert cluster.run(lambda: not queues.is_handing_over, ms_max=5_000)
