"""The event exchange of a running broker: a consumer receives what other clients do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.stream_client import RawStreamClient
from tests.patience import patient

from warren.wire.streams import commands

EXCHANGE = "amq.rabbitmq.event"
RECEIVE_S = patient(10)


class Listener:
    """A consumer that is bound to all events."""

    def __init__(self, channel: BlockingChannel) -> None:
        self._channel = channel
        self._queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(self._queue, EXCHANGE, "#")
        self.until("binding.created")

    def until(self, key: str) -> list[tuple[str, dict[str, Any]]]:
        """The events up to one with `key`, which must arrive."""
        found = []
        for method, properties, body in self._channel.consume(
            self._queue, auto_ack=True, inactivity_timeout=RECEIVE_S
        ):
            assert method is not None, found
            assert (body, properties.delivery_mode) == (b"", 2)
            assert properties.headers["timestamp_in_ms"] // 1000 == properties.timestamp
            found.append((method.routing_key, properties.headers))
            if method.routing_key == key:
                break
        self._channel.cancel()
        return found


@contextmanager
def connected(node: BrokerProcess, **more: Any) -> Iterator[pika.BlockingConnection]:
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port, **more))
    yield connection
    if connection.is_open:
        connection.close()


@pytest.fixture
def listener(node: BrokerProcess) -> Iterator[Listener]:
    with connected(node) as connection:
        yield Listener(connection.channel())


def keys(found: list[tuple[str, dict[str, Any]]]) -> list[str]:
    # The consumers of the listener cause events as well.
    return [key for key, _ in found if not key.startswith("consumer.")]


def test_an_amqp_client_causes_events_from_login_to_close(node: BrokerProcess, listener: Listener) -> None:
    with connected(node, client_properties={"connection_name": "app"}) as connection:
        channel = connection.channel()
        channel.queue_declare("heard", arguments={"x-max-length": 5})
        channel.queue_delete("heard")
    found = listener.until("connection.closed")
    assert keys(found) == [
        "user.authentication.success", "connection.created", "channel.created", "queue.created",
        "queue.deleted", "channel.closed", "connection.closed",
    ]  # fmt: skip
    by_key = dict(found)
    created = by_key["connection.created"]
    assert (created["user_provided_name"], created["user"], created["protocol"]) == (
        "app",
        "guest",
        "{0,9,1}",
    )
    assert by_key["channel.created"]["connection"] == created["pid"]
    assert by_key["channel.closed"]["pid"] == by_key["channel.created"]["pid"]
    assert by_key["queue.created"]["arguments"] == ['{<<"x-max-length">>,signedint,5}']
    assert by_key["queue.deleted"]["user_who_performed_action"] == "guest"


def test_a_stream_client_causes_events_from_login_to_close(node: BrokerProcess, listener: Listener) -> None:
    port = node.ports["stream"]
    with pytest.raises(OSError):  # noqa: PT011, it is closed or reset
        RawStreamClient(port, password="s3cret-marker")
    raw = RawStreamClient(port, connection_name="reader")
    raw.ask(commands.Create("told", {}))
    raw.subscribe(7, "told")
    raw.ask(commands.Delete("told"))
    raw.close()
    found = listener.until("connection.closed")
    reported = [
        (key, facts) for key, facts in found if facts.get("consumer_tag", "stream").startswith("stream")
    ]
    assert [key for key, _ in reported] == [
        "user.authentication.failure", "user.authentication.success", "connection.created",
        "queue.created", "consumer.deleted", "queue.deleted", "connection.closed",
    ]  # fmt: skip
    by_key = dict(reported)
    logins = [facts["protocol"] for key, facts in reported if key.startswith(("user.", "connection.created"))]
    assert logins == ["stream"] * 3
    assert bytes(by_key["user.authentication.failure"]["error"]) == b"user 'guest' - invalid credentials"
    created, closed = by_key["connection.created"], by_key["connection.closed"]
    assert (created["user_provided_name"], created["name"], created["port"]) == ("reader", raw.name, port)
    assert closed["pid"] == created["pid"] == by_key["consumer.deleted"]["channel"]
    assert "s3cret-marker" not in str(found)


def test_a_failed_login_causes_an_event_without_the_password(node: BrokerProcess, listener: Listener) -> None:
    wrong = pika.PlainCredentials("guest", "s3cret-marker")
    with pytest.raises(pika.exceptions.AMQPError), connected(node, credentials=wrong):
        pass
    found = listener.until("user.authentication.failure")
    assert bytes(found[-1][1]["error"]) == b"user 'guest' - invalid credentials"
    assert "s3cret-marker" not in str(found)


def test_an_event_of_an_api_request_names_its_user(client: HttpClient, listener: Listener) -> None:
    assert client.status("PUT /users/carol", {"password": "s3cret-marker", "tags": "management"}) == 201
    assert client.status("PUT /permissions/%2F/carol", {"configure": "", "write": "", "read": "^a"}) == 201
    body = {"pattern": "^a", "definition": {"max-length": 10}, "priority": 1, "apply-to": "queues"}
    assert client.status("PUT /policies/%2F/short", body) == 201
    assert client.status("PUT /queues/%2F/byhttp", {}) == 201
    assert client.status("DELETE /queues/%2F/byhttp") == 204
    assert client.status("DELETE /policies/%2F/short") == 204
    assert client.status("DELETE /users/carol") == 204
    found = listener.until("user.deleted")
    assert keys(found) == [
        "user.created", "user.tags.set", "permission.created", "policy.set", "queue.created",
        "queue.deleted", "policy.cleared", "user.deleted",
    ]  # fmt: skip
    assert {facts["user_who_performed_action"] for key, facts in found} == {"guest"}
    assert "s3cret-marker" not in str(found)
    policy = dict(found)["policy.set"]
    assert (policy["definition"], policy["priority"]) == ({"max-length": 10}, 1)


def test_the_event_exchange_is_in_the_configured_vhost_and_keeps_its_bindings(tmp_path: Path) -> None:
    config = tmp_path / "warren.conf"
    data = ("--data-dir", str(tmp_path / "data"))
    config.write_text("default_vhost = /\nevent_exchange.vhost = /\nevent_exchange.protocol = amqp_0_9_1\n")
    with broker(*data, config=config) as node:
        with connected(node) as connection:
            channel = connection.channel()
            channel.queue_declare("kept", durable=True)
            channel.queue_bind("kept", EXCHANGE, "user.#")
        assert node.stop() == 0
    with broker(*data, config=config) as node, connected(node) as connection:
        channel = connection.channel()
        method, properties, _ = next(iter(channel.consume("kept", inactivity_timeout=RECEIVE_S)))
        assert method.routing_key == "user.authentication.success"
        assert properties.headers["name"] == "guest"
