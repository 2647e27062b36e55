"""Three processes in one cluster, as their operators see and change them."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.cluster.warren_cluster import WarrenCluster, warren_cluster

from warren.limits_metadata import METADATA_TICK_MS, METADATA_TIMEOUT_TICKS

# A node that reaches no majority answers a HTTP request in less than the time of one wait of a channel, also
# on a slow machine; the simulation counts the ticks.
ANSWERED_S = METADATA_TIMEOUT_TICKS * METADATA_TICK_MS / 1_000
CHANGES = (
    ("PUT", "/api/vhosts/of%20HERE", None),
    ("PUT", "/api/users/of%20HERE", {"password": "p", "tags": ""}),
    ("PUT", "/api/queues/%2F/of%20HERE", {"durable": True}),
    ("PUT", "/api/exchanges/%2F/of%20HERE", {"type": "fanout"}),
    ("POST", "/api/bindings/%2F/e/amq.fanout/q/kept", {"routing_key": "HERE"}),
    ("DELETE", "/api/queues/%2F/kept", None),
    ("DELETE", "/api/vhosts/unknown", None),
    ("DELETE", "/api/users/unknown", None),
    ("POST", "/api/definitions", {"vhosts": [{"name": "from HERE"}, {"name": "also from HERE"}]}),
)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarrenCluster]:
    """A cluster that each test leaves as it was."""
    with warren_cluster(tmp_path_factory.mktemp("cluster")) as formed:
        yield formed


def test_the_port_for_other_nodes_is_among_the_listeners(lasting: WarrenCluster) -> None:
    for name, node in lasting.nodes.items():
        status, found = lasting.ask(name, "GET", f"/api/health/checks/port-listener/{node.cluster}")
        assert (status, found) == (200, {"status": "ok", "port": node.cluster})
        status, found = lasting.ask(name, "GET", "/api/health/checks/protocol-listener/clustering")
        assert (status, found) == (200, {"status": "ok", "protocol": "clustering"})
        _, overview = lasting.ask(name, "GET", "/api/overview?columns=listeners")
        shown = [one for one in overview["listeners"] if one["protocol"] == "clustering"]
        assert sorted(shown, key=lambda one: one["node"]) == [
            {
                "node": f"{other}@localhost", "protocol": "clustering", "ip_address": "127.0.0.1",
                "port": lasting.nodes[other].cluster, "socket_opts": [],
            }
            for other in lasting.nodes
        ]  # fmt: skip


def test_the_listener_for_other_nodes_stays_in_maintenance_mode(lasting: WarrenCluster) -> None:
    assert lasting.control("a", "drain", "--node", "b@localhost").status == 0
    port = lasting.nodes["b"].cluster
    assert lasting.ask("b", "GET", f"/api/health/checks/port-listener/{port}")[0] == 200
    assert lasting.ask("b", "GET", "/api/health/checks/protocol-listener/amqp")[0] == 503
    assert lasting.control("c", "revive", "--node", "b@localhost").status == 0
    assert lasting.ask("b", "GET", "/api/health/checks/protocol-listener/amqp")[0] == 200


@pytest.mark.parametrize("name", ["a", "c"], ids=["that dials the others", "that the others dial"])
def test_a_node_that_was_forgotten_says_so_and_does_not_start(cluster: WarrenCluster, name: str) -> None:
    forgotten, other = cluster.nodes[name], cluster.nodes["b"]
    cluster.kill(name)
    cluster.wait(lambda: not cluster.sees(other, forgotten), f"{name} is down")
    assert cluster.control("b", "forget_cluster_node", f"{name}@localhost").status == 0
    with pytest.raises(RuntimeError, match=r"this node was removed from its cluster, as '.@localhost' says"):
        cluster.start(name)
    log = forgotten.log.read_text()
    assert f"move its data directory ('{forgotten.data}') away" in log
    cluster.wipe(name)
    cluster.start(name)
    cluster.join(forgotten, other)
    cluster.wait(cluster.is_whole, "all nodes see one another")


@pytest.mark.parametrize("name", ["a", "c"], ids=["that dials the others", "that the others dial"])
def test_a_node_that_was_forgotten_while_it_was_cut_off_says_so(cluster: WarrenCluster, name: str) -> None:
    forgotten, other = cluster.nodes[name], cluster.nodes["b"]
    others = [one for one in cluster.nodes if one != name]
    for one in others:
        cluster.cut(name, one)
    cluster.wait(lambda: not cluster.sees(other, forgotten), f"{name} is down")
    assert cluster.control("b", "forget_cluster_node", f"{name}@localhost").status == 0
    assert "was removed" not in "".join(cluster.control(name, "cluster", "status").lines)
    cluster.mend()
    cluster.wait(lambda: forgotten.ask("GET", "/api/warren/cluster")[1]["removed_by"], "it knows", 10)
    _, status = forgotten.ask("GET", "/api/warren/cluster")
    assert status["removed_by"] in [f"{one}@localhost" for one in others]
    said = f"this node was removed from its cluster, as '{status['removed_by']}' says: it has kept its data"
    assert status["problems"][0].startswith(said)
    assert any(said in line for line in cluster.control(name, "cluster", "status").lines)
    assert said in forgotten.log.read_text()
    cluster.kill(name)
    cluster.wipe(name)
    cluster.start(name)
    cluster.join(forgotten, other)
    cluster.wait(cluster.is_whole, "all nodes see one another")


def refused_changes(cluster: WarrenCluster, name: str, round: int) -> list[str]:
    """Make changes at a node without a majority, all at once; return the paths of what was not changed."""
    here = f"{name}{round}"

    def change(method: str, path: str, body: object) -> tuple[float, int, str]:
        began = time.monotonic()
        status, answer = cluster.ask(name, method, path.replace("HERE", here), body)
        return time.monotonic() - began, status, str(answer)

    with ThreadPoolExecutor(len(CHANGES)) as pool:
        answers = list(pool.map(lambda one: change(*one), CHANGES))
    unchanged = []
    for (method, path, _), (seconds, status, answer) in zip(CHANGES, answers, strict=True):
        assert status == 503, (method, path, answer)
        assert seconds < ANSWERED_S, (method, path, seconds)
        assert "timed out" in answer
        for other in "abc".replace(name, ""):
            assert f"'{other}@localhost'" in answer, (method, path, answer)
        if "nothing was changed" in answer:
            unchanged.append(path.replace("HERE", here))
        else:
            assert "it may have taken effect" in answer
    return unchanged


@pytest.mark.parametrize("name", ["a", "c"])
def test_changes_without_a_majority_are_refused_in_time_and_say_what_may_have_happened(
    cluster: WarrenCluster, name: str
) -> None:
    assert cluster.ask(name, "PUT", "/api/queues/%2F/kept", {"durable": True})[0] == 201
    others = "abc".replace(name, "")
    for other in others:
        cluster.cut(name, other)
    # As soon as the network is cut, before anybody has noticed; then when it is known for long.
    unchanged = refused_changes(cluster, name, 1)
    unchanged += refused_changes(cluster, name, 2)
    assert cluster.ask(others[0], "PUT", "/api/vhosts/between", None)[0] == 201
    cluster.mend()
    cluster.wait(cluster.is_whole, "all nodes see one another")
    assert cluster.ask(name, "PUT", "/api/vhosts/after", None)[0] == 201
    for path in unchanged:
        if "%20" in path:
            assert cluster.ask(name, "GET", path)[0] == 404, path
    found = [
        [cluster.ask(one, "GET", f"/api/{kind}?columns=name")[1] for kind in ("vhosts", "users", "queues")]
        for one in "abc"
    ]
    assert found[0] == found[1] == found[2]
