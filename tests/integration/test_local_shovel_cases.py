"""What RabbitMQ 4's own tests expect of shovels with the protocol `local`, of Warren and of RabbitMQ 4.3.6.

3.10.8 does not have them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.either_broker import (
    RABBITMQ,
    WARREN,
    Site,
    becomes,
    bound_queue,
    consumed,
    is_empty,
    site,
)
from tests.rabbitmq import is_installed

needs_rabbitmq = (pytest.mark.rabbitmq, pytest.mark.skipif(not is_installed(), reason="no RabbitMQ here"))
pytestmark = pytest.mark.slow
STREAM = {"x-queue-type": "stream"}
MODES = ("on-confirm", "on-publish", "no-ack")


@pytest.fixture(scope="module", params=[WARREN, pytest.param(RABBITMQ, marks=needs_rabbitmq)])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(request.param, tmp_path_factory.mktemp("broker")) as started:
        if started.answers == "rabbitmq":
            pytest.skip("RabbitMQ 3.10 has no local shovels")
        yield started


@pytest.fixture
def here(either: Site) -> Iterator[Site]:
    vhost = either.in_vhost("local")
    yield vhost
    vhost.remove()


def put(here: Site, **keys: object) -> int:
    """Set the shovel `test` from `src` to `dest`; the addresses are those of RabbitMQ's tests."""
    value = {"src-protocol": "local", "dest-protocol": "local", "src-uri": here.uri, "dest-uri": [here.uri]}
    value |= {key.replace("_", "-"): item for key, item in keys.items()}
    if "src-exchange" not in value:
        value.setdefault("src-queue", "src")
    if "dest-exchange" not in value:
        value.setdefault("dest-queue", "dest")
    return here.api.status(
        f"PUT /parameters/shovel/{here.at}/test",
        {"value": {key: item for key, item in value.items() if item is not None}},
    )


def shown(here: Site) -> dict[str, Any]:
    """The status of the shovel; an empty one if there is none."""
    found = here.api.get(f"/shovels/{here.at}")
    return dict(found[0]) if found else {"state": None}


def run(here: Site, **keys: object) -> None:
    assert put(here, **keys) == 201
    becomes(lambda: shown(here)["state"], "running")


def does_not_run(here: Site, **keys: object) -> None:
    """Set a shovel that cannot run, and that keeps its parameter."""
    assert put(here, **keys) == 201
    becomes(lambda: shown(here)["state"], "terminated")
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        assert shown(here)["state"] != "running"
        time.sleep(0.05)
    assert here.api.status(f"GET /parameters/shovel/{here.at}/test") == 200


def publish(channel: BlockingChannel, count: int = 1, key: str = "src", exchange: str = "") -> None:
    for _ in range(count):
        channel.basic_publish(exchange, key, b"hello")


def ready(channel: BlockingChannel, queue: str) -> int:
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def test_a_message_keeps_its_routing_key_if_no_destination_is_given(either: Site, here: Site) -> None:
    other = either.in_vhost("other")
    run(here, dest_uri=[other.uri], dest_queue=None)
    with other.channel() as there, here.channel() as channel:
        there.queue_declare("src", durable=True)
        publish(channel)
        assert consumed(there, "src", 1) == [b"hello"]
    other.remove()


def test_messages_are_published_to_an_exchange(here: Site) -> None:
    with here.channel() as channel:
        channel.exchange_declare("alt-exchange")
        queue = bound_queue(channel, "alt-exchange", "funky-routing-key")
        run(here, dest_exchange="alt-exchange", dest_exchange_key="funky-routing-key")
        publish(channel)
        assert consumed(channel, queue, 1) == [b"hello"]


def test_a_shovel_to_an_exchange_that_does_not_exist_runs(here: Site) -> None:
    run(here, dest_exchange="alt-exchange", dest_exchange_key="funky-routing-key")


