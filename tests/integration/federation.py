"""Two brokers of a federation for tests: RabbitMQ with its plugin, and what each says of the other."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError
from tests.integration.api import HttpClient, quoted
from tests.patience import patient
from tests.rabbitmq import RabbitMQ
from tests.warren_process import free_port

# A link of RabbitMQ waits for `reconnect-delay`, and the machine may be busy.
SETTLED_S_MAX = patient(60)

Value = TypeVar("Value")


@contextmanager
def rabbitmq(folder: Path, plugins: tuple[str, ...] = ("rabbitmq_federation",)) -> Iterator[RabbitMQ]:
    """A started RabbitMQ."""
    broker = RabbitMQ(folder, listen="127.0.0.1", plugins=plugins)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


@contextmanager
def managed_rabbitmq(folder: Path) -> Iterator[tuple[RabbitMQ, HttpClient]]:
    """A started RabbitMQ with federation, and its management API."""
    port = free_port()
    settings = f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {port}\n"
    plugins = ("rabbitmq_management", "rabbitmq_federation", "rabbitmq_federation_management")
    server = RabbitMQ(folder, listen="127.0.0.1", settings=settings, plugins=plugins)
    server.start()
    client = HttpClient(SimpleNamespace(ports={"http": port}))
    try:
        yield server, client
    finally:
        client.close()
        server.stop()


def eventually(found: Callable[[], Value], timeout_s: float = SETTLED_S_MAX) -> Value:
    """The result of `found` as soon as it is true."""
    deadline = time.monotonic() + timeout_s
    while not (result := found()):
        assert time.monotonic() < deadline, f"still {result!r}"
        time.sleep(0.05)
    return result


@contextmanager
def channel_at(port: int, vhost: str = "/", *, confirms: bool = True) -> Iterator[BlockingChannel]:
    """A channel of a connection to `port`; with confirms, each publish waits for its own."""
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, vhost))
    channel = connection.channel()
    if confirms:
        channel.confirm_delivery()
    yield channel
    with suppress(AMQPError):
        connection.close()


def federate(broker: RabbitMQ, upstream: str, port: int, pattern: str, **settings: object) -> None:
    """Let `broker` federate its exchanges with names that match `pattern` from the broker at `port`."""
    value = {"uri": f"amqp://guest:guest@127.0.0.1:{port}", "reconnect-delay": 1, **settings}
    broker.control("set_parameter", "federation-upstream", upstream, json.dumps(value))
    definition = json.dumps({"federation-upstream": upstream})
    broker.control("set_policy", "--apply-to", "exchanges", f"federate-{upstream}", pattern, definition)


def federate_queues(broker: RabbitMQ, pattern: str, uris: dict[str, str], **settings: object) -> None:
    """Let `broker` federate its queues with names that match `pattern` with upstreams: their URIs by name."""
    for upstream, uri in uris.items():
        value = {"uri": uri, "reconnect-delay": 1, **settings}
        broker.control("set_parameter", "federation-upstream", upstream, json.dumps(value))
    definition = json.dumps({"federation-upstream-set": "all"})
    broker.control("set_policy", "--apply-to", "queues", "federate-queues", pattern, definition)


def ready_count(channel: BlockingChannel, queue: str) -> int:
    """The number of ready messages of `queue`."""
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def consumer_count(channel: BlockingChannel, queue: str) -> int:
    """The number of consumers of `queue`."""
    return int(channel.queue_declare(queue, passive=True).method.consumer_count)


def messages(channel: BlockingChannel, queue: str, count: int) -> list[tuple[Any, Any, bytes]]:
    """The next `count` messages of `queue`, as soon as they have arrived."""
    found: list[tuple[Any, Any, bytes]] = []

    def is_complete() -> bool:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method is not None:
            found.append((method, properties, body))
        return len(found) == count

    eventually(is_complete)
    return found


def bindings_to_internal_exchanges(client: HttpClient, exchange: str) -> list[dict[str, Any]]:
    """The bindings of `exchange` at an upstream, if it exists, to exchanges of its downstreams."""
    found = client.ask(f"GET /exchanges/%2f/{quoted(exchange)}/bindings/source")
    if found.status == 404:
        return []
    return [entry for entry in found.value if entry["destination"].startswith("federation: ")]


def internal_exchanges(client: HttpClient) -> list[dict[str, Any]]:
    """The exchanges that downstreams have declared at an upstream."""
    found: list[dict[str, Any]] = client.get("/exchanges/%2f")
    return [entry for entry in found if entry["name"].startswith("federation: ")]


def federate_warren(client: HttpClient, upstream: str, port: int, pattern: str, **settings: object) -> None:
    """Let the Warren of `client` federate its exchanges with names that match `pattern` from `port`."""
    value = {"uri": f"amqp://guest:guest@127.0.0.1:{port}", "reconnect-delay": 1, **settings}
    assert client.status(f"PUT /parameters/federation-upstream/%2f/{upstream}", {"value": value}) in (
        201,
        204,
    )
    policy = {"pattern": pattern, "apply-to": "exchanges", "definition": {"federation-upstream": upstream}}
    assert client.status(f"PUT /policies/%2f/federate-{upstream}", policy) in (201, 204)


def is_linked(client: HttpClient, exchange: str, upstream: str | None = None) -> bool:
    """True if all links of `exchange` at the Warren of `client` are running, or that to `upstream`."""
    found = [link for link in client.get("/federation-links") if link.get("exchange") == exchange]
    found = [link for link in found if upstream in (None, link["upstream"])]
    return bool(found) and all(link["status"] == "running" for link in found)
