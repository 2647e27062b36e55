"""Messages of quorum queues beyond the delivery limit are kept, listed, released and removed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.test_serve import connect

QUEUE = "/warren/queues/%2F/limited"


@pytest.fixture(params=["on disk", "in memory"])
def limited(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker with the queue `limited`, in which three of four messages exceeded the delivery limit of 1."""
    options = ["--data-dir", str(tmp_path / "data")] if request.param == "on disk" else ["--in-memory"]
    with broker(*options) as process:
        exceed_limit(process)
        yield process


def exceed_limit(process: BrokerProcess) -> None:
    """Publish four messages to the queue `limited`, and return three of them twice."""
    with connect(process.port) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        arguments = {"x-queue-type": "quorum", "x-delivery-limit": 1}
        channel.queue_declare("limited", durable=True, arguments=arguments)
        for number in range(4):
            channel.basic_publish("", "limited", b"message %d" % number)
        for _ in range(2):
            reject(channel, 3)


def reject(channel: BlockingChannel, count: int) -> None:
    """Take the first `count` messages, and return them."""
    for tag in [channel.basic_get("limited")[0].delivery_tag for _ in range(count)]:
        channel.basic_reject(tag)


def bodies(client: HttpClient) -> dict[int, str]:
    """The quarantined messages: position -> body."""
    return {each["position"]: each["payload"] for each in peeked(client)}


def peeked(client: HttpClient, state: str = "quarantined") -> list[dict[str, Any]]:
    """The messages of the queue in `state`."""
    found: list[dict[str, Any]] = client.get(f"{QUEUE}/messages?state={state}")["messages"]
    return found


def test_messages_beyond_the_limit_are_counted_and_listed_and_not_ready(limited: BrokerProcess) -> None:
    client = HttpClient(limited)
    assert list(bodies(client).values()) == ["message 0", "message 1", "message 2"]
    assert [each["delivery_count"] for each in peeked(client)] == [2, 2, 2]
    queue = client.get("/queues/%2F/limited")
    assert (queue["messages_quarantined"], queue["messages_ready"]) == (3, 1)
    assert (queue["messages"], queue["message_bytes"]) == (4, 4 * len("message 0"))
    assert [each["payload"] for each in peeked(client, "ready")] == ["message 3"]


def test_a_released_message_is_at_its_place_and_redelivered(limited: BrokerProcess) -> None:
    client = HttpClient(limited)
    first, second, _ = bodies(client)
    answer = client.ask(f"POST {QUEUE}/quarantine/release", {"positions": [second, second + 100]}).value
    assert answer == {"released": 1, "remaining": 0, "missing": 1}
    assert [each["payload"] for each in peeked(client, "ready")] == ["message 1", "message 3"]
    with connect(limited.port) as connection:
        channel = connection.channel()
        method, _, body = channel.basic_get("limited")
        assert (method.redelivered, body) == (True, b"message 1")
        # It can come back as often as the limit says before it is kept again.
        channel.basic_reject(method.delivery_tag)
    assert next(iter(bodies(client))) == first
    assert client.ask(f"POST {QUEUE}/quarantine/release", {"all": True}).value["missing"] == 0
    assert bodies(client) == {}
    assert len(peeked(client, "ready")) == 4


def test_a_release_into_a_full_queue_says_how_many_remain(limited: BrokerProcess) -> None:
    client = HttpClient(limited)
    policy = {"pattern": "^limited$", "definition": {"max-length": 2, "overflow": "reject-publish"}}
    client.ask("PUT /policies/%2F/short", policy)
    answer = client.ask(f"POST {QUEUE}/quarantine/release", {"all": True}).value
    assert answer == {"released": 1, "remaining": 2, "missing": 0}
    assert len(peeked(client, "ready")) == 2


def test_a_removed_message_is_gone(limited: BrokerProcess) -> None:
    client = HttpClient(limited)
    first, *_ = bodies(client)
    removed = client.ask(f"POST {QUEUE}/quarantine/remove", {"positions": [first]}).value
    assert removed == {"removed": 1, "missing": 0}
    assert list(bodies(client).values()) == ["message 1", "message 2"]
    assert client.ask(f"POST {QUEUE}/quarantine/remove", {"all": True}).value["removed"] == 2
    assert client.get("/queues/%2F/limited")["messages_quarantined"] == 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "give positions or all"),
        ({"positions": [1], "all": True}, "not both"),
        ({"positions": 3}, "must be a list"),
        ({"positions": [-1]}, "must be a number"),
        ({"positions": ["1"]}, "must be a number"),
    ],
)
def test_a_choice_that_is_not_clear_is_refused(limited: BrokerProcess, body: object, reason: str) -> None:
    status, text = HttpClient(limited).refusal(f"POST {QUEUE}/quarantine/release", body)
    assert status == 400
    assert reason in str(text)


def test_quarantined_messages_survive_a_kill_and_so_does_their_release(tmp_path: Path) -> None:
    options = ("--data-dir", str(tmp_path / "data"))
    with broker(*options) as process:
        exceed_limit(process)
        with connect(process.port) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            # What was written before a confirm is on the disk.
            channel.basic_publish("", "limited", b"last")
        process.process.kill()
        process.process.wait(10)
    with broker(*options) as process:
        client = HttpClient(process)
        assert list(bodies(client).values()) == ["message 0", "message 1", "message 2"]
        first, second, _ = bodies(client)
        assert client.ask(f"POST {QUEUE}/quarantine/release", {"positions": [first]}).value["released"] == 1
        assert client.ask(f"POST {QUEUE}/quarantine/remove", {"positions": [second]}).value["removed"] == 1
        with connect(process.port) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.basic_publish("", "limited", b"latest")
        process.process.kill()
        process.process.wait(10)
    with broker(*options) as process:
        client = HttpClient(process)
        assert list(bodies(client).values()) == ["message 2"]
        ready = [each["payload"] for each in peeked(client, "ready")]
        assert ready == ["message 0", "message 3", "last", "latest"]
