"""A shovel of RabbitMQ moves messages to Warren and back, as docs/guide/migrating.md shows."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from tests import rabbitmq
from tests.patience import patient
from tests.warren_process import running_warren

MESSAGES = 500
MOVED_S_MAX = patient(60)


def channel_of(port: int) -> BlockingChannel:
    channel = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)).channel()
    channel.confirm_delivery()
    channel.queue_declare("cart", durable=True)
    return channel


def ready(channel: BlockingChannel) -> int:
    return int(channel.queue_declare("cart", passive=True).method.message_count)


def shovel(server: rabbitmq.RabbitMQ, source: int, destination: int) -> None:
    """Move the messages of `cart` between two ports, each acknowledged when the other side confirms it."""
    definition = {
        "src-protocol": "amqp091",
        "src-uri": f"amqp://guest:guest@127.0.0.1:{source}/%2f",
        "src-queue": "cart",
        "src-delete-after": "queue-length",
        "dest-protocol": "amqp091",
        "dest-uri": f"amqp://guest:guest@127.0.0.1:{destination}/%2f",
        "dest-queue": "cart",
        "ack-mode": "on-confirm",
    }
    server.control("set_parameter", "shovel", f"from {source}", json.dumps(definition))


def await_messages(channel: BlockingChannel, count: int) -> None:
    deadline = time.monotonic() + MOVED_S_MAX
    while ready(channel) != count:
        assert time.monotonic() < deadline, f"{ready(channel)} of {count} messages"
        channel.connection.sleep(0.1)


@pytest.mark.rabbitmq
@pytest.mark.timeout(300)
def test_a_shovel_of_rabbitmq_moves_messages_to_warren_and_back(tmp_path: Path) -> None:
    if not rabbitmq.is_installed():
        pytest.skip("rabbitmq-server is not installed")
    folders = [tmp_path / name for name in ("rabbitmq", "warren")]
    for folder in folders:
        folder.mkdir()
    server = rabbitmq.RabbitMQ(folders[0], listen="127.0.0.1", plugins=("rabbitmq_shovel",))
    try:
        server.start()
        with running_warren(folders[1]) as broker:
            theirs, ours = channel_of(server.port), channel_of(broker.port)
            for number in range(MESSAGES):
                theirs.basic_publish("", "cart", b"%d" % number, pika.BasicProperties(delivery_mode=2))
            shovel(server, server.port, broker.port)
            await_messages(ours, MESSAGES)
            await_messages(theirs, 0)
            shovel(server, broker.port, server.port)
            await_messages(theirs, MESSAGES)
            await_messages(ours, 0)
            bodies = [theirs.basic_get("cart", auto_ack=True)[2] for _ in range(MESSAGES)]
            assert bodies == [b"%d" % number for number in range(MESSAGES)]
    finally:
        server.stop()
        server.remove()
