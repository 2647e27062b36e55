"""A channel with publisher confirms to a started broker."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError
from tests.integration.broker_process import BrokerProcess


@contextmanager
def channel_of(node: BrokerProcess) -> Iterator[BlockingChannel]:
    """A channel with confirms on its own connection; the broker may have ended before the block does."""
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    with suppress(AMQPError):
        connection.close()