@pytest.mark.parametrize("protocol", ["local", "amqp091"])
def test_a_shovel_continues_soon_when_its_missing_exchange_is_made(here: Site, protocol: str) -> None:
    ends = {"src_protocol": protocol, "dest_protocol": protocol}
    with here.channel() as channel:
        for queue in ("src", "dest"):
            channel.queue_declare(queue, durable=True)
        run(here, **ends, dest_exchange="dest-ex", dest_exchange_key="dest-key")
        publish(channel)
        # Between two attempts, so that no message comes before the binding.
        becomes(lambda: shown(here)["state"], "terminated")
        channel.exchange_declare("dest-ex")
        channel.queue_bind("dest", "dest-ex", "dest-key")
        channel.basic_publish("", "src", b"hello!")
        began = time.monotonic()
        assert consumed(channel, "dest", 2) == [b"hello", b"hello!"]
        # As long as RabbitMQ's test waits. RabbitMQ itself pauses for up to the delay of 5 s.
        assert here.kind == RABBITMQ or time.monotonic() - began < 4


@pytest.mark.parametrize("end", ["src", "dest"])
def test_a_predeclared_queue_has_to_exist(here: Site, end: str) -> None:
    does_not_run(here, **{f"{end}_predeclared": True, "reconnect_delay": 1})
    with here.channel() as channel:
        channel.queue_declare(end, durable=True)
        becomes(lambda: shown(here)["state"], "running")
        publish(channel)
        assert consumed(channel, "dest", 1) == [b"hello"]


@pytest.mark.parametrize(("offset", "count"), [("first", 20), ("last", None)])
def test_a_stream_is_read_from_an_offset(here: Site, offset: str, count: int | None) -> None:
    with here.channel() as channel:
        channel.queue_declare("src", durable=True, arguments=STREAM)
        publish(channel, 20)
        run(here, src_predeclared=True, src_consumer_args={"x-stream-offset": offset})
        if count is None:
            # The last chunk, which has one message or more.
            becomes(lambda: ready(channel, "dest") > 0, True)
            count = ready(channel, "dest")
        assert len(consumed(channel, "dest", count)) == count
        assert is_empty(channel, "dest")
        publish(channel)
        assert consumed(channel, "dest", 1) == [b"hello"]


def test_messages_of_an_exchange_are_moved(here: Site) -> None:
    run(here, src_exchange="amq.direct", src_exchange_key="key")
    with here.channel() as channel:
        publish(channel, key="key", exchange="amq.direct")
        assert consumed(channel, "dest", 1) == [b"hello"]


def test_the_status_has_the_protocol_and_the_names(here: Site) -> None:
    run(here)
    found = shown(here)
    assert (found["src_protocol"], found["dest_protocol"]) == ("local", "local")
    assert (found["src_queue"], found["dest_queue"]) == ("src", "dest")
    here.clear("shovel", "test")
    run(
        here, src_exchange="amq.direct", src_exchange_key="carrots",
        dest_exchange="amq.fanout", dest_exchange_key="bunnies",
    )  # fmt: skip
    found = shown(here)
    assert (found["src_exchange"], found["src_exchange_key"]) == ("amq.direct", "carrots")
    assert (found["dest_exchange"], found["dest_exchange_key"]) == ("amq.fanout", "bunnies")
    assert "src_queue" not in found


@pytest.mark.parametrize("end", ["src", "dest"])
def test_an_end_is_a_queue_or_an_exchange(here: Site, end: str) -> None:
    both = {f"{end}_exchange": "amq.direct", f"{end}_exchange_key": "bunnies", f"{end}_queue": "q"}
    assert put(here, **both) == 400


def test_a_shovel_ends_after_the_length_of_its_queue(here: Site) -> None:
    with here.channel() as channel:
        for queue in ("src", "dest"):
            channel.queue_declare(queue, durable=True)
        publish(channel, 18)
        assert put(here, src_predeclared=True, src_delete_after="queue-length") == 201
        assert len(consumed(channel, "dest", 18)) == 18
        becomes(lambda: here.api.status(f"GET /parameters/shovel/{here.at}/test"), 404)
        publish(channel, 5)
        assert is_empty(channel, "dest")


