"""A channel to a started broker, for tests that publish and must know that it arrived."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError
from tests.integration.broker_process import BrokerProcess


@contextmanager
def channel_of(node: BrokerProcess) -> Iterator[BlockingChannel]:
    """One with confirms, of a connection of its own; the broker may be gone when it ends."""
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    with suppress(AMQPError):
        connection.close()
