"""The members of quorum queues of three processes are changed by the commands of `rabbitmq-queues`."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.warren_cluster import WarrenCluster, warren_cluster
from tests.oracle.cluster.cluster_brokers import CommandResult

A, B, C = "a@localhost", "b@localhost", "c@localhost"
PROGRAM = "rabbitmq-queues"
PASSED, REFUSED, UNHEALTHY = 0, 1, 6


@pytest.fixture(scope="module")
def formed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarrenCluster]:
    """Three nodes on which a quorum queue has one replica."""
    folder: Path = tmp_path_factory.mktemp("cluster")
    with warren_cluster(folder, WARREN_QUORUM_QUEUE_INITIAL_CLUSTER_SIZE="1") as formed:
        yield formed


@pytest.fixture
def cluster(formed: WarrenCluster) -> WarrenCluster:
    """The nodes with a new quorum queue on each of the first two."""
    formed.restore()
    for node in ("a", "b"):
        body = {"durable": True, "arguments": {"x-queue-type": "quorum"}}
        assert formed.ask(node, "PUT", f"/api/queues/%2F/on-{node}", body)[0] == 201
        await_members(formed, f"on-{node}", f"{node}@localhost")
    return formed


def queues(cluster: WarrenCluster, node: str, command: str, *arguments: str) -> CommandResult:
    """What a command of rabbitmq-queues answers that is run for a node."""
    return cluster.control(node, PROGRAM, command, *arguments)


def await_members(cluster: WarrenCluster, queue: str, *nodes: str) -> dict[str, Any]:
    """Wait until every node that runs shows these members of a queue; return what the first shows."""

    def shown() -> list[dict[str, Any]]:
        running = [name for name, node in cluster.nodes.items() if node.process is not None]
        return [cluster.ask(name, "GET", f"/api/queues/%2F/{queue}")[1] for name in running]

    cluster.wait(lambda: all(one.get("members") == [*nodes] for one in shown()), f"members of {queue}")
    return shown()[0]


def await_voters(cluster: WarrenCluster, queue: str, *nodes: str) -> None:
    """Wait until these nodes have the replicas of a queue, which all vote, and one of which leads."""

    def voters() -> list[str]:
        rows = [row.split() for row in queues(cluster, "b", "quorum_status", queue).lines[1:]]
        has_leader = any(row[1] == "leader" for row in rows)
        return [row[0] for row in rows if row[2:3] == ["voter"]] if has_leader else []

    cluster.wait(lambda: voters() == [*nodes], f"voters of {queue}")


@pytest.mark.timeout(120)
def test_members_are_added_and_deleted_at_any_node(cluster: WarrenCluster) -> None:
    assert queues(cluster, "c", "add_member", "on-a", B).status == PASSED
    found = await_members(cluster, "on-a", A, B)
    assert (found["leader"], found["online"], found["node"]) == (A, [A, B], A)
    assert queues(cluster, "b", "add_member", "on-a", B).status == PASSED
    answer = queues(cluster, "b", "add_member", "on-a", "d@localhost")
    assert (answer.status, answer.lines) == (
        REFUSED,
        [f"warren: refused: the cluster has no node 'd@localhost': its nodes are {A}, {B}, {C}"],
    )
    assert queues(cluster, "b", "delete_member", "on-a", B).status == PASSED
    await_members(cluster, "on-a", A)
    answer = queues(cluster, "c", "delete_member", "on-a", A)
    assert answer.status == REFUSED
    assert "has no replica on another node" in answer.lines[0]


@pytest.mark.timeout(120)
def test_the_status_names_each_member_and_who_leads(cluster: WarrenCluster) -> None:
    assert queues(cluster, "a", "add_member", "on-a", C).status == PASSED
    await_members(cluster, "on-a", A, C)
    for node in ("a", "b"):
        head, *rows = queues(cluster, node, "quorum_status", "on-a").lines
        assert head.split()[:3] == ["node", "state", "membership"]
        assert [row.split()[0] for row in rows] == [A, C]
        assert rows[0].split()[1:3] == ["leader", "voter"]
    assert queues(cluster, "a", "delete_member", "on-a", C).status == PASSED
    await_members(cluster, "on-a", A)


@pytest.mark.timeout(120)
def test_all_queues_grow_on_a_node_and_shrink_there(cluster: WarrenCluster) -> None:
    grown = queues(cluster, "b", "grow", C, "all", "--queue-pattern", "^on-")
    assert [line.split() for line in grown.lines] == [
        ["vhost", "name", "size", "result"], ["/", "on-a", "2", "ok"], ["/", "on-b", "2", "ok"],
    ]  # fmt: skip
    assert queues(cluster, "b", "grow", C, "all").lines[1:] == []
    await_members(cluster, "on-b", B, C)
    # Of two members both are needed.
    critical = queues(cluster, "c", "check_if_node_is_quorum_critical")
    assert critical.status == UNHEALTHY
    assert "2 quorum queues would have no majority without this node" in critical.lines[0]
    assert queues(cluster, "a", "shrink", C).status == PASSED
    await_members(cluster, "on-a", A)
    assert queues(cluster, "c", "check_if_node_is_quorum_critical").status == PASSED
    last = queues(cluster, "a", "shrink", A, "--errors-only")
    assert last.status == REFUSED
    assert last.lines[-1] == "warren: 1 of 1 queues were not changed"


@pytest.mark.timeout(120)
def test_leaders_are_counted_by_node(cluster: WarrenCluster) -> None:
    assert [line.split() for line in queues(cluster, "c", "rebalance", "quorum").lines] == [
        ["node", "quorum", "queues"], [A, "1"], [B, "1"],
    ]  # fmt: skip


@pytest.mark.timeout(120)
def test_a_member_that_is_down_is_shown_and_can_be_deleted(cluster: WarrenCluster) -> None:
    assert queues(cluster, "a", "add_member", "on-a", B).status == PASSED
    assert queues(cluster, "a", "grow", C, "all").status == PASSED
    await_voters(cluster, "on-a", A, B, C)
    await_voters(cluster, "on-b", B, C)
    cluster.kill("c")
    cluster.wait(lambda: not cluster.sees(cluster.nodes["a"], cluster.nodes["c"]), "c is down")
    found = await_members(cluster, "on-a", A, B, C)
    assert found["online"] == [A, B]
    rows = queues(cluster, "b", "quorum_status", "on-a").lines
    assert [C, "nodedown"] in [row.split() for row in rows]
    assert queues(cluster, "a", "delete_member", "on-a", C).status == PASSED
    await_members(cluster, "on-a", A, B)
    answer = queues(cluster, "a", "add_member", "on-a", C)
    assert (answer.status, answer.lines) == (
        REFUSED,
        [f"warren: refused: node '{C}' is down: start it first, or choose another one"],
    )
    cluster.start("c")


@pytest.mark.timeout(120)
def test_without_a_majority_no_member_is_deleted_and_the_queue_can_be(cluster: WarrenCluster) -> None:
    """Its replicas could not agree on the former, and nobody would lead it any more when the node is back."""
    assert queues(cluster, "a", "add_member", "on-a", C).status == PASSED
    assert queues(cluster, "a", "add_member", "on-b", C).status == PASSED
    await_voters(cluster, "on-a", A, C)
    await_voters(cluster, "on-b", B, C)
    cluster.kill("c")
    cluster.wait(lambda: not cluster.sees(cluster.nodes["a"], cluster.nodes["c"]), "c is down")
    reason = (
        "the replicas of queue 'on-a' have no majority to agree on it: first start one of the nodes that are "
        f"down, which are {C}"
    )
    answer = queues(cluster, "b", "delete_member", "on-a", C)
    assert (answer.status, answer.lines) == (REFUSED, [f"warren: refused: {reason}"])
    answer = queues(cluster, "b", "shrink", C, "--queue-pattern", "^on-a$")
    assert reason in answer.lines[1]
    await_members(cluster, "on-a", A, C)
    for path in ("/api/queues?sort=state", "/api/queues?columns=name,state", "/api/queues"):
        cluster.wait(partial(_are_in_minority, cluster, path), f"nobody leads in {path}")
    assert cluster.ask("b", "DELETE", "/api/queues/%2F/on-a")[0] == 204
    assert cluster.ask("a", "GET", "/api/queues/%2F/on-a")[0] == 404
    cluster.start("c")
    await_voters(cluster, "on-b", B, C)


@pytest.mark.timeout(120)
def test_a_queue_that_is_declared_while_a_node_is_down_has_a_replica_there_when_it_is_back(
    cluster: WarrenCluster,
) -> None:
    cluster.kill("c")
    cluster.wait(lambda: not cluster.sees(cluster.nodes["a"], cluster.nodes["c"]), "c is down")
    arguments = {"x-queue-type": "quorum", "x-quorum-initial-group-size": 3}
    body = {"durable": True, "arguments": arguments}
    assert cluster.ask("a", "PUT", "/api/queues/%2F/early", body)[0] == 201
    assert await_members(cluster, "early", A, B, C)["online"] == [A, B]
    message = {"properties": {"delivery_mode": 2}, "routing_key": "early", "payload": "m"}
    body = message | {"payload_encoding": "string"}
    assert cluster.ask("b", "POST", "/api/exchanges/%2F/amq.default/publish", body)[1] == {"routed": True}
    cluster.start("c")

    await_voters(cluster, "early", A, B, C)
    # One of the first two may be lost now.
    cluster.kill("a")
    cluster.wait(lambda: _ready(cluster, "c", "early") == 1, "the message is there without a")
    cluster.start("a")


def _are_in_minority(cluster: WarrenCluster, path: str) -> bool:
    shown = {row["name"]: row["state"] for row in cluster.ask("b", "GET", path)[1]}
    return shown == {"on-a": "minority", "on-b": "minority"}


def _ready(cluster: WarrenCluster, node: str, queue: str) -> int | None:
    """The ready messages of a queue whose leader has answered `node`; None if it has none."""
    shown = cluster.ask(node, "GET", f"/api/queues/%2F/{queue}?msg_rates_age=0")[1]
    return shown.get("messages_ready") if shown.get("leader") in (B, C) else None
