"""A shovel between two Warrens delivers exactly once while links are cut and both ends are killed."""

import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pika
import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.cut_proxy import CutProxy, cut_proxy
from tests.integration.shovels import (
    await_state,
    confirming,
    put_shovel,
    ready,
    shovels,
    take,
    uri,
    wait_until,
)

MESSAGES = 20_000
RATE = 3_000
ROUNDS = 3
PERSISTENT = pika.BasicProperties(delivery_mode=2, headers={"kind": "order"})
NAME = "once"


class End:
    """One end of the shovel: a broker with a directory, and the proxy that leads to it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.stack = ExitStack()
        self.proxy: CutProxy = self.stack.enter_context(cut_proxy(1))
        self._running = ExitStack()
        self.node = self.start()

    def start(self) -> BrokerProcess:
        self.node = self._running.enter_context(broker("--data-dir", str(self.directory)))
        self.proxy.target = self.node.port
        return self.node

    def kill(self) -> None:
        """Kill it with SIGKILL, and start it again."""
        self.node.process.kill()
        self.node.process.wait()
        self._running.close()
        self.start()

    def close(self) -> None:
        self._running.close()
        self.stack.close()


def publish(port: int, queue: str) -> None:
    """Publish the numbers up to MESSAGES, and wait for the confirm of the last."""
    with confirming(port) as channel:
        channel.queue_declare(queue, durable=True)
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
    channel = connection.channel()
    for number in range(MESSAGES - 1):
        channel.basic_publish("", queue, b"%d" % number, PERSISTENT)
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"%d" % (MESSAGES - 1), PERSISTENT)
    connection.close()


def move(
    client: HttpClient, ends: tuple[End, End], **more: object
) -> list[tuple[bytes, pika.BasicProperties]]:
    """Move all messages by a shovel of a third broker while everything fails; returns what has arrived."""
    source, destination = ends
    publish(source.node.port, "from")
    put_shovel(
        client, NAME, src_uri=uri(source.proxy.port), src_queue="from", dest_uri=uri(destination.proxy.port),
        dest_queue="to", reconnect_delay=1, rate_limit=RATE, **more,
    )  # fmt: skip
    await_state(client, NAME, "running")
    for _ in range(ROUNDS):
        for end in ends:
            time.sleep(0.4)
            end.proxy.cut()
            await_state(client, NAME, "running")
            time.sleep(0.4)
            end.kill()
            await_state(client, NAME, "running")
    with confirming(source.node.port) as near, confirming(destination.node.port) as far:
        wait_until(
            lambda: (
                shovels(client)[NAME]["state"] == "running"
                and ready(near, "from") == 0
                and shovels(client)[NAME]["unconfirmed"] == 0
            ),
            lambda: str(shovels(client)[NAME]),
        )
        return take(far, "to")


@pytest.mark.timeout(300)
def test_every_message_arrives_once_in_order_and_unchanged(node: BrokerProcess, tmp_path: Path) -> None:
    client = HttpClient(node)
    with ExitStack() as stack:
        ends = End(tmp_path / "source"), End(tmp_path / "destination")
        for end in ends:
            stack.callback(end.close)
        arrived = move(client, ends, exactly_once=True)
        shown = shovels(client)[NAME]
        assert client.status(f"DELETE /shovels/vhost/%2F/{NAME}") == 204
    client.close()
    counts = Counter(body for body, _ in arrived)
    assert [body for body, count in counts.items() if count > 1] == []
    assert [number for number in range(MESSAGES) if b"%d" % number not in counts] == []
    assert {str(properties.headers) for _, properties in arrived} == {str({"kind": "order"})}
    assert (shown["delivery"], shown["delivery_reason"]) == ("exactly once", "")


@pytest.mark.timeout(120)
def test_a_shovel_within_one_broker_delivers_exactly_once_too(node: BrokerProcess) -> None:
    client = HttpClient(node)
    with confirming(node.port) as channel:
        channel.queue_declare("from", durable=True, arguments={"x-max-priority": 3})
        for priority in (0, 3, 1):
            channel.basic_publish("", "from", b"%d" % priority, pika.BasicProperties(priority=priority))
        put_shovel(
            client, "local", src_uri="amqp://", dest_uri="amqp://", src_queue="from", dest_queue="to",
            exactly_once=True, dest_add_forward_headers=True,
        )  # fmt: skip
        wait_until(lambda: shovels(client).get("local", {}).get("confirmed") == 3)
        assert shovels(client)["local"]["delivery"] == "exactly once"
        arrived = take(channel, "to")
        assert client.status("DELETE /shovels/vhost/%2F/local") == 204
        for queue in ("from", "to"):
            channel.queue_delete(queue)
    client.close()
    assert [body for body, _ in arrived] == [b"3", b"1", b"0"]
    assert {tuple(properties.headers) for _, properties in arrived} == {("x-shovelled",)}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ({"src_queue": "stream", "dest_queue": "to"}, "is a stream, which has no positions but offsets"),
        ({"src_queue": "from", "dest_queue": "stream"}, "cannot receive messages exactly once"),
    ],
)
def test_a_stream_at_either_end_stops_the_shovel_with_the_reason(
    node: BrokerProcess, ends: dict[str, str], text: str
) -> None:
    client = HttpClient(node)
    with confirming(node.port) as channel:
        channel.queue_declare("stream", durable=True, arguments={"x-queue-type": "stream"})
        channel.queue_declare("from", durable=True)
        channel.basic_publish("", "from", b"a", PERSISTENT)
        put_shovel(client, "stream", src_uri="amqp://", dest_uri="amqp://", exactly_once=True, **ends)
        wait_until(
            lambda: text in shovels(client).get("stream", {}).get("last_error", ""),
            lambda: str(shovels(client)),
        )
        assert client.status("DELETE /shovels/vhost/%2F/stream") == 204
        for queue in ("stream", "from", "to"):
            channel.queue_delete(queue)
    client.close()
