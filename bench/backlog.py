"""Steps with a backlog on the disk: counting, consuming and thinning out; and its size on the disk."""

import os
import select
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from brokers import Broker
from warren.blocking.connection import BlockingConnection
from warren.cli.perf.capacity import fill
from warren.cli.perf.connection import open_connection
from warren.cli.perf.consumer import CHANNEL, RECEIVE_BYTES, PerfConsumer
from warren.cli.perf.delivery_counter import DeliveryCounter
from warren.cli.perf.publish_ring import Content, PublishRing
from warren.cli.perf.usage import Usage, usage
from warren.cli.perf.worker_group import Observer
from warren.client.ack_writer import ack
from warren.client.errors import BrokerRefused
from warren.client.uri import Target, parse_uri
from warren.wire.methods import (
    BasicConsume,
    BasicConsumeOk,
    BasicQos,
    BasicQosOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
)
from warren.wire.table import Table

ACK_EVERY = 100
PREFETCH = 1_000
KEPT_OF = 10  # one message in so many is kept when a backlog is thinned out
# Kept unacknowledged by one consumer: RabbitMQ scans these at each acknowledgement, and with more consumers
# the rest of the prefetch takes longer to fill.
KEPT = 500
THINNED = KEPT_OF * KEPT  # deliveries to a consumer until it has kept that number
SILENT_S_MAX = 60
POLL_S = 0.02
STEADY_S = 5.0  # without change, the directory has settled: segments are checked once a second
STEADY_S_MAX = 30.0
_BLOCK_BYTES = 512  # the unit of st_blocks, independent of the file system


@dataclass(frozen=True, slots=True)
class Span:
    """The cost of a step: seconds, and CPU time of the broker and of this process."""

    elapsed_s: float
    broker_s: float
    client_s: float


class Stopwatch:
    """Measures the cost of a step."""

    def __init__(self, broker: Broker) -> None:
        self._pid = broker.pid
        self._broker = self._usage()
        self._client_s = time.process_time()
        self._begin_s = time.monotonic()

    def read(self) -> Span:
        """Return the cost up to now."""
        return Span(
            time.monotonic() - self._begin_s,
            self._usage().cpu_s - self._broker.cpu_s,
            time.process_time() - self._client_s,
        )

    def _usage(self) -> Usage:
        return usage([self._pid])


def declare(target: Target, queue: str, queue_type: str = "") -> None:
    """Declare a durable queue with this name, and with this `x-queue-type` if it is not empty."""
    connection = opened(target)
    arguments: Table = {"x-queue-type": queue_type} if queue_type else {}
    method = QueueDeclare(queue=queue, durable=True, arguments=arguments)
    connection.call(CHANNEL, method, QueueDeclareOk)
    connection.close()


def delete(target: Target, queue: str) -> None:
    """Delete the queue with its messages."""
    connection = opened(target)
    connection.call(CHANNEL, QueueDelete(queue=queue), QueueDeleteOk)
    connection.close()


def publish(broker: Broker, queue: str, count: int, size: int, *, exchange: str = "") -> Span:
    """Publish `count` persistent messages, wait for all confirms, and return the cost.

    `queue` is the routing key of `exchange`.
    """
    connection = opened(parse_uri(broker.uri))
    content = Content(body=bytes(size), is_persistent=True, frame_size_max=connection.frame_size_max)
    publish_ring = PublishRing([(exchange, queue)], content)
    watch = Stopwatch(broker)
    fill(connection, publish_ring, count)
    span = watch.read()
    connection.close()
    return span


def waiting(target: Target, queue: str) -> int:
    """Return the number of ready messages from a passive declare."""
    connection = opened(target)
    try:
        return connection.call(CHANNEL, QueueDeclare(queue=queue, passive=True), QueueDeclareOk).message_count
    finally:
        connection.close()


