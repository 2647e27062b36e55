"""RabbitMQ 3.10.8 federates exchanges of Warren: it declares, binds and consumes at Warren as it needs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.federation import (
    bindings_to_internal_exchanges,
    channel_at,
    eventually,
    federate,
    internal_exchanges,
    messages,
    rabbitmq,
)
from tests.integration.link_differences import QUEUE_OF_AN_EXCHANGE
from tests.rabbitmq import RabbitMQ, is_installed
from tests.warren_process import free_port

pytestmark = [
    pytest.mark.rabbitmq,
    pytest.mark.slow,
    pytest.mark.skipif(not is_installed(), reason="no rabbitmq-server here"),
]

CLUSTER = "downstream"


@pytest.fixture(scope="module")
def downstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    with rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as started:
        started.control("set_cluster_name", CLUSTER)
        yield started


def attributes(entries: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(entry[name] for name in names) for entry in entries)


def test_a_message_arrives_with_the_upstream_in_its_headers(
    client: HttpClient, node: BrokerProcess, downstream: RabbitMQ
) -> None:
    federate(downstream, "there", node.port, "^orders$")
    with channel_at(downstream.port) as here, channel_at(node.port) as there:
        here.exchange_declare("orders", "topic", durable=True)
        here.queue_declare("all")
        here.queue_bind("all", "orders", "order.#")
        (bound,) = eventually(lambda: bindings_to_internal_exchanges(client, "orders"))
        suffix = bound["destination"][-1]
        there.basic_publish("orders", "order.new", b"first")
        there.basic_publish("orders", "invoice.new", b"of no interest")
        ((method, properties, body),) = messages(here, "all", 1)
    assert (method.routing_key, body) == ("order.new", b"first")
    (entry,) = properties.headers["x-received-from"]
    assert entry == {
        "uri": f"amqp://127.0.0.1:{node.port}",
        "exchange": "orders",
        "redelivered": False,
        "cluster-name": client.get("/cluster-name")["name"],
        "vhost": "/",
    }
    # What RabbitMQ has made at Warren.
    (bound,) = bindings_to_internal_exchanges(client, "orders")
    assert bound["routing_key"] == "order.#"
    (hop,) = bound["arguments"]["x-bound-from"]
    assert hop == {"cluster-name": CLUSTER, "vhost": "/", "exchange": f"/:orders {suffix}", "hops": 1}
    (exchange,) = internal_exchanges(client)
    assert exchange["name"] == f"federation: orders -> {CLUSTER} {suffix}"
    assert (exchange["type"], exchange["internal"]) == ("x-federation-upstream", True)
    assert exchange["arguments"] == {
        "x-max-hops": 1,
        "x-downstream-name": CLUSTER,
        "x-downstream-vhost": "/",
        "x-internal-purpose": "federation",
    }
    queue = client.get(f"/queues/%2f/federation%3a%20orders%20-%3E%20{CLUSTER}")
    arguments = QUEUE_OF_AN_EXCHANGE["rabbitmq 4" if downstream.version() >= (4,) else "rabbitmq"]
    assert (queue["durable"], queue["arguments"]) == (True, arguments)


def test_bindings_of_the_downstream_appear_and_go(
    client: HttpClient, node: BrokerProcess, downstream: RabbitMQ
) -> None:
    federate(downstream, "bound", node.port, "^bound\\.")

    def keys() -> list[tuple[Any, ...]]:
        return attributes(bindings_to_internal_exchanges(client, "bound.keys"), "routing_key")

    with channel_at(downstream.port) as here:
        here.exchange_declare("bound.keys", "direct", durable=True)
        for queue in ("one", "other"):
            here.queue_declare(queue)
        here.queue_bind("one", "bound.keys", "a")
        eventually(lambda: keys() == [("a",)])
        here.queue_bind("other", "bound.keys", "a")
        here.queue_bind("other", "bound.keys", "b")
        eventually(lambda: keys() == [("a",), ("b",)])
        here.queue_unbind("one", "bound.keys", "a")
        here.queue_unbind("other", "bound.keys", "b")
        eventually(lambda: keys() == [("a",)])
        here.queue_delete("other")
        eventually(lambda: keys() == [])
        here.exchange_delete("bound.keys")
        eventually(lambda: not [each for each in internal_exchanges(client) if "bound" in each["name"]])


@pytest.mark.parametrize("kind", ["fanout", "headers"])
def test_other_types_of_exchanges_are_federated(
    client: HttpClient, node: BrokerProcess, downstream: RabbitMQ, kind: str
) -> None:
    name = f"of.type.{kind}"
    federate(downstream, kind, node.port, f"^of\\.type\\.{kind}$")
    with channel_at(downstream.port) as here, channel_at(node.port) as there:
        here.exchange_declare(name, kind, durable=True)
        here.queue_declare("typed")
        here.queue_bind("typed", name, arguments={"x-match": "all", "n": 1} if kind == "headers" else None)
        eventually(lambda: bindings_to_internal_exchanges(client, name))
        there.basic_publish(name, "", b"one", pika.BasicProperties(headers={"n": 1}))
        ((_, properties, body),) = messages(here, "typed", 1)
        here.queue_delete("typed")
    assert body == b"one"
    assert properties.headers["n"] == 1
    assert len(properties.headers["x-received-from"]) == 1


def test_the_link_continues_after_a_restart_of_the_upstream(tmp_path: Path, downstream: RabbitMQ) -> None:
    port = free_port()
    arguments = ("--data-dir", str(tmp_path / "data"), "--port", str(port))
    with channel_at(downstream.port) as here:
        with broker(*arguments) as node, channel_at(port) as there:
            client = HttpClient(node)
            federate(downstream, "restarted", port, "^restarted$")
            here.exchange_declare("restarted", "fanout", durable=True)
            here.queue_declare("kept")
            here.queue_bind("kept", "restarted")
            eventually(lambda: bindings_to_internal_exchanges(client, "restarted"))
            (before,) = internal_exchanges(client)
            there.basic_publish("restarted", "", b"before")
            assert messages(here, "kept", 1)[0][2] == b"before"
            client.close()
            there.close()
            node.stop()
        with broker(*arguments) as node, channel_at(port) as there:
            client = HttpClient(node)
            # The queue of the link and its binding have survived, whether the link is there yet or not.
            there.basic_publish("restarted", "", b"meanwhile", pika.BasicProperties(delivery_mode=2))
            assert messages(here, "kept", 1)[0][2] == b"meanwhile"
            # The bindings are made anew at the other internal exchange, and the first one is deleted.
            eventually(lambda: [each["name"] for each in internal_exchanges(client)] != [before["name"]])
            eventually(lambda: len(internal_exchanges(client)) == 1)
            (after,) = internal_exchanges(client)
            assert {before["name"][-1], after["name"][-1]} == {"A", "B"}
            there.basic_publish("restarted", "", b"after")
            assert messages(here, "kept", 1)[0][2] == b"after"
            client.close()
