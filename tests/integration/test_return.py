"""Unacknowledged messages that an operator requeues while their consumers are connected."""

from collections.abc import Iterator
from typing import Any

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess

RETURN = "POST /warren/queues/%2F/t/return"
HELD = "/warren/queues/%2F/t/messages?state=unacknowledged"
MANY = 500


@pytest.fixture
def connection(node: BrokerProcess) -> Iterator[pika.BlockingConnection]:
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection:
        yield connection


@pytest.fixture
def channel(connection: pika.BlockingConnection, default_queue_type: str) -> Iterator[Any]:
    channel = connection.channel()
    channel.queue_declare("t", durable=True)
    yield channel
    connection.channel().queue_delete("t")


def fill(channel: Any, count: int) -> None:
    channel.confirm_delivery()
    for number in range(count):
        channel.basic_publish("", "t", b"%d" % number)


def holders(client: HttpClient) -> list[dict[str, Any]]:
    return [message["delivery"] for message in client.get(HELD)["messages"]]


def delivery(holder: dict[str, Any]) -> dict[str, Any]:
    return {name: holder[name] for name in ("connection", "channel", "delivery_tag")}


def got(channel: Any) -> tuple[bytes, bool]:
    method, _, body = channel.basic_get("t", auto_ack=True)
    return body, method.redelivered


def test_one_of_many_messages_returns_to_its_position(
    client: HttpClient, channel: Any, connection: pika.BlockingConnection
) -> None:
    fill(channel, 4)
    holding = connection.channel()
    tags = [holding.basic_get("t")[0].delivery_tag for _ in range(3)]
    first = next(holder for holder in holders(client) if holder["delivery_tag"] == tags[1])
    answer = client.ask(RETURN, {"deliveries": [delivery(first)]})
    assert answer.value == {"requeued": 1, "returned": 1, "missing": 0}
    assert client.ask(RETURN, {"deliveries": [delivery(first)]}).value == {
        "requeued": 0,
        "returned": 0,
        "missing": 1,
    }
    assert [got(channel), got(channel)] == [(b"1", True), (b"3", False)]
    # The consumer acknowledges both the revoked delivery and one that it still has.
    for tag in (tags[1], tags[0], tags[2]):
        holding.basic_ack(tag)
    assert holding.queue_declare("t", passive=True).method.message_count == 0
    assert holders(client) == []


def test_the_prefetch_is_free_again_and_the_channel_stays_open(
    client: HttpClient, channel: Any, connection: pika.BlockingConnection
) -> None:
    fill(channel, 3)
    holding = connection.channel()
    holding.basic_qos(prefetch_count=1)
    taken: list[tuple[int, bytes, bool]] = []
    holding.basic_consume(
        "t", lambda c, m, p, body: taken.append((m.delivery_tag, body, m.redelivered)), consumer_tag="slow"
    )
    connection.process_data_events(time_limit=1)
    assert taken == [(1, b"0", False)]
    assert client.ask(RETURN, {"consumer_tag": "slow"}).value["requeued"] == 1
    while len(taken) < 2:
        connection.process_data_events(time_limit=5)
    assert taken[1] == (2, b"0", True)
    holding.basic_nack(1)
    holding.basic_ack(2)
    while len(taken) < 3:
        connection.process_data_events(time_limit=5)
    holding.basic_ack(3, multiple=True)
    while len(taken) < 4:
        connection.process_data_events(time_limit=5)
    assert [body for _, body, _ in taken] == [b"0", b"0", b"1", b"2"]
    assert holding.is_open


def test_all_messages_return_once_although_another_channel_receives_them(
    client: HttpClient, channel: Any, connection: pika.BlockingConnection
) -> None:
    fill(channel, MANY)
    channels = [connection.channel() for _ in range(3)]
    taken: list[bytes] = []
    for holding in channels:
        holding.basic_consume("t", lambda c, m, p, body: taken.append(body))
    while len(taken) < MANY:
        connection.process_data_events(time_limit=5)
    assert client.ask(RETURN, {"all": True}).value == {"requeued": MANY, "returned": MANY, "missing": 0}
    while len(taken) < 2 * MANY:
        connection.process_data_events(time_limit=5)
    assert sorted(taken) == sorted(2 * [b"%d" % number for number in range(MANY)])
    assert len(client.get(HELD + "&count=1000")["messages"]) == MANY


def test_only_messages_held_long_enough_return(client: HttpClient, channel: Any) -> None:
    fill(channel, 2)
    channel.basic_get("t")
    assert client.ask(RETURN, {"older_than_ms": 60_000}).value["requeued"] == 0
    assert client.ask(RETURN, {"older_than_ms": 0, "channel": channel.channel_number}).value["requeued"] == 1
    assert client.ask(RETURN, {"older_than_ms": 0, "connection": "nobody"}).value["requeued"] == 0


def test_a_message_that_returns_too_often_is_dead_lettered(
    client: HttpClient, connection: pika.BlockingConnection, default_queue_type: str
) -> None:
    channel = connection.channel()
    channel.queue_declare("t.dead", exclusive=True)
    arguments = {"x-delivery-limit": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "t.dead"}
    channel.queue_declare("t", durable=True, arguments=arguments)
    fill(channel, 1)
    for returned in range(2):
        assert channel.basic_get("t")[0].redelivered == bool(returned)
        assert client.ask(RETURN, {"all": True}).value["requeued"] == 1
    assert channel.basic_get("t")[0] is None
    assert channel.basic_get("t.dead", auto_ack=True)[2] == b"0"
    channel.queue_delete("t")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"all": False},
        {"deliveries": "x"},
        {"deliveries": [{"connection": "c", "channel": "one", "delivery_tag": 1}]},
        {"deliveries": [{"connection": "c", "channel": 1, "delivery_tag": 1}] * 1001},
        {"deliveries": [], "channel": 1},
        {"older_than_ms": -1},
        {"channel": True},
        {"connection": 7},
    ],
)
def test_invalid_requests_are_refused(client: HttpClient, channel: Any, body: dict[str, Any]) -> None:
    assert client.status(RETURN, body) == 400


def test_a_missing_queue_is_not_found(client: HttpClient) -> None:
    assert client.status("POST /warren/queues/%2F/none/return", {"all": True}) == 404