def await_waiting(broker: Broker, queue: str, count: int, *, seconds_max: float = SILENT_S_MAX) -> None:
    """Wait until a passive declare reports `count` ready messages; the broker may still be starting."""
    give_up_s = time.monotonic() + seconds_max
    found = -1
    while time.monotonic() < give_up_s:
        broker.check_runs()
        with suppress(OSError, BrokerRefused):
            found = waiting(parse_uri(broker.uri), queue)
            if found == count:
                return
        time.sleep(POLL_S)
    raise SystemExit(f"{broker.name}: {count:,} messages should wait in {queue!r}, there are {found:,}")


def drain(broker: Broker, queue: str, count: int) -> Span:
    """Consume `count` messages, a multiple of ACK_EVERY, with an ack for each hundred; returns the cost."""
    connection = opened(parse_uri(broker.uri))
    connection.call(CHANNEL, BasicQos(prefetch_count=PREFETCH), BasicQosOk)
    consumer = PerfConsumer(connection, bytearray(RECEIVE_BYTES), ack_every=ACK_EVERY)
    watch = Stopwatch(broker)
    subscribe(connection, queue)
    consumer.count(memoryview(connection.take_unread()), 0)
    connection.socket.setblocking(False)
    while consumer.consumed < count:
        unwritten = [] if consumer.flush() else [connection.socket]
        readable, writable, _ = select.select([connection.socket], unwritten, [], SILENT_S_MAX)
        if not readable and not writable:
            raise SystemExit(f"{broker.name}: {consumer.consumed:,} of {count:,} messages, then nothing")
        if readable:
            consumer.receive(0)
    span = watch.read()
    consumer.finish()
    connection.close()
    return span


def thin_out(target: Target, queue: str, count: int) -> int:
    """Acknowledge nine of ten messages of the queue, a multiple of THINNED; returns how many are left."""
    links = []
    for _ in range(count // THINNED):
        connection = opened(target)
        connection.call(CHANNEL, BasicQos(prefetch_count=KEPT), BasicQosOk)
        take_nine_of_ten(connection, queue)
        links.append(connection)
    for connection in links:
        connection.close()
    return count // KEPT_OF


def take_nine_of_ten(connection: BlockingConnection, queue: str) -> None:
    """Consume THINNED messages and keep every tenth; at the end the kept ones fill the prefetch."""
    deliveries = DeliveryCounter()
    subscribe(connection, queue)
    received = deliveries.feed(memoryview(connection.take_unread()))
    settled = 0
    while settled < THINNED:
        tags = (tag for tag in range(settled + 1, received + 1) if tag % KEPT_OF)
        connection.socket.sendall(b"".join(ack(CHANNEL, tag, is_multiple=False) for tag in tags))
        settled = received
        data = connection.socket.recv(RECEIVE_BYTES) if settled < THINNED else b""
        received = deliveries.feed(memoryview(data))


def subscribe(connection: BlockingConnection, queue: str) -> None:
    """Consume with manual acknowledgements."""
    connection.call(CHANNEL, BasicConsume(queue=queue, consumer_tag="c"), BasicConsumeOk)


def opened(target: Target) -> BlockingConnection:
    """Open a connection with a channel."""
    connection = open_connection(target)
    connection.open_channel(CHANNEL)
    return connection


def steady_disk_bytes(broker: Broker) -> int:
    """Return the size of the data directory on the disk, once it has stopped changing."""
    now = disk_bytes(broker.data)
    give_up_s = time.monotonic() + STEADY_S_MAX
    steady_since_s = time.monotonic()
    while time.monotonic() < min(give_up_s, steady_since_s + STEADY_S):
        time.sleep(POLL_S * 10)
        before, now = now, disk_bytes(broker.data)
        if now != before:
            steady_since_s = time.monotonic()
    return now


def disk_bytes(directory: Path) -> int:
    """Return the disk space of all files in `directory`, as `du` counts it."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(folder, name)).st_blocks * _BLOCK_BYTES
    return total


def observer(broker: Broker) -> Observer:
    """Return an observer of the broker's resource usage."""
    return Observer([broker.pid])
