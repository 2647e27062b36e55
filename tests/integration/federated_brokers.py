"""A RabbitMQ with the federation plugin, and what tests of federated queues ask of brokers."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel
from tests.rabbitmq import RabbitMQ

WAIT_S = 60


@contextmanager
def federating_rabbitmq(directory: Path) -> Iterator[RabbitMQ]:
    """A RabbitMQ with the federation plugin."""
    broker = RabbitMQ(directory, plugins=("rabbitmq_federation",))
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


def federate_queues(broker: RabbitMQ, upstreams: dict[str, str], pattern: str, **settings: object) -> None:
    """Federate the queues that match `pattern`, in the virtual host / of RabbitMQ, with `upstreams`: URIs by
    name.
    """
    for name, uri in upstreams.items():
        value = json.dumps({"uri": uri, "reconnect-delay": 1, **settings})
        broker.control("set_parameter", "federation-upstream", name, value)
    definition = json.dumps({"federation-upstream-set": "all"})
    broker.control("set_policy", "--apply-to", "queues", "federated", pattern, definition)


@contextmanager
def channel_at(port: int, vhost: str = "/", *, confirms: bool = True) -> Iterator[BlockingChannel]:
    """A channel on a connection of its own, with confirms of each publish unless they are not wanted."""
    connection = pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", port, vhost, blocked_connection_timeout=WAIT_S)
    )
    channel = connection.channel()
    if confirms:
        channel.confirm_delivery()
    try:
        yield channel
    finally:
        if connection.is_open:
            connection.close()


def count_of(channel: BlockingChannel, queue: str) -> int:
    """The number of ready messages in `queue`."""
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def consumer_count_of(channel: BlockingChannel, queue: str) -> int:
    """The number of consumers of `queue`."""
    return int(channel.queue_declare(queue, passive=True).method.consumer_count)


def wait_until(condition: Callable[[], object], what: str) -> Any:
    """The value of `condition` once it is true."""
    deadline = time.monotonic() + WAIT_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {WAIT_S} s: {what}"
        time.sleep(0.05)
    return value
