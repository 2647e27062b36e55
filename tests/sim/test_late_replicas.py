"""Replicas of quorum queues on nodes that were cut off when the queue was declared, on whole brokers.

Such a node has promised nothing, and its vote may be needed as soon as it is back: another member may be gone
by then. A node that has had a replica, and has no log of it, never votes for it again.
"""

from itertools import product

import pytest
from tests.sim.broker_cluster import BrokerCluster
from tests.sim.broker_node import VHOST, BrokerNode

from warren.journal import metadata_log
from warren.metadata.commands import DeclareQueue, SetGlobalParameter
from warren.metadata.records import QueueRecord

NODES = 3
QUEUE = "q"


def record(node: BrokerNode) -> QueueRecord | None:
    return next((each for each in node.records() if each.name == QUEUE), None)


def has_begun(node: BrokerNode) -> bool:
    found = record(node)
    return found is not None and not found.initial_replicas


def is_led(cluster: BrokerCluster) -> bool:
    groups = [node.group_of(QUEUE) for node in cluster.nodes if node.is_up]
    return any(group is not None and group.is_open and group.driver.is_leader for group in groups)


def has_another_replica(cluster: BrokerCluster, node: BrokerNode) -> bool:
    """True if the replica on a node is none of the first ones, and somebody leads."""
    found = record(node)
    return found is not None and found.replica_on(node.node_id) > NODES and is_led(cluster)


def declare(cluster: BrokerCluster, *nodes: BrokerNode) -> None:
    """Declare a queue with replicas on these nodes, the first of which leads."""
    arguments = {"x-queue-type": "quorum"}
    members = tuple(node.node_id for node in nodes)
    command = DeclareQueue(vhost=VHOST, name=QUEUE, durable=True, arguments=arguments, members=members)
    nodes[0].propose(command, [])


def with_queue_declared_without(cluster: BrokerCluster, absent: BrokerNode) -> None:
    """Declare a queue with a replica on each node, whose group begins while one of them is cut off."""
    others = [node for node in cluster.nodes if node is not absent]
    cluster.cut([pair for other in others for pair in ((absent, other), (other, absent))])
    declare(cluster, *others, absent)
    assert cluster.run(lambda: all(has_begun(node) for node in others))
    assert record(absent) is None


@pytest.fixture
def cluster() -> BrokerCluster:
    cluster = BrokerCluster(1)
    cluster.form(NODES)
    return cluster


@pytest.mark.parametrize(("gone", "is_image"), list(product((1, 2), (False, True))))
def test_a_node_that_was_cut_off_votes_when_it_is_back(
    cluster: BrokerCluster, monkeypatch: pytest.MonkeyPatch, gone: int, *, is_image: bool
) -> None:
    """It is sent the declaration, or an image of the metadata, which says that the group has begun."""
    one, two, absent = cluster.nodes
    if is_image:
        monkeypatch.setattr(metadata_log, "METADATA_ENTRIES_KEPT", 1)
    with_queue_declared_without(cluster, absent)
    lost, other = (one, two) if gone == 1 else (two, one)
    for number in range(4):
        one.propose(SetGlobalParameter(name="p", value=number), [])
    # What was on its way to the node that is cut off is sent again until its session is lost.
    cluster.run(lambda: False, ms_max=10_000)
    lost.stop(is_power_lost=True)
    cluster.nodes.remove(lost)
    assert cluster.run(lambda: not is_led(cluster), ms_max=10_000)
    cluster.heal()
    assert cluster.run(lambda: is_led(cluster), ms_max=20_000)
    assert cluster.run(lambda: record(absent) == record(other))
    found = record(absent)
    assert found is not None
    assert found.replica_on(absent.node_id) == NODES


def test_a_node_that_has_lost_the_log_of_its_replica_does_not_vote(cluster: BrokerCluster) -> None:
    one, two, three = cluster.nodes
    declare(cluster, one, two, three)
    assert cluster.run(lambda: all(has_begun(node) for node in cluster.nodes))
    three.stop(is_power_lost=True)
    del three.machine._disks[VHOST]
    one.stop(is_power_lost=True)
    three.start()
    assert not cluster.run(lambda: is_led(cluster), ms_max=20_000)
    assert three.group_of(QUEUE) is None
    one.start()
    assert cluster.run(lambda: has_another_replica(cluster, three), ms_max=20_000)
