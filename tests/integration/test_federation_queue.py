"""A RabbitMQ federates its queues with queues of Warren: Warren is the upstream."""

from collections.abc import Iterator
from typing import Any

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.federation import (
    channel_at,
    consumer_count,
    eventually,
    federate_queues,
    rabbitmq,
    ready_count,
)  # fmt: skip
from tests.rabbitmq import RabbitMQ, is_installed

pytestmark = [pytest.mark.rabbitmq, pytest.mark.skipif(not is_installed(), reason="no RabbitMQ here")]

MANY = 20_000


@pytest.fixture(scope="module")
def upstream() -> Iterator[BrokerProcess]:
    with broker() as started:
        yield started


@pytest.fixture(scope="module")
def downstream(upstream: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    client = HttpClient(upstream)
    client.ask("PUT /vhosts/second")
    client.ask("PUT /permissions/second/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    client.close()
    with rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as started:
        at = f"amqp://127.0.0.1:{upstream.port}"
        federate_queues(started, "^fed", {"warren": at, "second": f"{at}/second"})
        yield started


def test_rabbitmq_declares_its_queue_at_warren_with_the_same_properties(
    upstream: BrokerProcess, downstream: RabbitMQ
) -> None:
    with channel_at(downstream.port) as there:
        there.queue_declare("fed.properties", durable=True, arguments={"x-max-priority": 4})
    client = HttpClient(upstream)
    eventually(lambda: client.ask("GET /queues/%2F/fed.properties").status == 200)
    found = client.get("/queues/%2F/fed.properties")
    client.close()
    assert (found["durable"], found["auto_delete"]) == (True, False)
    # RabbitMQ 4 adds the default type of the vhost to the arguments of a queue.
    added = {"x-queue-type": "classic"} if downstream.version() >= (4,) else {}
    assert found["arguments"] == {"x-max-priority": 4, **added}


def test_messages_are_pulled_only_while_a_consumer_of_rabbitmq_wants_them(
    upstream: BrokerProcess, downstream: RabbitMQ
) -> None:
    with channel_at(upstream.port) as here, channel_at(downstream.port) as there:
        here.queue_declare("fed.demand", durable=True)
        there.queue_declare("fed.demand", durable=True)
        here.basic_publish("", "fed.demand", b"first", pika.BasicProperties(headers={"CC": ["other"]}))
        assert consumer_count(here, "fed.demand") == 0
        got: list[Any] = []
        tag = there.basic_consume("fed.demand", lambda *delivery: got.append(delivery[2:]), auto_ack=True)
        eventually(lambda: there.connection.process_data_events(0) or got)
        assert consumer_count(here, "fed.demand") == 1
        there.basic_cancel(tag)
        eventually(lambda: consumer_count(here, "fed.demand") == 0)
        here.basic_publish("", "fed.demand", b"second")
        assert ready_count(here, "fed.demand") == 1
    headers = got[0][0].headers
    assert headers["x-original-cc"] == ["other"]
    assert (headers["x-original-exchange"], headers["x-original-routing-key"]) == ("", "fed.demand")
    assert headers["x-received-from"] == [
        {
            "uri": f"amqp://127.0.0.1:{upstream.port}",
            "queue": "fed.demand",
            "redelivered": False,
            "visit-count": 1,
        }
    ]


def test_a_consumer_of_warren_comes_before_the_link(upstream: BrokerProcess, downstream: RabbitMQ) -> None:
    with channel_at(upstream.port) as here, channel_at(downstream.port) as there:
        here.queue_declare("fed.first", durable=True)
        there.queue_declare("fed.first", durable=True)
        away: list[bytes] = []
        there.basic_consume("fed.first", lambda *delivery: away.append(delivery[3]), auto_ack=True)
        eventually(lambda: consumer_count(here, "fed.first") == 1)
        local: list[bytes] = []
        here.basic_consume("fed.first", lambda *delivery: local.append(delivery[3]), auto_ack=True)
        for number in range(100):
            here.basic_publish("", "fed.first", b"%d" % number)
        eventually(lambda: here.connection.process_data_events(0) or len(local) == 100)
        there.connection.process_data_events(0)
        assert not away


def test_messages_of_two_virtual_hosts_of_warren_arrive_once_each(
    upstream: BrokerProcess, downstream: RabbitMQ
) -> None:
    with (
        # Confirms of each publish would take a minute; the counts tell of a loss.
        channel_at(upstream.port, confirms=False) as first,
        channel_at(upstream.port, "second", confirms=False) as second,
        channel_at(downstream.port) as there,
    ):
        there.queue_declare("fed.many", durable=True)
        for number, channel in enumerate((first, second)):
            channel.queue_declare("fed.many", durable=True)
            for sequence in range(MANY // 2):
                # Without confirms of each, which takes a minute; the counts below tell of a loss.
                channel._impl.basic_publish("", "fed.many", b"%d %d" % (number, sequence))
            eventually(lambda c=channel: ready_count(c, "fed.many") == MANY // 2)
        got: list[bytes] = []

        def receive(channel: Any, method: Any, _properties: object, body: bytes) -> None:
            got.append(body)
            channel.basic_ack(method.delivery_tag)

        there.basic_qos(prefetch_count=50)
        there.basic_consume("fed.many", receive)
        eventually(lambda: there.connection.process_data_events(0) or len(got) >= MANY)
        for number in (0, 1):
            assert [body for body in got if body.startswith(b"%d " % number)] == [
                b"%d %d" % (number, sequence) for sequence in range(MANY // 2)
            ]
        eventually(lambda: ready_count(first, "fed.many") + ready_count(second, "fed.many") == 0)
