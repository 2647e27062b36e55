"""A consumer that receives everything and acknowledges nothing does not use up the broker's memory."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pika
from pika.adapters.blocking_connection import BlockingChannel
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.test_slow_disk import memory

from warren.limits import QUEUE_MEMORY_MAX

PERSISTENT = pika.BasicProperties(delivery_mode=2)
COUNT = 3_200
SIZE = 65_536


def taken(channel: BlockingChannel) -> Iterator[tuple[int, bool, int]]:
    """The deliveries of a consumer without prefetch: number, whether it is redelivered, and
    delivery tag.
    """
    for method, _, body in channel.consume("work", auto_ack=False):
        number = int(body[:8])
        assert body == b"%08d" % number * (SIZE // 8)
        yield number, method.redelivered, method.delivery_tag


def published(node: BrokerProcess, connection: pika.BlockingConnection, numbers: range) -> None:
    channel = connection.channel()
    channel.queue_declare("work", durable=True)
    for number in numbers:
        channel.basic_publish("", "work", b"%08d" % number * (SIZE // 8), PERSISTENT)
    # The answer to a declaration follows the processing of earlier publishes.
    channel.queue_declare("work", durable=True)
    channel.close()


def test_memory_is_bounded_although_nothing_is_acknowledged(tmp_path: Path) -> None:
    with broker("--data-dir", str(tmp_path)) as node:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port))
        before = memory(node)
        published(node, connection, range(COUNT))
        for redelivered in (False, True):
            channel = connection.channel()
            found = list(islice(taken(channel), COUNT))
            assert [number for number, _, _ in found] == list(range(COUNT))
            assert {was for _, was, _ in found} == {redelivered}
            # Ready messages, complete unacknowledged ones, pending, being written, in the socket, and what
            # the allocator keeps of them.
            assert memory(node) - before < 6 * QUEUE_MEMORY_MAX < COUNT * SIZE / 2
            last = found[-1][2]
            if redelivered:
                channel.basic_ack(last, multiple=True)
            channel.close()
        channel = connection.channel()
        assert channel.queue_declare("work", passive=True).method.message_count == 0
        connection.close()
