"""What other nodes hold of a queue that leads here, while they are absent."""

import random

from tests.unit.cluster.replicated.test_replicated_queue import (
    client_of,
    consume,
    deliveries,
    publish,
    ready,
)
from tests.unit.cluster.two_nodes import VHOST, TwoNodes

from warren.limits_cluster import DISCONNECTED_MS
from warren.metadata.commands import INTERNAL_USER, SetPolicy
from warren.metadata.member_commands import MemberDown, MemberUp


def lose_for(cluster: TwoNodes, ms: int) -> list[bytes]:
    """Lose the session, let time pass, and return what is ready at the leader then."""
    cluster.lose()
    cluster.run()
    cluster.wait(ms)
    return ready(cluster)


def come_back(cluster: TwoNodes) -> None:
    cluster.begin()
    cluster.run()


def set_disconnected_timeout(cluster: TwoNodes, ms: int) -> None:
    definition = {"consumer-disconnected-timeout": ms}
    policy = SetPolicy(vhost=VHOST, name="p", pattern="", definition=definition)
    cluster.apply(policy, INTERNAL_USER, cluster.b)


def test_an_argument_says_how_long_an_absent_node_keeps_what_it_holds(cluster: TwoNodes) -> None:
    client = client_of(cluster, **{"x-consumer-disconnected-timeout": 500})
    publish(cluster, client, b"one")
    assert consume(cluster, client) == [b"one"]
    assert lose_for(cluster, 499) == []
    cluster.wait(1)
    assert ready(cluster) == [b"one"]


def test_without_a_time_an_absent_node_keeps_nothing(cluster: TwoNodes) -> None:
    client = client_of(cluster, **{"x-consumer-disconnected-timeout": 0})
    publish(cluster, client, b"one")
    assert consume(cluster, client) == [b"one"]
    assert lose_for(cluster, 0) == [b"one"]


def test_a_node_that_was_down_before_its_session_ended_keeps_nothing(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one")
    assert consume(cluster, client) == [b"one"]
    cluster.apply(MemberDown(id=1, incarnation=1), INTERNAL_USER, cluster.b)
    assert lose_for(cluster, 0) == [b"one"]


def test_a_node_that_runs_anew_before_its_session_ended_keeps_nothing(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one")
    assert consume(cluster, client) == [b"one"]
    up = MemberUp(id=1, incarnation=2, host="h", cluster_port=1, feature_level=1)
    cluster.apply(up, INTERNAL_USER, cluster.b)
    assert lose_for(cluster, 0) == [b"one"]


def test_a_time_for_absent_nodes_has_no_upper_limit(cluster: TwoNodes) -> None:
    client = client_of(cluster, **{"x-consumer-disconnected-timeout": 2**63 - 1})
    publish(cluster, client, b"one")
    assert consume(cluster, client) == [b"one"]
    assert lose_for(cluster, 2**32) == []
    come_back(cluster)
    assert deliveries(client) == []


def test_a_policy_that_changes_during_an_absence_holds_from_the_next_one(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    set_disconnected_timeout(cluster, 500)
    publish(cluster, client, b"one")
    assert consume(cluster, client) == [b"one"]
    assert lose_for(cluster, 0) == []
    set_disconnected_timeout(cluster, 1000)
    assert ready(cluster) == []
    cluster.wait(499)
    assert ready(cluster) == []
    cluster.wait(1)
    assert ready(cluster) == [b"one"]
    # Nobody has got it meanwhile, so that it holds it again.
    come_back(cluster)
    assert (ready(cluster), deliveries(client)) == ([], [])
    assert lose_for(cluster, 999) == []
    cluster.wait(1)
    assert ready(cluster) == [b"one"]


def test_the_node_says_how_long_others_keep_what_they_hold_of_a_queue_without_a_time() -> None:
    cluster = TwoNodes(disconnected_ms=500)
    for node in cluster.nodes:
        node.attach_store(random.Random(1))
    client = client_of(cluster)
    publish(cluster, client, b"one")
    assert consume(cluster, client) == [b"one"]
    assert lose_for(cluster, 499) == []
    cluster.wait(1)
    assert ready(cluster) == [b"one"]


def test_an_absence_that_has_ended_does_not_shorten_the_next_one(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one")
    assert consume(cluster, client) == [b"one"]
    assert lose_for(cluster, DISCONNECTED_MS - 1) == []
    come_back(cluster)
    assert lose_for(cluster, DISCONNECTED_MS - 1) == []
    cluster.wait(1)
    assert ready(cluster) == [b"one"]
