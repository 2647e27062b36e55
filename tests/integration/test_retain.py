"""The policy `retain`: messages published to a queue can be read again after they were consumed."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.api import HttpClient, quoted
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.channels import channel_of
from tests.integration.conftest import QUEUE_TYPES
from tests.patience import patient

PERSISTENT = pika.BasicProperties(delivery_mode=2)
WAIT_S_MAX = patient(20)


@pytest.fixture(scope="module", params=QUEUE_TYPES)
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker("--data-dir", str(tmp_path_factory.mktemp("retain"))) as node:
        HttpClient(node).ask("PUT /vhosts/%2F", {"default_queue_type": request.param})
        yield node


@pytest.fixture
def channel(node: BrokerProcess) -> Iterator[BlockingChannel]:
    with channel_of(node) as channel:
        yield channel


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return str(request.node.originalname)


def retain(node: BrokerProcess, queue: str, value: object, *, apply_to: str = "queues") -> int:
    """Set the policy, named after the queue; returns the status."""
    policy = {"pattern": f"^{queue}$", "definition": {"retain": value}, "apply-to": apply_to}
    return HttpClient(node).status(f"PUT /policies/%2F/{quoted(queue)}", policy)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def facts(node: BrokerProcess, queue: str) -> dict[str, Any] | None:
    """The facts of a queue in the API; None if it does not exist."""
    answer = HttpClient(node).ask(f"GET /queues/%2F/{quoted(queue)}")
    return dict(answer.value) if answer.status == 200 else None


def is_retained(node: BrokerProcess, queue: str) -> bool:
    return facts(node, f"amq.retained.{queue}") is not None


def declare(node: BrokerProcess, channel: BlockingChannel, queue: str, **arguments: str) -> None:
    """A durable queue that is retained."""
    channel.queue_declare(queue, durable=True, arguments=arguments)
    assert retain(node, queue, "7D") in (201, 204)
    wait_until(lambda: is_retained(node, queue))


def publish(channel: BlockingChannel, queue: str, *bodies: bytes, exchange: str = "") -> None:
    for body in bodies:
        channel.basic_publish(exchange, queue, body, PERSISTENT)


def past(channel: BlockingChannel, queue: str, count: int) -> list[bytes]:
    """The bodies of the first `count` retained messages of the queue."""
    channel.basic_qos(prefetch_count=100)
    found: list[bytes] = []
    arguments = {"x-stream-offset": "first"}
    for method, _, body in channel.consume(
        f"amq.retained.{queue}", arguments=arguments, inactivity_timeout=WAIT_S_MAX
    ):
        assert method is not None
        channel.basic_ack(method.delivery_tag)
        found.append(body)
        if len(found) == count:
            break
    channel.cancel()
    return found


def test_acknowledged_messages_can_be_read_again(
    node: BrokerProcess, channel: BlockingChannel, name: str
) -> None:
    declare(node, channel, name)
    publish(channel, name, b"1", b"2", b"3")
    while channel.basic_get(name, auto_ack=True)[0] is not None:
        pass
    assert past(channel, name, 3) == [b"1", b"2", b"3"]


def test_a_message_is_retained_once_however_it_was_routed_with_its_address(
    node: BrokerProcess, channel: BlockingChannel, name: str
) -> None:
    declare(node, channel, name)
    for key in ("#", "a.*"):
        channel.queue_bind(name, "amq.topic", key)
    publish(channel, "a.b", b"once", exchange="amq.topic")
    publish(channel, name, b"last")
    channel.basic_qos(prefetch_count=1)
    method, _, body = next(
        channel.consume(
            f"amq.retained.{name}", arguments={"x-stream-offset": "first"}, inactivity_timeout=WAIT_S_MAX
        )
    )
    channel.cancel()
    assert (body, method.exchange, method.routing_key) == (b"once", "amq.topic", "a.b")
    assert past(channel, name, 2) == [b"once", b"last"]


def test_dead_letters_received_by_a_queue_are_retained(
    node: BrokerProcess, channel: BlockingChannel, name: str
) -> None:
    declare(node, channel, name)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name}
    channel.queue_declare(f"{name}-work", arguments=arguments)
    publish(channel, f"{name}-work", b"dead")
    method, _, _ = channel.basic_get(f"{name}-work")
    channel.basic_reject(method.delivery_tag, requeue=False)
    assert past(channel, name, 1) == [b"dead"]


def test_the_retention_time_follows_the_policy(
    node: BrokerProcess, channel: BlockingChannel, name: str
) -> None:
    declare(node, channel, name)
    retention = f"/warren/streams/%2F/{quoted('amq.retained.' + name)}"

    def kept() -> tuple[object, object]:
        found = HttpClient(node).get(retention)["retention"]
        return found["max_age_ms"], found["max_bytes"]

    assert kept() == (7 * 86_400_000, None)
    assert retain(node, name, 1_000_000) == 204
    wait_until(lambda: kept() == (None, 1_000_000))


def test_without_the_policy_nothing_more_is_retained_and_the_stream_remains(
    node: BrokerProcess, channel: BlockingChannel, name: str
) -> None:
    declare(node, channel, name)
    publish(channel, name, b"kept")
    assert HttpClient(node).status(f"DELETE /policies/%2F/{quoted(name)}") == 204
    publish(channel, name, b"not kept")
    assert retain(node, name, "1h") == 201
    publish(channel, name, b"kept again")
    assert past(channel, name, 2) == [b"kept", b"kept again"]


def test_a_deleted_retained_stream_begins_anew(
    node: BrokerProcess, channel: BlockingChannel, name: str
) -> None:
    declare(node, channel, name)
    publish(channel, name, b"before")
    channel.queue_delete(f"amq.retained.{name}")
    wait_until(lambda: is_retained(node, name))
    publish(channel, name, b"after")
    assert past(channel, name, 1) == [b"after"]


def test_a_redeclared_queue_continues_its_retained_stream(
    node: BrokerProcess, channel: BlockingChannel, name: str
) -> None:
    declare(node, channel, name)
    publish(channel, name, b"1")
    channel.queue_delete(name)
    channel.queue_declare(name, durable=True)
    publish(channel, name, b"2")
    assert past(channel, name, 2) == [b"1", b"2"]


def test_only_queues_that_survive_a_restart_are_retained(
    node: BrokerProcess, channel: BlockingChannel, name: str
) -> None:
    policy = {"pattern": f"^{name}", "definition": {"retain": "7D"}, "apply-to": "queues"}
    assert HttpClient(node).status(f"PUT /policies/%2F/{quoted(name)}", policy) == 201
    channel.queue_declare(f"{name}-transient")
    channel.queue_declare(f"{name}-exclusive", durable=True, exclusive=True)
    channel.queue_declare(f"{name}-stream", durable=True, arguments={"x-queue-type": "stream"})
    channel.queue_declare(f"{name}-{'n' * (255 - len(name) - 1)}", durable=True)
    channel.queue_declare(f"{name}-durable", durable=True)
    wait_until(lambda: is_retained(node, f"{name}-durable"))
    kept = [
        row["name"]
        for row in HttpClient(node).get("/queues/%2F")
        if row["name"].startswith(f"amq.retained.{name}")
    ]
    assert kept == [f"amq.retained.{name}-durable"]


@pytest.mark.parametrize("value", ["7", "", 0, -1, True, None, "7 days", {"max-age": "7D"}])
def test_a_retention_is_an_age_or_a_size(node: BrokerProcess, value: object) -> None:
    answer = HttpClient(node).ask(
        "PUT /policies/%2F/wrong",
        {"pattern": "^wrong$", "definition": {"retain": value}, "apply-to": "queues"},
    )
    assert answer.status == 400
    assert "is not a valid retention: an age as 7D, or bytes" in answer.value["reason"]


@pytest.mark.parametrize("queue_type", QUEUE_TYPES)
def test_confirmed_messages_are_retained_after_a_kill(tmp_path: Path, queue_type: str) -> None:
    with broker("--data-dir", str(tmp_path)) as node, channel_of(node) as channel:
        declare(node, channel, "orders", **{"x-queue-type": queue_type})
        publish(channel, "orders", *(b"%d" % number for number in range(100)))
        node.process.send_signal(signal.SIGKILL)
        node.process.wait()
    with broker("--data-dir", str(tmp_path)) as node, channel_of(node) as channel:
        publish(channel, "orders", b"100")
        assert past(channel, "orders", 101) == [b"%d" % number for number in range(101)]


def test_without_a_data_directory_messages_are_retained_in_memory() -> None:
    with broker() as node, channel_of(node) as channel:
        declare(node, channel, "orders")
        publish(channel, "orders", b"1")
        assert past(channel, "orders", 1) == [b"1"]
