"""Dead letters at least once: pika rejects messages while the broker is killed, and none is lost."""

import threading
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.shovels import wait_until

MESSAGES = 300
KILLS = 3
# The number of rejected messages after which the broker is killed, while others are on their way.
REJECTED = 40
MARKED = 5
SOURCE = {
    "x-queue-type": "quorum",
    "x-overflow": "reject-publish",
    "x-dead-letter-strategy": "at-least-once",
    "x-dead-letter-exchange": "graves",
}


def opened(node: BrokerProcess) -> BlockingChannel:
    """A channel that has declared the queue, and the exchange of its dead letters."""
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
    channel = connection.channel()
    channel.exchange_declare("graves", "fanout", durable=True)
    channel.queue_declare("orders", durable=True, arguments=SOURCE)
    channel.queue_declare("marks", durable=True)
    channel.confirm_delivery()
    return channel


def reject(channel: BlockingChannel, killing: threading.Thread) -> set[str]:
    """Reject messages until the broker is gone; returns those whose death was written for certain."""
    written: list[str] = []
    rejected: list[str] = []
    try:
        while True:
            method, _, body = channel.basic_get("orders")
            assert method is not None
            channel.basic_reject(method.delivery_tag, requeue=False)
            rejected.append(body.decode())
            if len(rejected) % MARKED == 0:
                # A confirm of the same virtual host says that everything before it is written.
                channel.basic_publish("", "marks", b"", pika.BasicProperties(delivery_mode=2))
                written = [*rejected]
            if len(rejected) == REJECTED:
                killing.start()
    except (AMQPError, OSError):
        pass
    killing.join()
    return {*written}


def taken(channel: BlockingChannel, queue: str) -> list[tuple[str, pika.BasicProperties]]:
    """All messages of `queue`, which are acknowledged."""
    found = []
    while (got := channel.basic_get(queue, auto_ack=True))[0] is not None:
        found.append((got[2].decode(), got[1]))
    return found


@pytest.mark.parametrize("target", ["classic", "quorum"])
def test_no_rejected_message_is_lost_when_the_broker_is_killed(target: str, tmp_path: Path) -> None:
    published = {str(number) for number in range(MESSAGES)}
    rejected: set[str] = set()
    for run in range(KILLS):
        with broker("--data-dir", str(tmp_path)) as node:
            channel = opened(node)
            if not run:
                for body in sorted(published, key=int):
                    properties = pika.BasicProperties(delivery_mode=2)
                    channel.basic_publish("", "orders", body.encode(), properties)
            else:
                # The first dead letters have no target, and wait for this one.
                channel.queue_declare("graveyard", durable=True, arguments={"x-queue-type": target})
                channel.queue_bind("graveyard", "graves")
            rejected |= reject(channel, threading.Thread(target=node.process.kill))
    with broker("--data-dir", str(tmp_path)) as node:
        client = HttpClient(node)
        wait_until(lambda: client.get("/queues/%2F/orders")["messages_dlx"] == 0)
        channel = opened(node)
        ready, dead = taken(channel, "orders"), taken(channel, "graveyard")
        arrived = {body for body, _ in dead}
        assert arrived | {body for body, _ in ready} == published
        assert len(rejected) >= KILLS * (REJECTED - MARKED)
        assert rejected <= arrived
        assert not arrived & {body for body, _ in ready}
        for _, properties in dead:
            first = properties.headers["x-death"][0]
            assert (first["queue"], first["reason"], first["count"]) == ("orders", "rejected", 1)
        channel.connection.close()


def test_dead_letters_are_counted_until_they_are_confirmed(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        client, channel = HttpClient(node), opened(node)
        for body in (b"one", b"three"):
            channel.basic_publish("", "orders", body, pika.BasicProperties(delivery_mode=2))
            method, _, _ = channel.basic_get("orders")
            channel.basic_reject(method.delivery_tag, requeue=False)

        def counts() -> list[int]:
            queue = client.get("/queues/%2F/orders")
            names = ("messages", "messages_ready", "messages_dlx", "message_bytes_dlx", "message_bytes")
            return [queue[name] for name in names]

        wait_until(lambda: counts() == [2, 0, 2, 8, 8], lambda: str(counts()))
        assert client.get("/overview")["queue_totals"]["messages"] == 2
        by_count = client.get("/queues?sort=messages&sort_reverse=true&columns=name,messages")
        assert by_count[0] == {"name": "orders", "messages": 2}
        assert channel.queue_purge("orders").method.message_count == 0
        channel.queue_declare("graveyard", durable=True)
        channel.queue_bind("graveyard", "graves")
        wait_until(lambda: counts() == [0] * 5, lambda: str(counts()))
        assert [body for body, _ in taken(channel, "graveyard")] == ["one", "three"]
        channel.connection.close()
