"""What RabbitMQ's own tests of shovels expect, of Warren, and of RabbitMQ 3.10.8 and 4.3.6."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.api import HttpClient, quoted
from tests.integration.either_broker import (
    ALL,
    RABBITMQ,
    WARREN,
    Site,
    becomes,
    bound_queue,
    is_empty,
    site,
)
from tests.rabbitmq import is_installed

needs_rabbitmq = (pytest.mark.rabbitmq, pytest.mark.skipif(not is_installed(), reason="no RabbitMQ here"))
pytestmark = pytest.mark.slow
# RabbitMQ's tests wait for so long for a message.
SOON_S = 4


@pytest.fixture(scope="module", params=[WARREN, pytest.param(RABBITMQ, marks=needs_rabbitmq)])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(request.param, tmp_path_factory.mktemp("broker")) as started:
        yield started


@pytest.fixture
def here(either: Site) -> Iterator[Site]:
    vhost = either.in_vhost("cases")
    yield vhost
    vhost.remove()


def status(here: Site) -> dict[str, Any] | None:
    """The shovel `test`; None if there is none."""
    found = [one for one in here.api.get(f"/shovels/{here.at}") if one["name"] == "test"]
    assert len(found) <= 1
    return found[0] if found else None


def state(here: Site) -> str | None:
    found = status(here)
    return None if found is None else str(found["state"])


def start(here: Site, **keys: object) -> None:
    """Set the shovel `test`; `_` in the names of its keys stands for `-`."""
    ends = {"src-uri": here.uri, "dest-uri": [here.uri]}
    here.set("shovel", "test", ends | {key.replace("_", "-"): value for key, value in keys.items()})


def run(here: Site, **keys: object) -> None:
    """Set the shovel `test`, and wait until it runs."""
    start(here, **keys)
    becomes(lambda: state(here), "running")


def taken(channel: BlockingChannel, queue: str) -> tuple[Any, bytes]:
    """Properties and body of the next message of `queue`."""
    deliveries = channel.consume(queue, inactivity_timeout=SOON_S)
    method, properties, body = next(deliveries)
    assert body is not None, f"nothing has arrived in {queue}"
    channel.basic_ack(method.delivery_tag)
    channel.cancel()
    return properties, body


def passes(channel: BlockingChannel, source: str, queue: str, exchange: str = "") -> Any:
    """Publish to `source`, and take the message from `queue`; returns its properties."""
    body = str(time.monotonic()).encode()
    channel.basic_publish(exchange, source, body)
    properties, found = taken(channel, queue)
    assert found == body
    return properties


def count(here: Site, queue: str) -> int:
    with here.channel() as channel:
        return int(channel.queue_declare(queue, passive=True).method.message_count)


@pytest.mark.parametrize("mode", ["on-confirm", "on-publish", "no-ack"])
def test_a_shovel_moves_messages_with_every_ack_mode(here: Site, mode: str) -> None:
    run(here, src_queue="src", dest_queue="dest", ack_mode=mode)
    with here.channel() as channel:
        for _ in range(10):
            passes(channel, "src", "dest")


@pytest.mark.parametrize("properties", [{"cluster_id": "x"}, {}, []])
def test_publish_properties_are_set(here: Site, properties: object) -> None:
    run(here, src_queue="src", dest_queue="dest", publish_properties=properties)
    with here.channel() as channel:
        expected = properties.get("cluster_id") if isinstance(properties, dict) else None
        assert passes(channel, "src", "dest").cluster_id == expected


def test_headers_are_added_as_the_definition_of_the_moment_says(here: Site) -> None:
    with here.channel() as channel:
        run(here, src_queue="src", dest_queue="dest")
        assert not passes(channel, "src", "dest").headers
        run(here, src_queue="src", dest_queue="dest", add_forward_headers=True, add_timestamp_header=True)
        now = int(time.time())
        headers = passes(channel, "src", "dest").headers
        assert list(headers) == ["x-shovelled", "x-shovelled-timestamp"]
        assert now <= headers["x-shovelled-timestamp"] <= now + 2
        (entry,) = headers["x-shovelled"]
        assert (entry["shovel-type"], entry["shovel-name"], entry["shovel-vhost"]) == (
            "dynamic", "test", "cases",
        )  # fmt: skip
        run(here, src_queue="src", dest_queue="dest", add_timestamp_header=True)
        assert list(passes(channel, "src", "dest").headers) == ["x-shovelled-timestamp"]
        run(here, src_queue="src", dest_queue="dest", add_forward_headers=True)
        assert list(passes(channel, "src", "dest").headers) == ["x-shovelled"]


def test_a_shovel_binds_to_an_exchange_and_publishes_with_a_key_of_its_own(here: Site) -> None:
    with here.channel() as channel:
        queue = bound_queue(channel, "amq.topic", "test-key")
        source = {"src_exchange": "amq.direct", "src_exchange_key": "test-key"}
        run(here, **source, dest_exchange="amq.topic")
        passes(channel, "test-key", queue, "amq.direct")
        run(here, **source, dest_exchange="amq.topic", dest_exchange_key="new-key")
        channel.basic_publish("amq.direct", "test-key", b"hello")
        assert is_empty(channel, queue)
        channel.queue_bind(queue, "amq.topic", "new-key")
        passes(channel, "test-key", queue, "amq.direct")


def test_a_shovel_continues_soon_when_its_connections_are_closed(here: Site) -> None:
    # With the delay that a shovel has by default, which is longer than RabbitMQ's test waits for the message.
    run(here, src_queue="src", dest_queue="dest")
    with here.channel() as channel:
        passes(channel, "src", "dest")

        def close() -> bool:
            names = [
                connection["name"]
                for connection in here.api.get("/connections")
                if connection.get("user_provided_name") == "Shovel test"
            ]
            for name in names:
                assert here.api.status(f"DELETE /connections/{quoted(name)}") in (204, 404)
            return bool(names)

        becomes(close, True)
        passes(channel, "src", "dest")
        becomes(lambda: state(here), "running")


def test_a_changed_shovel_moves_to_the_new_destination_and_a_cleared_one_nowhere(here: Site) -> None:
    with here.channel() as channel:
        run(here, src_queue="src", dest_queue="dest")
        passes(channel, "src", "dest")
        run(here, src_queue="src", dest_queue="dest2")
        passes(channel, "src", "dest2")
        assert is_empty(channel, "dest")
        here.clear("shovel", "test")
        assert status(here) is None
        passes(channel, "src", "src")
        assert is_empty(channel, "dest")
        assert is_empty(channel, "dest2")


@pytest.mark.parametrize(("mode", "after", "stay"), [
    ("on-confirm", 0, 100), ("on-confirm", 50, 50), ("on-confirm", "queue-length", 0),
    ("on-publish", 0, 100), ("on-publish", 50, 50), ("on-publish", "queue-length", 0),
    ("no-ack", "queue-length", 0),
])  # fmt: skip
@pytest.mark.parametrize("key", ["delete_after", "src_delete_after"])
def test_a_shovel_deletes_itself_after_so_many_messages(
    here: Site, mode: str, after: object, stay: int, key: str
) -> None:
    with here.channel() as channel:
        channel.queue_declare("src", durable=True)
        for _ in range(100):
            channel.basic_publish("", "src", b"hello")
        start(here, src_queue="src", dest_queue="dest", src_prefetch_count=50, ack_mode=mode, **{key: after})
        becomes(lambda: here.api.status(f"GET /parameters/shovel/{here.at}/test"), 404)
        becomes(lambda: status(here), None)
        becomes(lambda: (count(here, "dest"), count(here, "src")), (100 - stay, stay))


@pytest.mark.parametrize(("mode", "stay"), [("on-confirm", 5), ("on-publish", 0)])
def test_messages_that_a_full_queue_refuses_count_as_moved(here: Site, mode: str, stay: int) -> None:
    with here.channel() as channel:
        channel.queue_declare("src", durable=True)
        full = {"x-overflow": "reject-publish", "x-max-length": 5}
        channel.queue_declare("dest", durable=True, arguments=full)
        for _ in range(10):
            channel.basic_publish("", "src", b"hello")
        start(here, src_queue="src", dest_queue="dest", ack_mode=mode, src_delete_after=10)
        becomes(lambda: status(here), None)
        becomes(lambda: (count(here, "dest"), count(here, "src")), (5, stay))


def test_a_stream_is_the_source_of_a_shovel(here: Site) -> None:
    run(
        here, src_queue="src", dest_queue="dest", src_queue_args={"x-queue-type": "stream"},
        src_consumer_args={"x-stream-offset": "first"},
    )  # fmt: skip
    with here.channel() as channel:
        passes(channel, "src", "dest")


def test_a_stream_is_the_destination_of_a_shovel(here: Site) -> None:
    if here.answers == "rabbitmq":
        pytest.skip("RabbitMQ 3.10.8 answers 500 to these arguments; later versions have this test")
    arguments = {"x-queue-type": "stream", "x-max-age": "12h"}
    run(here, src_queue="src", dest_queue="dest", dest_queue_args=arguments)
    with here.channel() as channel:
        channel.basic_publish("", "src", b"hello")
        becomes(lambda: count(here, "src"), 0)


def test_a_message_with_a_user_id_passes_a_shovel_inside_a_broker(here: Site) -> None:
    here.api.ask("PUT /users/hare", {"password": "hare", "tags": ""})
    assert here.api.status("PUT /permissions/cases/hare", ALL) in (201, 204)
    run(here, src_uri="amqp:///cases", dest_uri="amqp:///cases", src_queue="src", dest_queue="dest")
    with here.channel("hare") as channel:
        channel.basic_publish("", "src", b"hello", pika.BasicProperties(user_id="hare"))
        properties, _ = taken(channel, "dest")
        assert properties.user_id == "hare"


def test_the_status_has_the_names_of_queues_and_exchanges(here: Site) -> None:
    run(here, src_queue="src", dest_queue="dest")
    shown = status(here)
    assert shown is not None
    assert (shown["src_queue"], shown["dest_queue"], shown["type"]) == ("src", "dest", "dynamic")
    assert (shown["src_protocol"], shown["dest_protocol"]) == ("amqp091", "amqp091")
    assert (shown["src_uri"], shown["dest_uri"]) == (here.shown_uri, here.shown_uri)
    run(
        here, src_exchange="amq.direct", src_exchange_key="carrots",
        dest_exchange="amq.fanout", dest_exchange_key="bunnies",
    )  # fmt: skip
    becomes(lambda: (status(here) or {}).get("src_exchange"), "amq.direct")
    shown = status(here)
    assert shown is not None
    assert (shown["src_exchange_key"], shown["dest_exchange"]) == ("carrots", "amq.fanout")
    assert shown["dest_exchange_key"] == "bunnies"


@pytest.mark.parametrize("wrong", ["source", "destination"])
def test_a_shovel_whose_user_is_refused_does_not_run_and_keeps_its_parameter(here: Site, wrong: str) -> None:
    uri = here.uri.replace("guest:guest@", "guest:forgotmypassword@")
    ends = {"src_uri" if wrong == "source" else "dest_uri": uri}
    start(here, src_queue="src", dest_queue="dest", **ends)
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        assert state(here) in ("starting", "terminated")
        time.sleep(0.1)
    assert here.api.status(f"GET /parameters/shovel/{here.at}/test") == 200


def test_shovels_are_listed_for_users_with_permissions_in_their_virtual_host(either: Site) -> None:
    either.api.ask("PUT /users/admin", {"password": "admin", "tags": "administrator"})
    either.api.ask("PUT /users/mon", {"password": "mon", "tags": "monitoring"})
    v = either.in_vhost("v")
    for user in ("admin", "mon"):
        assert either.api.status(f"PUT /permissions/v/{user}", ALL) in (201, 204)
    for one in (either, v):
        value = {"src-uri": "amqp://", "dest-uri": "amqp://", "src-queue": "test", "dest-queue": "test2"}
        one.set("shovel", "my-dynamic", {"src-protocol": "amqp091", "dest-protocol": "amqp091", **value})
        long = {"value": {**value, "dest-queue": "q" * 440}}
        assert one.api.status(f"PUT /parameters/shovel/{one.at}/my-dynamic", long) == 400
    expected = {
        "guest": (["/", "v"], ["/"], ["v"]),
        "admin": (["v"], [], ["v"]),
        "mon": (["v"], [], ["v"]),
    }
    for user, lists in expected.items():
        client = HttpClient(either, f"{user}:{user}")
        for path, vhosts in zip(("/shovels", "/shovels/%2f", "/shovels/v"), lists, strict=True):
            found = client.get(path)
            assert [(one["name"], one["vhost"], one["type"]) for one in found] == [
                ("my-dynamic", vhost, "dynamic") for vhost in vhosts
            ]
        client.close()
    either.clear("shovel", "my-dynamic")
    v.remove()
    for queue in ("test", "test2"):
        either.api.status(f"DELETE /queues/%2f/{queue}")
    for user in ("admin", "mon"):
        assert either.api.status(f"DELETE /users/{user}") == 204
