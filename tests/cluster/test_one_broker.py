"""What three nodes do as one broker, live, that no node can do alone."""

import time
from collections.abc import Iterator

import pika
import pytest
from tests.cluster.counted import PERSISTENT, connected, drained
from tests.cluster.warren_cluster import WarrenCluster, warren_cluster
from tests.patience import patient

ALL_RIGHTS = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarrenCluster]:
    with warren_cluster(tmp_path_factory.mktemp("cluster")) as formed:
        yield formed


@pytest.fixture
def connections(cluster: WarrenCluster) -> Iterator[list[pika.BlockingConnection]]:
    opened = [connected(node.amqp) for node in cluster.nodes.values()]
    yield opened
    for connection in opened:
        connection.close()


def test_a_shovel_runs_on_one_node_and_moves_each_message_once(
    cluster: WarrenCluster, connections: list[pika.BlockingConnection]
) -> None:
    channel = connections[2].channel()
    channel.confirm_delivery()
    for queue in ("from", "to"):
        channel.queue_declare(queue, durable=True)
    for number in range(200):
        channel.basic_publish("", "from", b"%d" % number, PERSISTENT)
    value = {
        "src-protocol": "amqp091", "src-uri": "amqp://", "src-queue": "from",
        "dest-protocol": "amqp091", "dest-uri": "amqp://", "dest-queue": "to",
    }  # fmt: skip
    status, _ = cluster.ask("b", "PUT", "/api/parameters/shovel/%2F/move", {"value": value})
    assert status == 201
    port = cluster.nodes["b"].amqp

    def count(queue: str) -> int:
        found: int = channel.queue_declare(queue, passive=True).method.message_count
        return found

    cluster.wait(lambda: count("to") >= 200, "all messages are moved")
    assert count("from") == 0
    cluster.ask("c", "DELETE", "/api/parameters/shovel/%2F/move")
    assert sorted(map(int, drained(port, "to"))) == list(range(200))


def test_a_request_is_answered_by_a_server_on_another_node(
    connections: list[pika.BlockingConnection],
) -> None:
    client, server = connections[0].channel(), connections[1].channel()
    server.queue_declare("requests", durable=True)
    replies: list[bytes] = []
    client.basic_consume(
        "amq.rabbitmq.reply-to",
        lambda _channel, _method, _properties, body: replies.append(body),
        auto_ack=True,
    )
    client.basic_publish("", "requests", b"ask", pika.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
    end = time.monotonic() + patient(20)
    method = None
    while method is None and time.monotonic() < end:
        method, properties, body = server.basic_get("requests", auto_ack=True)
    assert method is not None
    server.basic_publish("", properties.reply_to, b"answer to " + body)
    while not replies and time.monotonic() < end:
        connections[0].process_data_events(0.1)
        connections[1].process_data_events(0)
    assert replies == [b"answer to ask"]


def test_a_stream_is_written_and_read_from_other_nodes_than_its_own(
    connections: list[pika.BlockingConnection],
) -> None:
    connections[0].channel().queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
    writer = connections[1].channel()
    writer.confirm_delivery()
    for number in range(10):
        writer.basic_publish("", "s", b"%d" % number)
    reader = connections[2].channel()
    reader.basic_qos(prefetch_count=10)
    bodies = []
    for method, _, body in reader.consume("s", arguments={"x-stream-offset": "first"}, inactivity_timeout=10):
        assert method is not None
        bodies.append(body)
        reader.basic_ack(method.delivery_tag)
        if len(bodies) == 10:
            break
    assert bodies == [b"%d" % number for number in range(10)]


def test_what_one_node_declares_is_there_on_all_at_once(
    connections: list[pika.BlockingConnection],
) -> None:
    channels = [connection.channel() for connection in connections]
    for number in range(30):
        name = f"at once {number}"
        channels[number % 3].queue_declare(name, durable=True)
        channels[(number + 1) % 3].queue_declare(name, passive=True)
        channels[(number + 2) % 3].queue_delete(name)


def homes(cluster: WarrenCluster, node: str) -> dict[str, str]:
    """The queues `here N` and their nodes, as `node` lists them."""
    _, queues = cluster.ask(node, "GET", "/api/queues?columns=name,node")
    return {queue["name"]: queue["node"] for queue in queues if queue["name"].startswith("here")}


def test_every_node_answers_for_all(
    cluster: WarrenCluster, connections: list[pika.BlockingConnection]
) -> None:
    for at, connection in enumerate(connections):
        connection.channel().queue_declare(f"here {at}", durable=True)
    expected = {f"here {at}": f"{name}@localhost" for at, name in enumerate(cluster.nodes)}
    for node in cluster.nodes:
        # A node may hear of a declaration a little later than the node of the client.
        cluster.wait(lambda node=node: homes(cluster, node) == expected, f"{node} lists all queues")  # type: ignore[misc]
        _, nodes = cluster.ask(node, "GET", "/api/nodes")
        assert [one["running"] for one in nodes] == [True] * 3


def test_a_virtual_host_is_alive_if_its_test_queue_is_placed_on_another_node(
    cluster: WarrenCluster, connections: list[pika.BlockingConnection]
) -> None:
    connections[0].channel().queue_declare("the first", durable=True)
    connections[1].channel().queue_declare("the second", durable=True)
    policy = {"pattern": "^aliveness-test$", "definition": {"queue-master-locator": "min-masters"}}
    for at, node in enumerate(cluster.nodes):
        assert cluster.ask(node, "PUT", f"/api/vhosts/alive%20{at}")[0] == 201
        assert cluster.ask(node, "PUT", f"/api/permissions/alive%20{at}/guest", ALL_RIGHTS)[0] in (201, 204)
        assert cluster.ask(node, "PUT", f"/api/policies/alive%20{at}/elsewhere", policy)[0] == 201
        assert cluster.ask(node, "GET", f"/api/aliveness-test/alive%20{at}") == (200, {"status": "ok"})
