"""Queues of Warren that are federated with those of other brokers, RabbitMQ and Warren, by policy."""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.cut_proxy import cut_proxy
from tests.integration.federation import (
    channel_at,
    consumer_count,
    eventually,
    federate_queues,
    rabbitmq,
    ready_count,
)  # fmt: skip
from tests.long_params import long_params
from tests.rabbitmq import RabbitMQ, is_installed
from tests.warren_process import free_port

MANY = 20_000
PERSISTENT = pika.BasicProperties(delivery_mode=2)
needs_rabbitmq = (pytest.mark.rabbitmq, pytest.mark.skipif(not is_installed(), reason="no RabbitMQ here"))


def federate(
    node: BrokerProcess,
    uris: dict[str, str],
    *,
    pattern: str = "^fed",
    **settings: object,
) -> None:
    """Federate the queues of `node` that match `pattern` with upstreams: their URIs by name."""
    client = HttpClient(node)
    for name, uri in uris.items():
        value = {"uri": uri, "reconnect-delay": 1, **settings}
        path = f"/parameters/federation-upstream/%2F/{name}"
        assert client.status(f"PUT {path}", {"value": value}) in (201, 204)
    definition = {"federation-upstream-set": "all"}
    policy = {"pattern": pattern, "apply-to": "queues", "definition": definition}
    assert client.status("PUT /policies/%2F/federated-queues", policy) in (201, 204)
    client.close()


def links(node: BrokerProcess) -> list[dict[str, Any]]:
    client = HttpClient(node)
    found = client.get("/federation-links")
    client.close()
    return list(found)


def wait_running(node: BrokerProcess, count: int) -> None:
    """Wait until `count` links run."""
    eventually(lambda: [link["status"] for link in links(node)] == ["running"] * count)


def fill(port: int, queue: str, count: int, *, vhost: str = "/", prefix: bytes = b"") -> None:
    """Publish persistent messages numbered 0 … to the durable `queue`, all of them confirmed."""
    with channel_at(port, vhost, confirms=False) as channel:
        channel.queue_declare(queue, durable=True)
        before = ready_count(channel, queue)
        channel.tx_select()
        for number in range(count):
            channel.basic_publish("", queue, prefix + b"%d" % number, PERSISTENT)
            if number % 1000 == 999:
                channel.tx_commit()
        channel.tx_commit()
        assert ready_count(channel, queue) == before + count


