"""A shovel of Warren reads from RabbitMQ 3.10.8 and writes to it, with the messages that RabbitMQ's makes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pika
import pytest
from tests import rabbitmq
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.shovels import await_state, confirming, put_shovel, ready, take, uri, wait_until

CLUSTER = "shop"
MESSAGES = 2_000
pytestmark = [pytest.mark.rabbitmq, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def node() -> Iterator[BrokerProcess]:
    with broker() as started:
        yield started


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rabbitmq.RabbitMQ]:
    if not rabbitmq.is_installed():
        pytest.skip("rabbitmq-server is not installed")
    started = rabbitmq.RabbitMQ(
        tmp_path_factory.mktemp("rabbitmq"), listen="127.0.0.1", plugins=("rabbitmq_shovel",)
    )
    try:
        started.start()
        started.control("set_cluster_name", CLUSTER)
        yield started
    finally:
        started.stop()
        started.remove()


@pytest.fixture
def client(node: BrokerProcess) -> Iterator[HttpClient]:
    client = HttpClient(node)
    assert client.status("PUT /cluster-name", {"name": CLUSTER}) == 204
    yield client
    client.close()


@pytest.mark.parametrize("ack_mode", ["on-confirm", "on-publish", "no-ack"])
@pytest.mark.parametrize("is_to_rabbitmq", [True, False])
def test_messages_arrive_in_order_in_both_directions(
    node: BrokerProcess, server: rabbitmq.RabbitMQ, client: HttpClient, ack_mode: str, is_to_rabbitmq: bool
) -> None:
    ports = [node.port, server.port] if is_to_rabbitmq else [server.port, node.port]
    name = f"{ack_mode}-{is_to_rabbitmq}"
    put_shovel(
        client, name, src_uri=uri(ports[0]), src_queue=name, dest_uri=uri(ports[1]), dest_queue=f"{name}-to",
        ack_mode=ack_mode,
    )  # fmt: skip
    await_state(client, name, "running")
    bodies = [b"%d" % number for number in range(MESSAGES)]
    with confirming(ports[0]) as near, confirming(ports[1]) as far:
        for body in bodies:
            near.basic_publish("", name, body, pika.BasicProperties(delivery_mode=2, headers={"n": 1}))
        wait_until(lambda: ready(far, f"{name}-to") == MESSAGES)
        assert [body for body, _ in take(far, f"{name}-to")] == bodies
        wait_until(lambda: ready(near, name) == 0)
    assert client.status(f"DELETE /shovels/vhost/%2F/{name}") == 204


# Definitions, without the addresses, and the properties of the message that is moved.
CASES: dict[str, tuple[dict[str, object], pika.BasicProperties]] = {
    "queue": (
        {"src-queue": "here", "dest-queue": "there", "dest-add-forward-headers": True},
        pika.BasicProperties(headers={"z": 1, "a": {"y": 1, "b": True}}, priority=2, delivery_mode=2),
    ),
    "again": (
        {"src-queue": "here", "dest-queue": "there", "add-forward-headers": True},
        pika.BasicProperties(headers={"x-shovelled": [{"by": "hand"}]}),
    ),
    "exchange": (
        {"src-queue": "here", "dest-exchange": "amq.fanout", "dest-add-forward-headers": True},
        pika.BasicProperties(),
    ),
    "key": (
        {
            "src-queue": "here", "dest-exchange": "amq.fanout", "dest-exchange-key": "k",
            "dest-add-forward-headers": True,
        },
        pika.BasicProperties(headers={}),
    ),
    "from an exchange": (
        {
            "src-exchange": "amq.direct", "src-exchange-key": "here", "dest-queue": "there",
            "dest-add-forward-headers": True,
        },
        pika.BasicProperties(app_id="a"),
    ),
    "properties": (
        {
            "src-queue": "here", "dest-queue": "there",
            "dest-publish-properties": {"delivery_mode": 2, "expiration": "60000", "timestamp": 5},
        },
        pika.BasicProperties(headers={"z": 1, "a": 2}, content_type="t", delivery_mode=1),
    ),
    "not an array": (
        {"src-queue": "here", "dest-queue": "there", "dest-add-forward-headers": True},
        pika.BasicProperties(headers={"x-shovelled": "forged"}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_messages_are_those_that_rabbitmq_makes(
    node: BrokerProcess, server: rabbitmq.RabbitMQ, client: HttpClient, case: str
) -> None:
    given, properties = CASES[case]
    # The same addresses for both shovels: both move a message inside RabbitMQ.
    address = uri(server.port)
    definition = {"src-uri": address, "dest-uri": address, **given}
    made = []
    with confirming(server.port) as channel:
        for queue in ("here", "there"):
            channel.queue_delete(queue)
            channel.queue_declare(queue, durable=True)
        channel.queue_bind("there", "amq.fanout")
        for runner in ("rabbitmq", "warren"):
            if runner == "rabbitmq":
                server.control("set_parameter", "shovel", "s", json.dumps(definition))
            else:
                assert client.status("PUT /parameters/shovel/%2F/s", {"value": definition}) == 201
            if "src-exchange" in given:
                wait_until(lambda: "true" in server.control("list_queues", "-q", "exclusive"))
                channel.basic_publish("amq.direct", "here", b"m", properties)
            else:
                channel.basic_publish("", "here", b"m", properties)
            wait_until(lambda: ready(channel, "there") == 1)
            method, received, body = channel.basic_get("there", auto_ack=True)
            assert method is not None
            made.append((method.exchange, method.routing_key, vars(received), body))
            if runner == "rabbitmq":
                server.control("clear_parameter", "shovel", "s")
            else:
                assert client.status("DELETE /shovels/vhost/%2F/s") == 204
            wait_until(lambda: channel.queue_declare("here", passive=True).method.consumer_count == 0)
        channel.queue_unbind("there", "amq.fanout")
    assert made[0] == made[1]
    if given.get("dest-add-forward-headers"):
        assert made[1][2]["headers"]["x-shovelled"][0]["shovelled-by"] == CLUSTER
        assert list(made[0][2]["headers"]) == list(made[1][2]["headers"])
