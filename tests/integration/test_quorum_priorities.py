"""Messages of a quorum queue are delivered by priority, in 32 levels, without any argument."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.test_serve import connect

QUEUE = "/warren/queues/%2F/jobs"


@pytest.fixture(params=["on disk", "in memory"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    options = ["--data-dir", str(tmp_path / "data")] if request.param == "on disk" else ["--in-memory"]
    with broker(*options) as process:
        yield process


@pytest.fixture
def channel(node: BrokerProcess) -> Iterator[BlockingChannel]:
    with connect(node.port) as connection:
        channel = connection.channel()
        declare(channel)
        yield channel


def declare(channel: BlockingChannel, **arguments: object) -> None:
    channel.confirm_delivery()
    channel.queue_declare("jobs", durable=True, arguments={"x-queue-type": "quorum"} | arguments)


def publish(channel: BlockingChannel, body: str, priority: int | None = None) -> None:
    channel.basic_publish("", "jobs", body.encode(), BasicProperties(priority=priority))


def got(channel: BlockingChannel, count: int) -> dict[str, int]:
    """The first `count` messages: body -> delivery tag."""
    found = [channel.basic_get("jobs") for _ in range(count)]
    return {body.decode(): method.delivery_tag for method, _, body in found}


def test_the_highest_priority_is_first_and_more_than_31_is_31(channel: BlockingChannel) -> None:
    for body, priority in (("a", None), ("b", 31), ("c", 255), ("d", 0), ("e", 5), ("f", 40)):
        publish(channel, body, priority)
    assert [*got(channel, 6)] == ["b", "c", "f", "e", "a", "d"]


def test_a_returned_message_is_at_its_place_in_its_level(channel: BlockingChannel) -> None:
    for body, priority in (("a", 2), ("b", 2), ("c", None)):
        publish(channel, body, priority)
    first, second, third = got(channel, 3).values()
    for tag in (third, second, first):
        channel.basic_reject(tag)
    publish(channel, "d", 3)
    assert [*got(channel, 4)] == ["d", "a", "b", "c"]


def test_the_first_message_with_a_priority_comes_before_later_ones_to_a_waiting_consumer(
    channel: BlockingChannel,
) -> None:
    publish(channel, "before")
    channel.basic_ack(got(channel, 1)["before"])
    channel.connection.channel()
    other = channel.connection.channel()
    other.tx_select()
    other.basic_publish("", "jobs", b"high", BasicProperties(priority=1))
    other.basic_publish("", "jobs", b"low")
    bodies = []
    channel.basic_qos(prefetch_count=1)
    consumed = channel.consume("jobs")
    other.tx_commit()
    for method, _, body in consumed:
        bodies.append(body)
        assert method is not None
        channel.basic_ack(method.delivery_tag)
        if len(bodies) == 2:
            break
    assert bodies == [b"high", b"low"]


def test_positions_stay_when_the_first_message_with_a_priority_comes(
    node: BrokerProcess, channel: BlockingChannel
) -> None:
    client = HttpClient(node)
    for body in "ab":
        publish(channel, body)
    before = [each["position"] for each in client.get(f"{QUEUE}/messages")["messages"]]
    publish(channel, "c", 7)
    after = client.get(f"{QUEUE}/messages")["messages"]
    assert [each["payload"] for each in after] == ["c", "a", "b"]
    assert [each["position"] for each in after[1:]] == before


def test_the_head_that_is_dropped_is_the_one_of_the_highest_priority(node: BrokerProcess) -> None:
    with connect(node.port) as connection:
        channel = connection.channel()
        declare(channel, **{"x-max-length": 2})
        for body, priority in (("a", 1), ("b", None), ("c", None)):
            publish(channel, body, priority)
        assert [*got(channel, 2)] == ["b", "c"]


def test_priorities_attempts_and_leases_are_there_after_a_restart(tmp_path: Path) -> None:
    options = ("--data-dir", str(tmp_path / "data"))
    with broker(*options) as node, connect(node.port) as connection:
        channel = connection.channel()
        declare(channel)
        publish(channel, "leased")
        lease = HttpClient(node).ask(f"POST {QUEUE}/leases", {"key": "k"}).value
        assert lease["messages"] == 1
        for body, priority in (("low", None), ("high", 9), ("higher", 30)):
            publish(channel, body, priority)
        channel.basic_reject(got(channel, 1)["higher"])
    with broker(*options) as node, connect(node.port) as connection:
        channel = connection.channel()
        method, properties, body = channel.basic_get("jobs")
        assert (body, method.redelivered, properties.headers) == (
            b"higher",
            True,
            {"x-acquired-count": 1, "x-delivery-count": 1},
        )
        assert [*got(channel, 2)] == ["high", "low"]
        assert channel.basic_get("jobs")[0] is None
        client = HttpClient(node)
        assert [each["messages"] for each in client.get(f"{QUEUE}/leases")] == [1]