class Consumer:
    """Consumes `queue`, and counts how often it received each body."""

    def __init__(self, channel: Any, queue: str, *, prefetch: int = 100, priority: int = 0) -> None:
        self.channel = channel
        self.bodies: list[bytes] = []
        self.properties: list[Any] = []
        channel.basic_qos(prefetch_count=prefetch)
        self.tag = channel.basic_consume(queue, self._receive, arguments={"x-priority": priority})

    def _receive(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self.bodies.append(body)
        self.properties.append(properties)
        channel.basic_ack(method.delivery_tag)

    def has(self, count: int) -> bool:
        """True if it received `count` different bodies."""
        self.channel.connection.process_data_events(0)
        return len(set(self.bodies)) >= count


@pytest.fixture(scope="module")
def here() -> Iterator[BrokerProcess]:
    with broker() as started:
        yield started


@pytest.fixture(scope="module")
def other() -> Iterator[RabbitMQ]:
    with (
        tempfile.TemporaryDirectory(prefix="warren-rabbitmq-") as folder,
        rabbitmq(Path(folder)) as started,
    ):
        yield started


@pytest.fixture(params=["warren", pytest.param("rabbitmq", marks=needs_rabbitmq)])
def there(request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of an upstream of either kind."""
    if request.param == "rabbitmq":
        yield request.getfixturevalue("other").port
    else:
        with broker() as started:
            yield started.port


@contextmanager
def federated(node: BrokerProcess, name: str, uri: str, **settings: object) -> Iterator[str]:
    """A queue of `node` that is federated with one upstream, until the end of the block."""
    federate(node, {"u": uri}, pattern=f"^{name}$", **settings)
    with channel_at(node.port) as channel:
        channel.queue_declare(name, durable=True)
        wait_running(node, 1)
        yield name
        channel.queue_delete(name)
    client = HttpClient(node)
    client.ask("DELETE /policies/%2F/federated-queues")
    client.ask("DELETE /parameters/federation-upstream/%2F/u")
    client.close()


def test_messages_are_pulled_only_while_a_consumer_wants_them(here: BrokerProcess, there: int) -> None:
    with (
        channel_at(there) as upstream,
        channel_at(here.port) as local,
        federated(here, "fed.demand", f"amqp://guest:guest@127.0.0.1:{there}") as queue,
    ):
        fill(there, queue, 1000)
        assert consumer_count(upstream, queue) == 0
        consumer = Consumer(local, queue, prefetch=1)
        eventually(lambda: consumer.has(1))
        # Not 1,000 more, as RabbitMQ has them brought.
        eventually(lambda: consumer.has(20))
        local.basic_cancel(consumer.tag)
        eventually(lambda: consumer_count(upstream, queue) == 0)
        left = ready_count(upstream, queue)
        assert 900 < left <= 1000 - 20
        assert len(consumer.bodies) + ready_count(local, queue) + left == 1000
        headers = consumer.properties[0].headers
        assert headers["x-received-from"] == [
            {
                "uri": f"amqp://127.0.0.1:{there}",
                "queue": queue,
                "redelivered": False,
                "visit-count": 1,
            }
        ]
        assert (headers["x-original-exchange"], headers["x-original-routing-key"]) == ("", queue)
        upstream.queue_delete(queue)


def test_consumers_of_the_upstream_come_first(here: BrokerProcess, there: int) -> None:
    with (
        channel_at(there) as upstream,
        channel_at(here.port) as local,
        federated(here, "fed.first", f"amqp://guest:guest@127.0.0.1:{there}") as queue,
    ):
        away = Consumer(local, queue)
        eventually(lambda: consumer_count(upstream, queue) == 1)
        near = Consumer(upstream, queue)
        for number in range(100):
            upstream.basic_publish("", queue, b"%d" % number)
        eventually(lambda: near.has(100))
        assert not away.has(1)
        upstream.basic_cancel(near.tag)
        for number in range(100, 200):
            upstream.basic_publish("", queue, b"%d" % number)
        eventually(lambda: away.has(100))
        upstream.queue_delete(queue)


def test_messages_of_two_upstreams_are_shared_by_consumers_at_all_sites(there: int) -> None:
    with broker() as here, broker() as second:
        federate(
            here,
            {
                "a": f"amqp://guest:guest@127.0.0.1:{there}",
                "b": f"amqp://guest:guest@127.0.0.1:{second.port}",
            },
        )
        with (
            channel_at(here.port) as local,
            channel_at(there) as first_channel,
            channel_at(second.port) as second_channel,
        ):
            local.queue_declare("fed.two", durable=True)
            wait_running(here, 2)
            fill(there, "fed.two", 2000, prefix=b"a")
            fill(second.port, "fed.two", 2000, prefix=b"b")
            consumers = [
                Consumer(one, "fed.two", prefetch=5) for one in (local, first_channel, second_channel)
            ]
            eventually(lambda: sum(len(set(one.bodies)) for one in consumers if one.has(0)) == 4000)
            bodies = Counter(body for one in consumers for body in one.bodies)
            assert len(bodies) == 4000
            assert max(bodies.values()) == 1
            assert {body[:1] for body in consumers[0].bodies} == {b"a", b"b"}
            first_channel.queue_delete("fed.two")


def test_nothing_is_lost_when_the_link_is_cut_again_and_again(here: BrokerProcess, there: int) -> None:
    with (
        cut_proxy(there) as proxy,
        channel_at(there) as upstream,
        channel_at(here.port) as local,
        federated(
            here, "fed.cut", f"amqp://guest:guest@127.0.0.1:{proxy.port}", **{"prefetch-count": 200}
        ) as queue,
    ):
        fill(there, queue, MANY)
        consumer = Consumer(local, queue)
        next_cut = 2000

        def has_all() -> bool:
            nonlocal next_cut
            if len(consumer.bodies) >= next_cut:
                next_cut += 4000
                proxy.cut()
            return consumer.has(MANY)

        eventually(has_all, 180)
        counts = Counter(consumer.bodies)
        assert len(counts) == MANY
        # What was published here and not yet acknowledged there comes again: less than a window for each cut.
        duplicates = sum(counts.values()) - MANY
        print(f"{proxy.cuts} cuts, {duplicates} duplicates")
        assert proxy.cuts >= 4
        assert duplicates <= proxy.cuts * 400
        eventually(lambda: ready_count(upstream, queue) == 0)
        upstream.queue_delete(queue)


@pytest.mark.parametrize("victim", ["downstream", *long_params("upstream")])
def test_nothing_is_lost_when_a_broker_is_killed(victim: str, tmp_path: Path) -> None:
    ports = {"downstream": free_port(), "upstream": free_port()}
    folders = {name: tmp_path / name for name in ports}

    @contextmanager
    def started(name: str) -> Iterator[BrokerProcess]:
        arguments = ("--port", str(ports[name]), "--data-dir", str(folders[name]))
        with broker(*arguments) as node:
            yield node

    other = "upstream" if victim == "downstream" else "downstream"
    received: list[bytes] = []
    with started(other) as survivor:
        for attempt in range(4):
            with started(victim) as node:
                nodes = {victim: node, other: survivor}
                if not attempt:
                    federate(nodes["downstream"], {"u": f"amqp://guest:guest@127.0.0.1:{ports['upstream']}"})
                    with channel_at(ports["downstream"]) as channel:
                        channel.queue_declare("fed.kill", durable=True)
                    fill(ports["upstream"], "fed.kill", MANY)
                with suppressed_end(), channel_at(ports["downstream"]) as channel:
                    consumer = Consumer(channel, "fed.kill")
                    consumer.bodies = received
                    target = MANY if attempt == 3 else (attempt + 1) * MANY // 5
                    eventually(lambda c=consumer, t=target: c.has(t), 120)
                    if attempt < 3:
                        node.process.kill()
                        node.process.wait()
    counts = Counter(received)
    print(f"3 kills of the {victim}, {sum(counts.values()) - MANY} duplicates")
    assert len(counts) == MANY


@contextmanager
def suppressed_end() -> Iterator[None]:
    """A consumer whose broker was killed ends with an error."""
    try:
        yield
    except pika.exceptions.AMQPError:
        return


@pytest.mark.parametrize("kind", ["warren", pytest.param("rabbitmq", marks=needs_rabbitmq)])
def test_queues_that_are_federated_with_each_other_share_their_messages(
    here: BrokerProcess, kind: str, request: pytest.FixtureRequest
) -> None:
    uri = f"amqp://guest:guest@127.0.0.1:{here.port}"
    with broker() as second:
        if kind == "warren":
            port = second.port
            federate(second, {"back": uri}, pattern=r"^ring$")
        else:
            peer = request.getfixturevalue("other")
            port = peer.port
            federate_queues(peer, "^ring$", {"back": uri})
        with (
            federated(here, "ring", f"amqp://guest:guest@127.0.0.1:{port}"),
            channel_at(here.port) as local,
            channel_at(port) as away,
        ):
            away.queue_declare("ring", durable=True)
            fill(here.port, "ring", 1000, prefix=b"here")
            fill(port, "ring", 1000, prefix=b"there")
            consumers = [Consumer(one, "ring", prefetch=5) for one in (local, away)]
            eventually(lambda: sum(len(set(one.bodies)) for one in consumers if one.has(0)) == 2000)
            bodies = Counter(body for one in consumers for body in one.bodies)
            assert (len(bodies), max(bodies.values())) == (2000, 1)
            assert all(len(one.bodies) > 300 for one in consumers)
            time.sleep(0.5)
            assert ready_count(local, "ring") == ready_count(away, "ring") == 0
            away.queue_delete("ring")