def test_a_shovel_of_an_empty_queue_ends_at_once(here: Site) -> None:
    with here.channel() as channel:
        channel.queue_declare("src", durable=True)
    assert put(here, src_predeclared=True, src_delete_after="queue-length") == 201
    becomes(lambda: here.api.status(f"GET /parameters/shovel/{here.at}/test"), 404)
    becomes(lambda: shown(here)["state"], None)


def test_a_shovel_ends_after_a_number_of_messages_that_come_later(here: Site) -> None:
    with here.channel() as channel:
        channel.queue_declare("src", durable=True)
        publish(channel, 5)
        run(here, src_delete_after=10)
        assert len(consumed(channel, "dest", 5)) == 5
        publish(channel, 10)
        assert len(consumed(channel, "dest", 5)) == 5
        becomes(lambda: here.api.status(f"GET /parameters/shovel/{here.at}/test"), 404)
        assert is_empty(channel, "dest")
        assert ready(channel, "src") == 5


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("arguments", [{}, STREAM], ids=["classic", "stream"])
def test_a_thousand_messages_are_moved_and_counted(here: Site, mode: str, arguments: dict[str, str]) -> None:
    with here.channel() as channel:
        for queue in ("src", "dest"):
            channel.queue_declare(queue, durable=True, arguments=arguments)
        run(here, src_predeclared=True, dest_predeclared=True, ack_mode=mode)
        publish(channel, 1000)
        becomes(lambda: shown(here)["forwarded"], 1000)
        if arguments:
            channel.basic_qos(prefetch_count=100)
            offset = {"x-stream-offset": "first"}
            deliveries = channel.consume("dest", arguments=offset, inactivity_timeout=30)
            for _ in range(1000):
                method, _, body = next(deliveries)
                assert body == b"hello"
                channel.basic_ack(method.delivery_tag)
            channel.cancel()
        else:
            assert len(consumed(channel, "dest", 1000)) == 1000


def test_what_a_full_queue_accepts_is_moved(here: Site) -> None:
    with here.channel() as channel:
        full = {"x-max-length": 1, "x-overflow": "reject-publish"}
        channel.queue_declare("dest", durable=True, arguments=full)
        channel.queue_declare("src", durable=True)
        publish(channel, 5)
        run(here, dest_predeclared=True, ack_mode="on-confirm")
        assert consumed(channel, "dest", 1) == [b"hello"]
        # There is room for the next.
        assert consumed(channel, "dest", 1) == [b"hello"]


@pytest.mark.parametrize("ends", [("local", "amqp091"), ("amqp091", "local")])
def test_an_end_speaks_amqp_and_the_other_is_local(here: Site, ends: tuple[str, str]) -> None:
    run(here, src_protocol=ends[0], dest_protocol=ends[1])
    with here.channel() as channel:
        publish(channel)
        assert consumed(channel, "dest", 1) == [b"hello"]


def test_a_shovel_whose_source_is_deleted_says_so(here: Site) -> None:
    run(here)
    with here.channel() as channel:
        publish(channel)
        assert consumed(channel, "dest", 1) == [b"hello"]
        channel.queue_delete("src")
        if here.kind == RABBITMQ:
            # It starts again at once, and declares the queue, before anybody can see its state.
            becomes(lambda: here.api.status(f"GET /queues/{here.at}/src"), 200)
            return
        becomes(lambda: shown(here)["state"], "terminated")
        assert "cancelled" in shown(here)["reason"]


def test_a_virtual_host_without_permissions_is_refused(either: Site, here: Site) -> None:
    other = either.in_vhost("other")
    assert here.api.status("DELETE /permissions/other/guest") == 204
    does_not_run(here, src_uri=other.uri, dest_uri=other.uri)
    other.remove()


def test_a_wrong_password_is_refused(here: Site) -> None:
    uri = here.uri.replace("guest:guest@", "guest:forgotmypassword@")
    does_not_run(here, src_uri=uri, dest_uri=uri)


def test_an_address_without_a_host_is_this_broker(either: Site) -> None:
    run(either, src_uri="amqp://", dest_uri="amqp://")
    either.clear("shovel", "test")
    for queue in ("src", "dest"):
        assert either.api.status(f"DELETE /queues/%2f/{queue}") == 204
