"""Peeking into a queue over HTTP, while clients publish to it and hold its messages."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pika
import pytest
from tests.integration.api import HttpClient, get
from tests.integration.broker_process import BrokerProcess, broker
from tests.patience import patient

COUNT = 500
# Message counts are sampled every five seconds.
SAMPLED_S_MAX = patient(15)
PERSISTENT = 2


@pytest.fixture(params=["classic", "quorum"])
def queue_type(request: pytest.FixtureRequest) -> str:
    """The type of the queues of the test."""
    return str(request.param)


@pytest.fixture
def channel(
    node: BrokerProcess, queue_type: str
) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection:
        channel = connection.channel()
        channel.queue_declare("orders", durable=True, arguments={"x-queue-type": queue_type})
        channel.confirm_delivery()
        yield channel
        channel.queue_delete("orders")


def peek(node: BrokerProcess, queue: str = "orders", **query: object) -> dict[str, Any]:
    path = f"/api/warren/queues/%2F/{quote(queue, safe='')}/messages?{urlencode(query, doseq=True)}"
    status, body = get(node, path)
    assert status == 200, body
    answer: dict[str, Any] = json.loads(body)
    return answer


def publish(channel: Any, count: int = COUNT) -> None:
    for number in range(count):
        properties = pika.BasicProperties(
            delivery_mode=PERSISTENT, headers={"tenant": f"t{number % 3}"}, message_id=f"m{number}"
        )
        channel.basic_publish("", "orders", json.dumps({"number": number}), properties)


def seen(answer: dict[str, Any]) -> list[int]:
    return [json.loads(message["payload"])["number"] for message in answer["messages"]]


def test_bcc_is_not_shown(node: BrokerProcess, channel: Any) -> None:
    properties = pika.BasicProperties(headers={"BCC": ["hidden"], "n": 1})
    channel.basic_publish("", "orders", '{"number": 1}', properties)
    [message] = peek(node)["messages"]
    assert message["properties"]["headers"] == {"n": 1}
    how = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
    api = HttpClient(node)
    [got] = api.ask("POST /queues/%2F/orders/get", how).value
    api.close()
    got["properties"]["headers"].pop("x-delivery-count", None)
    assert got["properties"]["headers"] == {"n": 1}
    _, taken, _ = channel.basic_get("orders", auto_ack=True)
    assert taken.headers["n"] == 1
    assert "BCC" not in taken.headers


def test_pages_show_every_message_and_change_none(node: BrokerProcess, channel: Any) -> None:
    publish(channel)
    found: list[int] = []
    after: int | None = 0
    while after is not None:
        answer = peek(node, **{"from": after, "count": 70})
        found += seen(answer)
        after = answer["next"]
    assert found == list(range(COUNT))
    first = peek(node, count=1)["messages"][0]
    assert first["properties"]["message_id"] == "m0"
    assert first["properties"]["headers"] == {"tenant": "t0"}
    assert (first["state"], first["delivery_count"], first["is_persistent"]) == ("ready", 0, True)
    for number in range(COUNT):
        method, _, body = channel.basic_get("orders")
        assert not method.redelivered
        assert json.loads(body) == {"number": number}


def test_only_matching_messages_are_shown(node: BrokerProcess, channel: Any) -> None:
    publish(channel, 100)
    answer = peek(node, match=["headers.tenant=t1", "body.number>=50"])
    assert seen(answer) == [number for number in range(50, 100) if number % 3 == 1]
    assert (answer["next"], answer["examined"]) == (None, 100)


def test_an_unacknowledged_message_is_shown_with_its_consumer(node: BrokerProcess, channel: Any) -> None:
    publish(channel, 5)
    method, _, _ = channel.basic_get("orders")
    channel.basic_nack(method.delivery_tag)
    held, _, _ = channel.basic_get("orders")
    assert held.redelivered
    assert seen(peek(node)) == [1, 2, 3, 4]
    answer = peek(node, state="unacknowledged")
    assert seen(answer) == [0]
    message = answer["messages"][0]
    assert message["delivery_count"] == 2
    assert message["delivery"]["user"] == "guest"
    assert message["delivery"]["channel"] == channel.channel_number
    assert message["delivery"]["delivery_tag"] == held.delivery_tag
    channel.basic_ack(held.delivery_tag)
    channel.queue_declare("orders", passive=True)
    assert peek(node, state="unacknowledged")["messages"] == []


def test_long_bodies_are_truncated_and_binary_ones_are_base64(node: BrokerProcess, channel: Any) -> None:
    channel.basic_publish("", "orders", b"\xff" * 1000)
    message = peek(node, truncate=6)["messages"][0]
    assert (message["payload"], message["payload_encoding"]) == ("////////", "base64")
    assert (message["payload_bytes"], message["is_truncated"]) == (1000, True)


@pytest.mark.parametrize(
    "query",
    ["count=x", "count=1001", "from=-1", "state=gone", "match=colour%3Dred", "match=x", "truncate=1e3"],
)
def test_invalid_requests_are_refused_with_the_reason(node: BrokerProcess, channel: Any, query: str) -> None:
    status, body = get(node, f"/api/warren/queues/%2F/orders/messages?{query}")
    assert status == 400
    assert json.loads(body)["reason"]


def test_a_missing_queue_is_not_found(node: BrokerProcess) -> None:
    assert get(node, "/api/warren/queues/%2F/none/messages")[0] == 404


def test_messages_on_disk_only_are_shown(tmp_path: Path) -> None:
    size, count = 65_536, 600
    with (
        broker("--data-dir", str(tmp_path)) as node,
        pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection,
    ):
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("large", durable=True)
        for number in range(count):
            body = b"%08d" % number * (size // 8)
            channel.basic_publish("", "large", body, pika.BasicProperties(delivery_mode=PERSISTENT))
        last = peek(node, "large", **{"from": count - 1, "truncate": 8})
        assert [message["payload"] for message in last["messages"]] == [f"{count - 1:08}"]
        answer = peek(node, "large", match="body~00000599", truncate=8)
        assert (answer["examined"], len(answer["messages"])) == (count, 1)


def test_messages_recovered_at_a_restart_are_in_the_totals(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("kept", durable=True)
            for _ in range(3):
                channel.basic_publish("", "kept", b"x", pika.BasicProperties(delivery_mode=PERSISTENT))
        assert node.stop() == 0
    with broker("--data-dir", str(tmp_path)) as node:
        deadline = time.monotonic() + SAMPLED_S_MAX
        while json.loads(get(node, "/api/overview")[1])["queue_totals"].get("messages_ready") != 3:
            assert time.monotonic() < deadline
            time.sleep(0.2)
