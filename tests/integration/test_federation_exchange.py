"""Warren federates exchanges of RabbitMQ 3.10.8 and of Warren: from a policy to messages that arrive."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.cut_proxy import cut_proxy
from tests.integration.federation import (
    bindings_to_internal_exchanges,
    channel_at,
    eventually,
    federate_warren,
    is_linked,
    messages,
    rabbitmq,
)
from tests.rabbitmq import RabbitMQ, is_installed
from tests.warren_process import free_port

pytestmark = pytest.mark.slow
UPSTREAM = "upstream"
MESSAGES = 20_000


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    with rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as started:
        started.control("set_cluster_name", UPSTREAM)
        yield started


@pytest.mark.rabbitmq
@pytest.mark.skipif(not is_installed(), reason="no rabbitmq-server here")
@pytest.mark.parametrize("kind", ["topic", "direct", "fanout", "headers"])
def test_messages_of_rabbitmq_arrive_by_policy(
    client: HttpClient, node: BrokerProcess, upstream: RabbitMQ, kind: str
) -> None:
    name = f"from.rabbitmq.{kind}"
    arguments = {"x-match": "all", "n": 1} if kind == "headers" else None
    with channel_at(node.port) as here, channel_at(upstream.port) as there:
        here.exchange_declare(name, kind, durable=True)
        here.queue_declare(f"q.{kind}")
        here.queue_bind(f"q.{kind}", name, "k", arguments)
        federate_warren(client, kind, upstream.port, f"^{name}$")
        eventually(lambda: is_linked(client, name))
        there.basic_publish(name, "k", b"one", pika.BasicProperties(headers={"n": 1}, message_id="m"))
        ((method, properties, body),) = messages(here, f"q.{kind}", 1)
    assert (method.exchange, method.routing_key, body) == (name, "k", b"one")
    assert (properties.message_id, properties.headers["n"]) == ("m", 1)
    assert properties.headers["x-received-from"] == [
        {
            "uri": f"amqp://127.0.0.1:{upstream.port}",
            "exchange": name,
            "redelivered": False,
            "cluster-name": UPSTREAM,
            "vhost": "/",
        }
    ]
    # RabbitMQ takes what Warren declares for its own.
    cluster = client.get("/cluster-name")["name"]
    listed = upstream.control("list_exchanges", "name", "type", "--quiet")
    assert f"federation: {name} -> {cluster} A\tx-federation-upstream" in listed


@pytest.mark.rabbitmq
@pytest.mark.skipif(not is_installed(), reason="no rabbitmq-server here")
def test_bindings_are_made_and_removed_at_rabbitmq(
    client: HttpClient, node: BrokerProcess, upstream: RabbitMQ
) -> None:
    def keys() -> list[str]:
        columns = ("source_name", "routing_key", "destination_name")
        lines = upstream.control("list_bindings", *columns, "--quiet").splitlines()
        rows = [line.split("\t") for line in lines]
        return sorted(row[1] for row in rows if row[0] == "keys" and row[2].startswith("federation: "))

    with channel_at(node.port) as here:
        here.exchange_declare("keys", "direct", durable=True)
        here.queue_declare("one")
        here.queue_declare("other")
        here.queue_bind("one", "keys", "a")
        federate_warren(client, "keys", upstream.port, "^keys$")
        eventually(lambda: keys() == ["a"])
        here.queue_bind("other", "keys", "a")
        here.queue_bind("other", "keys", "b")
        here.queue_unbind("one", "keys", "a")
        eventually(lambda: keys() == ["a", "b"])
        here.queue_delete("other")
        eventually(lambda: keys() == [])
    assert client.status("DELETE /policies/%2f/federate-keys") == 204
    eventually(lambda: "keys" not in upstream.control("list_queues", "name", "--quiet"))
    assert not [link for link in client.get("/federation-links") if link["exchange"] == "keys"]


@pytest.mark.rabbitmq
@pytest.mark.skipif(not is_installed(), reason="no rabbitmq-server here")
def test_a_rename_of_the_cluster_leaves_nothing_at_rabbitmq(upstream: RabbitMQ) -> None:
    def queues() -> dict[str, int]:
        lines = upstream.control("list_queues", "name", "messages", "--quiet").splitlines()
        rows = [line.split("\t") for line in lines if line.startswith("federation: renamed ")]
        return {name: int(count) for name, count in rows}

    with broker() as node, channel_at(node.port) as here, channel_at(upstream.port) as there:
        client = HttpClient(node)
        assert client.status("PUT /cluster-name", {"name": "before"}) == 204
        here.exchange_declare("renamed", "fanout", durable=True)
        here.queue_declare("q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
        here.queue_bind("q", "renamed")
        federate_warren(client, "renamed", upstream.port, "^renamed$")
        eventually(lambda: is_linked(client, "renamed"))
        # The queue here takes one message at a time, so that the others wait at the upstream.
        for number in range(5):
            there.basic_publish("renamed", "", b"%d" % number)
        assert client.status("PUT /cluster-name", {"name": "after"}) == 204
        eventually(lambda: "federation: renamed -> after" in queues())
        there.basic_publish("renamed", "", b"5")
        assert {body for _, _, body in messages(here, "q", 6)} == {b"%d" % number for number in range(6)}
        eventually(lambda: queues() == {"federation: renamed -> after": 0})
        exchanges = upstream.control("list_exchanges", "name", "--quiet").splitlines()
        assert [name for name in exchanges if "renamed -> " in name] == ["federation: renamed -> after A"]
        client.close()


@pytest.mark.rabbitmq
@pytest.mark.skipif(not is_installed(), reason="no rabbitmq-server here")
def test_headers_that_leave_no_room_for_those_of_links_and_shovels_stop_none(
    client: HttpClient, node: BrokerProcess, upstream: RabbitMQ
) -> None:
    large = pika.BasicProperties(headers={"n": "x" * 130_960})
    with channel_at(node.port) as here, channel_at(upstream.port) as there:
        here.exchange_declare("large", "fanout", durable=True)
        here.queue_declare("q.large")
        here.queue_bind("q.large", "large")
        there.queue_declare("moved", durable=True)
        federate_warren(client, "large", upstream.port, "^large$")
        eventually(lambda: is_linked(client, "large"))
        shovel = {
            "src-uri": f"amqp://guest:guest@127.0.0.1:{upstream.port}", "src-queue": "moved",
            "dest-uri": "amqp://", "dest-queue": "moved", "dest-add-forward-headers": True,
        }  # fmt: skip
        assert client.status("PUT /parameters/shovel/%2f/large", {"value": shovel}) == 201
        for exchange, key in (("large", ""), ("", "moved")):
            there.basic_publish(exchange, key, b"large", large)
            there.basic_publish(exchange, key, b"after")
        # Without its entry, a message of a federated exchange could go round a cycle for ever.
        assert [body for _, _, body in messages(here, "q.large", 1)] == [b"after"]
        (link,) = (link for link in client.get("/federation-links") if link.get("exchange") == "large")
        assert (link["status"], link["dropped"], link["restarts"]) == ("running", 1, 0)
        eventually(lambda: "moved" in [queue["name"] for queue in client.get("/queues")])
        moved = [(body, list(properties.headers)) for _, properties, body in messages(here, "moved", 2)]
        assert moved == [(b"large", ["n"]), (b"after", ["x-shovelled"])]
    assert client.status("DELETE /parameters/shovel/%2f/large") == 204
    assert client.status("DELETE /policies/%2f/federate-large") == 204


@pytest.mark.rabbitmq
@pytest.mark.skipif(not is_installed(), reason="no rabbitmq-server here")
def test_rabbitmq_has_a_queue_as_the_upstream_says(
    client: HttpClient, node: BrokerProcess, upstream: RabbitMQ
) -> None:
    with channel_at(node.port) as here, channel_at(upstream.port) as there:
        here.exchange_declare("typed", "fanout", durable=True)
        here.queue_declare("q.typed")
        here.queue_bind("q.typed", "typed")
        settings = {"queue-type": "quorum", "expires": 600_000, "message-ttl": 60_000}
        federate_warren(client, "typed", upstream.port, "^typed$", **settings)
        eventually(lambda: is_linked(client, "typed"))
        listed = upstream.control("list_queues", "name", "type", "arguments", "--quiet").splitlines()
        (line,) = (line for line in listed if line.startswith("federation: typed "))
        _, kind, arguments = line.split("\t")
        assert kind.endswith("quorum")
        for argument in ('"x-expires",600000', '"x-message-ttl",60000', '"x-queue-type","quorum"'):
            assert argument in arguments
        there.basic_publish("typed", "", b"one")
        assert [body for _, _, body in messages(here, "q.typed", 1)] == [b"one"]
    assert client.status("DELETE /policies/%2f/federate-typed") == 204
    eventually(lambda: "typed" not in upstream.control("list_queues", "name", "--quiet"))


def test_messages_of_another_warren_arrive_after_its_kill(
    client: HttpClient, node: BrokerProcess, tmp_path: Path
) -> None:
    port = free_port()
    arguments = ("--data-dir", str(tmp_path / "data"), "--port", str(port))
    persistent = pika.BasicProperties(delivery_mode=2)
    expected = [b"%d" % number for number in range(200)]
    found: list[bytes] = []
    with channel_at(node.port) as here:
        here.exchange_declare("killed", "fanout", durable=True)
        here.queue_declare("q.killed")
        here.queue_bind("q.killed", "killed")
        with broker(*arguments):
            federate_warren(client, "killed", port, "^killed$")
            eventually(lambda: is_linked(client, "killed"))
            with channel_at(port) as there:
                for body in expected[:100]:
                    there.basic_publish("killed", "", body, persistent)
            # The end of the block is a SIGKILL.
        eventually(lambda: not is_linked(client, "killed"))
        with broker(*arguments):
            with channel_at(port) as there:
                for body in expected[100:]:
                    there.basic_publish("killed", "", body, persistent)
            eventually(lambda: is_linked(client, "killed"))

            def has_all() -> bool:
                while True:
                    method, _, body = here.basic_get("q.killed", auto_ack=True)
                    if method is None:
                        break
                    found.append(body)
                return set(found) >= set(expected)

            eventually(has_all)
    assert client.status("DELETE /policies/%2f/federate-killed") == 204


@pytest.mark.parametrize("max_hops", [1, 2])
def test_a_ring_of_three_brokers_does_not_loop(max_hops: int) -> None:
    with ExitStack() as stack:
        nodes = [stack.enter_context(broker()) for _ in range(3)]
        clients = [HttpClient(node) for node in nodes]
        channels = [stack.enter_context(channel_at(node.port)) for node in nodes]
        for number, client in enumerate(clients):
            assert client.status("PUT /cluster-name", {"name": f"c{number}"}) in (201, 204)
            channels[number].exchange_declare("ring", "fanout", durable=True)
            channels[number].queue_declare("q")
            channels[number].queue_bind("q", "ring")
        for number, client in enumerate(clients):
            before = nodes[number - 1].port
            federate_warren(client, "before", before, "^ring$", **{"max-hops": max_hops})
        eventually(lambda: all(is_linked(client, "ring") for client in clients))
        # With two hops, the binding of each broker must have reached the one before the last.
        expected = 1 if max_hops == 1 else 2
        for client in clients:
            eventually(lambda client=client: len(bindings_to_internal_exchanges(client, "ring")) == expected)
        channels[0].basic_publish("ring", "", b"one")
        reached = 1 + max_hops
        counts = [1 if number < reached else 0 for number in range(3)]

        def found() -> list[int]:
            return [channel.queue_declare("q", passive=True).method.message_count for channel in channels]

        eventually(lambda: found() == counts)
        # A message that circulated would be there again: as many as pass in the time of the others.
        channels[0].basic_publish("ring", "", b"two")
        eventually(lambda: found() == [2 * count for count in counts])
        for client in clients:
            links = client.get("/federation-links")
            assert [link["status"] for link in links] == ["running"]
            client.close()


def test_no_message_is_lost_while_the_link_is_cut_again_and_again(
    client: HttpClient, node: BrokerProcess, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        there = stack.enter_context(broker("--data-dir", str(tmp_path / "data")))
        proxy = stack.enter_context(cut_proxy(there.port))
        here = stack.enter_context(channel_at(node.port))
        here.exchange_declare("cut", "fanout", durable=True)
        here.queue_declare("q.cut")
        here.queue_bind("q.cut", "cut")
        federate_warren(client, "cut", proxy.port, "^cut$")
        eventually(lambda: is_linked(client, "cut"))
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", there.port))
        publishing = connection.channel()
        persistent = pika.BasicProperties(delivery_mode=2)
        for number in range(MESSAGES):
            publishing.basic_publish("cut", "", b"%d" % number, persistent)
            if number % (MESSAGES // 5) == MESSAGES // 10:
                proxy.cut()
        connection.close()
        found: list[int] = []

        def has_all() -> bool:
            while True:
                method, _, body = here.basic_get("q.cut", auto_ack=True)
                if method is None:
                    return len(set(found)) == MESSAGES
                found.append(int(body))

        eventually(has_all, 120)
    # Order is kept; what was not acknowledged when the link was cut has arrived twice.
    first = list(dict.fromkeys(found))
    assert first == list(range(MESSAGES))
    assert client.status("DELETE /policies/%2f/federate-cut") == 204


def test_clients_are_told_a_new_name_of_the_cluster() -> None:
    def name_at(port: int) -> object:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
        properties = connection._impl.server_properties
        connection.close()
        return properties["cluster_name"]

    with broker() as node:
        client = HttpClient(node)
        before = client.get("/cluster-name")["name"]
        assert name_at(node.port) == before
        client.status("PUT /cluster-name", {"name": "renamed"})
        assert name_at(node.port) == "renamed"
        client.close()


@pytest.mark.rabbitmq
@pytest.mark.long
@pytest.mark.skipif(not is_installed(), reason="no rabbitmq-server here")
def test_no_message_is_lost_if_rabbitmq_is_killed(
    client: HttpClient, node: BrokerProcess, tmp_path: Path
) -> None:
    with rabbitmq(tmp_path) as upstream:
        with channel_at(node.port) as here:
            here.exchange_declare("crashed", "fanout", durable=True)
            here.queue_declare("q.crashed")
            here.queue_bind("q.crashed", "crashed")
        federate_warren(client, "crashed", upstream.port, "^crashed$")
        eventually(lambda: is_linked(client, "crashed"))
        persistent = pika.BasicProperties(delivery_mode=2)
        with channel_at(upstream.port) as there:
            for number in range(MESSAGES // 10):
                there.basic_publish("crashed", "", b"%d" % number, persistent)
        upstream.kill()
        upstream.start()
        with channel_at(upstream.port) as there:
            for number in range(MESSAGES // 10, MESSAGES // 5):
                there.basic_publish("crashed", "", b"%d" % number, persistent)
        found: set[int] = set()

        def has_all() -> bool:
            while True:
                method, _, body = here.basic_get("q.crashed", auto_ack=True)
                if method is None:
                    return len(found) == MESSAGES // 5
                found.add(int(body))

        # Anew, since a start of RabbitMQ can take longer than a connection lives without heartbeats.
        with channel_at(node.port) as here:
            eventually(has_all, 120)
    assert client.status("DELETE /policies/%2f/federate-crashed") == 204
