"""What runs or is kept on one of three nodes is listed by all, and changed by any of them."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from tests.cluster.warren_cluster import WarrenCluster, warren_cluster
from tests.integration.api import HttpClient
from tests.integration.shovels import await_state, put_shovel, shovels, uri, wait_until
from tests.integration.staging import StagedQuery, bodies
from tests.oracle.cluster.cluster_brokers import full_name

PERSISTENT = pika.BasicProperties(delivery_mode=2)
# Shovels and links run on the first member.
FIRST = "a@localhost"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarrenCluster]:
    with warren_cluster(tmp_path_factory.mktemp("cluster")) as formed:
        yield formed


@pytest.fixture
def clients(cluster: WarrenCluster) -> dict[str, HttpClient]:
    return {name: HttpClient(node) for name, node in cluster.nodes.items()}


def test_a_shovel_is_listed_restarted_and_deleted_on_every_node(
    cluster: WarrenCluster, clients: dict[str, HttpClient]
) -> None:
    address = uri(cluster.nodes["b"].amqp)
    put_shovel(
        clients["c"], "s", src_uri=address, src_queue="from", dest_uri=address, dest_queue="to",
        src_protocol="amqp091", dest_protocol="amqp091",
    )  # fmt: skip
    path = "/shovels/vhost/%2F/s"
    for client in clients.values():
        assert await_state(client, "s", "running")["node"] == FIRST
        assert client.get("/shovels/%2F?columns=name,node") == [{"name": "s", "node": FIRST}]
        found = client.get(path)
        assert (found["node"], found["state"]) == (FIRST, "running")
    for name, line in (
        ("b", f"DELETE {path}/restart"),
        ("c", "POST /warren/shovels/%2F/s/restart"),
        ("a", "POST /warren/shovels/%2F/s/restart"),
    ):
        before = clients[name].get(path)["connected_at"]
        assert clients[name].status(line) == 204
        wait_until(lambda before=before: clients["b"].get(path)["connected_at"] > before, lambda: "again")
    shown = cluster.control("c", "shovels", "list", "-s", "name", "node")
    assert [line.split() for line in shown.lines] == [["s", FIRST]]
    assert clients["b"].status(f"DELETE {path}") == 204
    for client in clients.values():
        wait_until(lambda client=client: not shovels(client), lambda: "gone")
        assert client.status(f"GET {path}") == 404
        assert client.status("POST /warren/shovels/%2F/s/restart") == 404


def test_a_federation_link_is_listed_and_restarted_on_every_node(
    cluster: WarrenCluster, clients: dict[str, HttpClient]
) -> None:
    anyone = clients["b"]
    anyone.status("PUT /vhosts/up", {})
    anyone.status("PUT /permissions/up/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    address = f"amqp://guest:guest@127.0.0.1:{cluster.nodes['b'].amqp}/up"
    anyone.status("PUT /parameters/federation-upstream/%2F/up", {"value": {"uri": address}})
    anyone.status("PUT /exchanges/%2F/fed", {"type": "fanout"})
    definition = {"federation-upstream": "up"}
    anyone.status(
        "PUT /policies/%2F/fed", {"pattern": "^fed$", "definition": definition, "apply-to": "exchanges"}
    )

    def running(client: HttpClient) -> list[str]:
        return [one["node"] for one in client.get("/federation-links") if one["status"] == "running"]

    for client in clients.values():
        wait_until(lambda client=client: running(client) == [FIRST], lambda: str(running(anyone)))
        assert len(client.get("/federation-links/%2F?exchange=fed")) == 1
        assert client.get("/federation-links/%2F?exchange=other") == []
        assert client.get("/federation-links/%2F/state/down") == []
    (link,) = clients["c"].get("/federation-links")
    one = f"/warren/federation-links/%2F/{link['id']}"
    for name, line in (
        ("c", f"POST {one}/restart"),
        ("b", f"DELETE /federation-links/vhost/%2F/{link['id']}/a%40localhost/restart"),
    ):
        before = clients[name].get(one)["connected_at"]
        assert clients[name].status(line) == 204
        wait_until(lambda before=before: clients["c"].get(one)["connected_at"] > before, lambda: "again")
    for kind in (
        "policies/%2F/fed",
        "exchanges/%2F/fed",
        "parameters/federation-upstream/%2F/up",
        "vhosts/up",
    ):
        assert anyone.status(f"DELETE /{kind}") == 204
    for client in clients.values():
        wait_until(lambda client=client: client.get("/federation-links") == [], lambda: "gone")


def test_staged_batches_are_listed_on_every_node_and_discarded_where_they_are(
    clients: dict[str, HttpClient],
) -> None:
    # Two executors of one writer, which have come to two nodes.
    for partition, name in enumerate(("b", "c")):
        assert StagedQuery(clients[name], "w").stage(7, partition, bodies([b"x"] * 3, "q")).status == 200
    for client in clients.values():
        rows = client.get("/warren/staged")
        shown = sorted((row["node"], row["query"], row["batch"], row["rows"]) for row in rows)
        assert shown == [("b@localhost", "w", 7, 3), ("c@localhost", "w", 7, 3)]
    assert StagedQuery(clients["a"], "w").discard(7).status == 204
    for client in clients.values():
        assert client.get("/warren/staged") == []


def test_another_users_batch_is_not_discarded_from_any_node(
    cluster: WarrenCluster, clients: dict[str, HttpClient]
) -> None:
    clients["a"].status("PUT /users/other", {"password": "other", "tags": "management"})
    clients["a"].status("PUT /permissions/%2F/other", {"configure": "", "write": ".*", "read": ".*"})
    assert StagedQuery(clients["b"], "mine").stage(1, 0, bodies([b"x"], "q")).status == 200
    others = HttpClient(cluster.nodes["a"], "other:other")
    assert StagedQuery(others, "mine").discard(1).status == 403
    assert len(clients["c"].get("/warren/staged")) == 1
    assert StagedQuery(clients["c"], "mine").discard(1).status == 204
    assert clients["a"].status("DELETE /users/other") == 204


def test_losses_are_listed_and_acknowledged_on_every_node(cluster: WarrenCluster) -> None:
    node = cluster.nodes["b"]
    channel = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.amqp)).channel()
    channel.queue_declare("kept", durable=True)
    channel.confirm_delivery()
    for number in range(40):
        channel.basic_publish("", "kept", b"%03d" % number + bytes(200), PERSISTENT)
    cluster.kill("b")
    _damage(node.data)
    cluster.start("b")
    cluster.wait(cluster.is_whole, "all nodes see one another")
    clients = {name: HttpClient(node) for name, node in cluster.nodes.items()}
    for client in clients.values():
        (loss,) = client.get("/warren/losses")
        assert (loss["node"], loss["vhost"], loss["acknowledged"]) == (full_name("b"), "/", False)
        assert client.get("/warren/losses?vhost=other") == []
    assert clients["c"].ask("POST /warren/losses/acknowledge").value == {"acknowledged": 1}
    for client in clients.values():
        assert [loss["acknowledged"] for loss in client.get("/warren/losses")] == [True]
    assert clients["a"].ask("POST /warren/losses/acknowledge").value == {"acknowledged": 0}
    assert clients["a"].status("DELETE /queues/%2F/kept") == 204


def _damage(data: Path) -> None:
    """Change a message in the store of the virtual host `/`."""
    folder = data / "vhosts" / hashlib.sha256(b"/").hexdigest()[:32]
    path = max(folder.glob("*.segment"), key=lambda path: b"039" in path.read_bytes())
    content = bytearray(path.read_bytes())
    content[content.index(b"020" + bytes(100))] ^= 1
    path.write_bytes(content)
