"""Quorum queues with three replicas, on three processes that fail: what was confirmed is there, and once.

A node that is lost with all its data gets its replicas anew; replicas come and go under load.
"""

import shutil
import signal
import socket
from collections.abc import Callable

import pytest
from tests.cluster.test_live import EVERY_FAULT, Load, check_survival, replace_node
from tests.cluster.warren_cluster import WarrenCluster
from tests.patience import patient

QUORUM = "quorum"
# An election, on a machine that is busy with other tests.
GAP_S_MAX = patient(20)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_what_was_confirmed_survives(cluster: WarrenCluster, fault: Callable[[Load], None]) -> None:
    check_survival(Load(cluster, QUORUM), fault)


@pytest.mark.timeout(240)
def test_clients_of_other_nodes_go_on_while_a_node_is_down(cluster: WarrenCluster) -> None:
    load = Load(cluster, QUORUM)
    load.wait_confirmed()
    cluster.kill("a")
    load.wait_confirmed(GAP_S_MAX)
    assert not any(publisher.nacked for publisher in load.publishers[1:])
    cluster.start("a")
    cluster.wait(cluster.is_whole, "all nodes see one another", 60)
    load.wait_confirmed()
    load.check()


@pytest.mark.timeout(240)
def test_a_node_that_is_told_to_stop_hands_over_what_it_leads(cluster: WarrenCluster) -> None:
    load = Load(cluster, QUORUM)
    load.wait_confirmed()
    leaders = {cluster.leader(queue, "a") for queue in load.queues}
    stopped = sorted(leaders)[0]
    asked = "b" if stopped != "b" else "c"
    # A client that does not answer keeps the node from ending, while it leads nothing any more.
    with socket.create_connection(cluster.amqp_address(stopped)) as silent:
        silent.sendall(b"AMQP\x00\x00\x09\x01")
        assert silent.recv(1)
        process = cluster.nodes[stopped].process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        cluster.wait(
            lambda: stopped not in {cluster.leader(queue, asked) for queue in load.queues}, "others lead"
        )
        assert process.poll() is None
    # Its ports are the next process's: until it has ended it still accepts the clients of a node that runs.
    process.wait(30)
    cluster.nodes[stopped].ended()
    cluster.start(stopped)
    cluster.wait(cluster.is_whole, "all nodes see one another", 60)
    load.wait_confirmed()
    load.check()


@pytest.mark.timeout(240)
def test_a_node_that_is_lost_with_its_data_joins_again_and_gets_replicas(cluster: WarrenCluster) -> None:
    load = Load(cluster, QUORUM)
    load.wait_confirmed()
    replace_node(cluster)
    for queue in load.queues:
        status, answer = cluster.ask(
            "a", "POST", f"/api/queues/quorum/%2F/{queue}/replicas/add", {"node": "c@localhost"}
        )
        assert status in (200, 204), answer
    _check_replicas(load)


@pytest.mark.timeout(240)
def test_a_node_that_has_lost_its_messages_gets_other_replicas(cluster: WarrenCluster) -> None:
    """It still is the same member, and knows that it had replicas: they neither vote nor lead again."""
    load = Load(cluster, QUORUM)
    load.wait_confirmed()
    cluster.kill("c")
    shutil.rmtree(cluster.nodes["c"].data / "vhosts")
    cluster.start("c")
    cluster.wait(cluster.is_whole, "all nodes see one another", 60)
    _check_replicas(load)


def _check_replicas(load: Load) -> None:
    """Three replicas of each queue vote, so that clients go on without one of the others."""
    cluster = load.cluster
    cluster.wait(lambda: all(_votes(cluster, queue) == 3 for queue in load.queues), "three replicas vote", 60)
    load.wait_confirmed()
    cluster.kill("b")
    load.wait_confirmed()
    cluster.start("b")
    cluster.wait(cluster.is_whole, "all nodes see one another", 60)
    load.check()


def _votes(cluster: WarrenCluster, queue: str) -> int:
    """How many replicas of a queue vote, as their nodes say."""
    status, found = cluster.ask("a", "GET", f"/api/queues/quorum/%2F/{queue}/status")
    return sum(each.get("Membership") == "voter" for each in found) if status == 200 else 0
