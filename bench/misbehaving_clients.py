"""Misbehaving clients, each in a process of its own until the block ends."""

import base64
import contextlib
import http.client
import multiprocessing
import multiprocessing.synchronize
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import quote

from warren.blocking.connection import BlockingConnection
from warren.cli.perf.connection import open_connection
from warren.cli.perf.publish_ring import Content, PublishRing, encode_publish
from warren.cli.perf.worker_group import raise_open_files_limit
from warren.client.errors import BrokerRefused
from warren.client.uri import Target
from warren.wire.method import Method
from warren.wire.methods import (
    BasicConsume,
    BasicConsumeOk,
    BasicQos,
    BasicQosOk,
    QueueDeclare,
    QueueDeclareOk,
)

CHANNEL = 1
RECEIVE_BYTES_MIN = 4096
READ_BYTES = 1 << 20
FILLED_AT_ONCE = 1_000
STOP_S_MAX = 30
SEND_S_MAX = 10  # a slow disk may block a publisher for this long

Stop = multiprocessing.synchronize.Event
Behaviour = Callable[[Target, Stop], None]


@contextlib.contextmanager
def misbehaving(behaviour: Behaviour, target: Target, *, count: int = 1) -> Iterator[None]:
    """Run `count` processes with this behaviour."""
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    processes = [context.Process(target=behaviour, args=(target, stop), daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        stop.set()
        for process in processes:
            process.join(STOP_S_MAX)
            if process.is_alive():
                process.terminate()
                process.join()


def publish_endlessly(target: Target, stop: Stop) -> None:
    """Publish as fast as the socket accepts to a bounded queue without consumers."""
    connection = opened(target)
    _publish_to(target, [declare_bounded(connection, 1000)], stop, is_persistent=False)
    connection.socket.close()


def declare_endlessly(target: Target, stop: Stop) -> None:
    """Declare queues without waiting for replies; they are exclusive, and so deleted with the connection."""
    connection = opened(target)
    number = 0
    with contextlib.suppress(OSError, BrokerRefused):
        while not stop.is_set():
            declares: list[Method] = [
                QueueDeclare(queue=f"d{os.getpid()}.{number + i}", exclusive=True) for i in range(100)
            ]
            connection.call_many(CHANNEL, declares, QueueDeclareOk, window=100)
            number += 100
    connection.socket.close()


def reconnect_endlessly(target: Target, stop: Stop) -> None:
    """Connect, open a channel and close the socket without a close method, repeatedly."""
    while not stop.is_set():
        with contextlib.suppress(OSError):
            opened(target).socket.close()


def trickle(target: Target, stop: Stop) -> None:
    """Open five thousand connections, each of which sends a small message now and then."""
    raise_open_files_limit()
    links = []
    for _ in range(5000):
        if stop.is_set():
            break
        links.append(opened(target))
    data = encode_publish(("", "nobody"), Content(body=bytes(16), is_persistent=False, frame_size_max=4096))
    at = 0
    while not stop.is_set():
        for connection in links[at : at + 50]:
            connection.socket.sendall(data)
        at = (at + 50) % len(links)
        time.sleep(0.01)
    for connection in links:
        connection.socket.close()


def send_octet_by_octet(target: Target, stop: Stop) -> None:
    """Publish with one system call for each byte."""
    connection = opened(target)
    content = Content(body=bytes(16), is_persistent=False, frame_size_max=4096)
    data = encode_publish(("", declare_bounded(connection, 1000)), content)
    with contextlib.suppress(OSError):
        while not stop.is_set():
            for at in range(len(data)):
                connection.socket.send(data[at : at + 1])
    connection.socket.close()


def stop_reading(target: Target, stop: Stop) -> None:
    """Open ten consumers that never read, of bounded queues that are published to continuously."""
    consumers = [opened(target) for _ in range(10)]
    queues = [declare_bounded(connection, 1000) for connection in consumers]
    _deafen(consumers, queues, is_automatic=True)
    _publish_to(target, queues, stop, is_persistent=False)
    for connection in consumers:
        connection.socket.close()


def stop_reading_durable(queues: Sequence[str], target: Target, stop: Stop) -> None:
    """Open a consumer of each queue that never reads, and publish persistent messages continuously."""
    consumers = [opened(target) for _ in queues]
    _deafen(consumers, queues, is_automatic=False)
    _publish_to(target, queues, stop, is_persistent=True)
    for connection in consumers:
        connection.socket.close()


def publish_persistently(queue: str, target: Target, stop: Stop) -> None:
    """Publish persistent messages as fast as the socket accepts, without confirms."""
    _publish_to(target, [queue], stop, is_persistent=True)


def consume_idly(queue: str, target: Target, stop: Stop) -> None:
    """Open a thousand consumers that take one message each, if there are any, and never acknowledge it."""
    raise_open_files_limit()
    links = [opened(target) for _ in range(1000)]
    for connection in links:
        connection.call(CHANNEL, BasicQos(prefetch_count=1), BasicQosOk)
        connection.call(CHANNEL, BasicConsume(queue=queue, consumer_tag="c"), BasicConsumeOk)
    stop.wait()
    for connection in links:
        connection.socket.close()


def fill_stream(target: Target, queue: str, count: int) -> None:
    """Publish `count` messages of 1 KiB to a stream; returns when they can be read."""
    connection = opened(target)
    declare = QueueDeclare(queue=queue, durable=True, arguments={"x-queue-type": "stream"})
    connection.call(CHANNEL, declare, QueueDeclareOk)
    content = Content(body=bytes(1024), is_persistent=True, frame_size_max=connection.frame_size_max)
    data = encode_publish(("", queue), content) * FILLED_AT_ONCE
    for _ in range(count // FILLED_AT_ONCE):
        connection.socket.sendall(data)
    passive = QueueDeclare(queue=queue, passive=True)
    while connection.call(CHANNEL, passive, QueueDeclareOk).message_count < count:
        time.sleep(0.05)
    connection.socket.close()


def read_rows_endlessly(queue: str, port: int, target: Target, stop: Stop) -> None:
    """Read a whole stream as Arrow rows over the HTTP API as fast as possible, repeatedly."""
    token = base64.b64encode(f"{target.user}:{target.password}".encode()).decode()
    place = f"/api/warren/streams/{quote(target.vhost, safe='')}/{queue}/rows"
    while not stop.is_set():
        connection = http.client.HTTPConnection(target.host, port)
        connection.request("GET", place, headers={"authorization": f"Basic {token}"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        while not stop.is_set() and answer.read(READ_BYTES):
            pass
        connection.close()


def _deafen(consumers: Sequence[BlockingConnection], queues: Sequence[str], *, is_automatic: bool) -> None:
    """Consume each queue over a connection with a small socket buffer that is never read."""
    for connection, queue in zip(consumers, queues, strict=True):
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES_MIN)
        consume = BasicConsume(queue=queue, consumer_tag="c", no_ack=is_automatic)
        connection.call(CHANNEL, consume, BasicConsumeOk)


def _publish_to(target: Target, queues: Sequence[str], stop: Stop, *, is_persistent: bool) -> None:
    """Publish 1 KiB to each queue in turn as fast as the socket accepts."""
    connection = opened(target)
    content = Content(body=bytes(1024), is_persistent=is_persistent, frame_size_max=connection.frame_size_max)
    data = PublishRing([("", queue) for queue in queues], content).take(0, 200)
    connection.socket.settimeout(SEND_S_MAX)
    with contextlib.suppress(OSError):
        while not stop.is_set():
            connection.socket.sendall(data)
    connection.socket.close()


def opened(target: Target) -> BlockingConnection:
    """Open a connection with channel 1; closing its socket sends no close method."""
    connection = open_connection(target)
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.open_channel(CHANNEL)
    return connection


def declare_bounded(connection: BlockingConnection, length_max: int) -> str:
    """Declare a queue that drops its oldest messages when it is full."""
    declare = QueueDeclare(exclusive=True, arguments={"x-max-length": length_max})
    return connection.call(CHANNEL, declare, QueueDeclareOk).queue
