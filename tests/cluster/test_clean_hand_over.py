"""A quorum queue gets another leader without a failure: it marks only what some client has got."""

import signal
from collections.abc import Callable

import pika
import pytest
from tests.cluster.warren_cluster import NODES, WarrenCluster

QUEUE = "handed-over"
BODIES = [b"a", b"b", b"c"]


def stop(cluster: WarrenCluster, node: str) -> None:
    process = cluster.nodes[node].process
    assert process is not None
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    cluster.nodes[node].ended()


def begin_maintenance(cluster: WarrenCluster, node: str) -> None:
    (name,) = [
        member["name"]
        for member in cluster.ask(node, "GET", "/api/warren/cluster")[1]["members"]
        if member["name"].startswith(f"{node}@")
    ]
    assert cluster.ask(node, "PUT", f"/api/warren/nodes/{name}/maintenance")[0] == 204


@pytest.mark.timeout(240)
@pytest.mark.parametrize("replace", [stop, begin_maintenance])
def test_what_was_never_delivered_has_no_mark_after_a_hand_over(
    cluster: WarrenCluster, replace: Callable[[WarrenCluster, str], None]
) -> None:
    channel = _connect(cluster, NODES[0]).channel()
    channel.confirm_delivery()
    channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "quorum"})
    for body in BODIES:
        channel.basic_publish("", QUEUE, body, pika.BasicProperties(delivery_mode=2))
    leader = cluster.leader(QUEUE, NODES[0])
    other = next(name for name in NODES if name != leader)
    holding = _connect(cluster, leader).channel()
    assert holding.basic_get(QUEUE)[2] == b"a"
    replace(cluster, leader)
    cluster.wait(lambda: cluster.leader(QUEUE, other) not in ("", leader), "another node leads")
    found = _connect(cluster, other).channel()
    got: list[tuple[bytes, bool, int]] = []

    def has_all() -> bool:
        method, properties, body = found.basic_get(QUEUE)
        if method is not None:
            count = (properties.headers or {}).get("x-delivery-count", 0)
            got.append((body, method.redelivered, count))
        return len(got) == len(BODIES)

    cluster.wait(has_all, "all messages are delivered by the next leader")
    assert sorted(got) == [(b"a", True, 1), (b"b", False, 0), (b"c", False, 0)]


def _connect(cluster: WarrenCluster, node: str) -> pika.BlockingConnection:
    host, port = cluster.amqp_address(node)
    return pika.BlockingConnection(pika.ConnectionParameters(host, port))
