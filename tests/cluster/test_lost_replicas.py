"""Quorum queues of which too many replicas are lost for good go on with those that are left."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from tests.cluster.warren_cluster import WarrenCluster, warren_cluster

BODIES = [b"%d" % number for number in range(50)]
REFUSED = 1


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[WarrenCluster]:
    """Three nodes, two of which the test loses."""
    with warren_cluster(tmp_path) as formed:
        yield formed


def declare_full(cluster: WarrenCluster, queue: str, replicas: int) -> None:
    """A queue that node a leads, with messages that were confirmed."""
    channel = _connect(cluster).channel()
    channel.confirm_delivery()
    arguments = {"x-queue-type": "quorum", "x-quorum-initial-group-size": replicas}
    channel.queue_declare(queue, durable=True, arguments=arguments)
    for body in BODIES:
        channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2))


def got(cluster: WarrenCluster, queue: str) -> list[tuple[bytes, bool]]:
    """All messages of a queue, and whether each says that it is redelivered."""
    channel = _connect(cluster).channel()
    found = []
    while (answer := channel.basic_get(queue, auto_ack=True))[0] is not None:
        found.append((answer[2], answer[0].redelivered))
    return found


def shown(cluster: WarrenCluster, queue: str) -> Any:
    return cluster.ask("a", "GET", f"/api/queues/%2F/{queue}")[1]


def lose_others(cluster: WarrenCluster) -> None:
    """Kill the other two nodes, and have node a go on alone."""
    for name in ("b", "c"):
        cluster.kill(name)
    cluster.stop("a")
    done = cluster.control("a", "cluster", "recover", str(cluster.nodes["a"].data), "--accept-loss")
    assert done.status == 0, done.lines
    advice = (
        "then recover 1 quorum queue of more than two replicas: warren queues recover QUEUE --accept-loss"
    )
    assert advice in done.lines
    cluster.start("a")


@pytest.mark.timeout(240)
def test_one_of_two_replicas_goes_on_by_itself_and_one_of_three_when_the_loss_is_accepted(
    cluster: WarrenCluster,
) -> None:
    declare_full(cluster, "of-two", 2)
    declare_full(cluster, "of-three", 3)
    lose_others(cluster)

    cluster.wait(lambda: shown(cluster, "of-two").get("state") == "running", "the queue of two runs")
    assert [body for body, _ in got(cluster, "of-two")] == BODIES

    assert shown(cluster, "of-three")["state"] == "minority"
    lost = "1 quorum queue has lost the nodes without which nobody leads it"
    problems = cluster.ask("a", "GET", "/api/warren/cluster")[1]["problems"]
    assert any(problem.startswith(lost) for problem in problems), problems
    told = cluster.control("a", "queues", "recover", "of-three")
    assert told.status == REFUSED
    assert "were removed from the cluster" in told.lines[0]
    # The last one may not be known as committed here.
    assert re.search(rf"readable: ({len(BODIES)}|{len(BODIES) - 1}) messages", told.lines[1])
    done = cluster.control("a", "queues", "recover", "of-three", "--accept-loss")
    assert f"queue of-three: running with {len(BODIES)} messages" in done.lines
    assert shown(cluster, "of-three")["state"] == "running"
    # Whoever may have got them is lost as well.
    assert got(cluster, "of-three") == [(body, True) for body in BODIES]


def _connect(cluster: WarrenCluster) -> pika.BlockingConnection:
    host, port = cluster.amqp_address("a")
    return pika.BlockingConnection(pika.ConnectionParameters(host, port))
