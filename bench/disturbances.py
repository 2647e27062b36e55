"""Clients that behave badly, each in a process of its own until the block ends."""

import contextlib
import multiprocessing
import multiprocessing.synchronize
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator

from warren.cli.perf.crew import raise_open_files_limit
from warren.cli.perf.link import Link, method_frame
from warren.cli.perf.publication import Content, Publication, encode_publish
from warren.cli.perf.uri import Target
from warren.wire.methods import BasicConsume, BasicConsumeOk, QueueDeclare, QueueDeclareOk

CHANNEL = 1
RECEIVE_BYTES_MIN = 4096
STOP_S_MAX = 30

Stop = multiprocessing.synchronize.Event
Behaviour = Callable[[Target, Stop], None]


@contextlib.contextmanager
def misbehaving(behaviour: Behaviour, target: Target, *, count: int = 1) -> Iterator[None]:
    """`count` processes that behave like this."""
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
    """Publish as fast as the socket takes it to a queue of bounded length that nobody reads."""
    link = opened(target)
    queue = declare_bounded(link, 1000)
    content = Content(body=bytes(1024), is_persistent=False, frame_size_max=link.frame_size_max)
    publication = Publication([("", queue)], content)
    octets = publication.take(0, 200)
    link.socket.settimeout(1)
    with contextlib.suppress(OSError):
        while not stop.is_set():
            link.socket.sendall(octets)
    link.socket.close()


def declare_endlessly(target: Target, stop: Stop) -> None:
    """Declare and never wait: queue after queue, exclusive so that they end with the connection."""
    link = opened(target)
    number = 0
    link.socket.settimeout(5)
    with contextlib.suppress(OSError):
        while not stop.is_set():
            declares = [
                QueueDeclare(queue=f"d{os.getpid()}.{number + i}", exclusive=True) for i in range(100)
            ]
            link.socket.sendall(b"".join(method_frame(CHANNEL, declare) for declare in declares))
            for _ in declares:
                link.expect(CHANNEL, QueueDeclareOk)
            number += 100
    link.socket.close()


def reconnect_endlessly(target: Target, stop: Stop) -> None:
    """Connect, open a channel and vanish without a word, again and again."""
    while not stop.is_set():
        with contextlib.suppress(OSError):
            opened(target).socket.close()


def trickle(target: Target, stop: Stop) -> None:
    """Five thousand connections, each of which sends one small message now and then."""
    raise_open_files_limit()
    links = []
    for _ in range(5000):
        if stop.is_set():
            break
        links.append(opened(target))
    octets = encode_publish(("", "nobody"), Content(body=bytes(16), is_persistent=False, frame_size_max=4096))
    at = 0
    while not stop.is_set():
        for link in links[at : at + 50]:
            link.socket.sendall(octets)
        at = (at + 50) % len(links)
        time.sleep(0.01)
    for link in links:
        link.socket.close()


def send_octet_by_octet(target: Target, stop: Stop) -> None:
    """Publish with one system call for each octet."""
    link = opened(target)
    content = Content(body=bytes(16), is_persistent=False, frame_size_max=4096)
    octets = encode_publish(("", declare_bounded(link, 1000)), content)
    with contextlib.suppress(OSError):
        while not stop.is_set():
            for at in range(len(octets)):
                link.socket.send(octets[at : at + 1])
    link.socket.close()


def stop_reading(target: Target, stop: Stop) -> None:
    """Ten consumers that never read, of queues of bounded length that are published to without end."""
    publisher = opened(target)
    consumers = [opened(target) for _ in range(10)]
    queues = []
    for link in consumers:
        link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES_MIN)
        queue = link.call(
            CHANNEL,
            QueueDeclare(exclusive=True, arguments={"x-max-length": 1000}),
            QueueDeclareOk,
        ).queue
        link.call(CHANNEL, BasicConsume(queue=queue, consumer_tag="c", no_ack=True), BasicConsumeOk)
        queues.append(queue)
    content = Content(body=bytes(1024), is_persistent=False, frame_size_max=publisher.frame_size_max)
    octets = b"".join(encode_publish(("", queue), content) for queue in queues)
    publisher.socket.settimeout(1)
    with contextlib.suppress(OSError):
        while not stop.is_set():
            publisher.socket.sendall(octets)
    for link in [publisher, *consumers]:
        link.socket.close()


def opened(target: Target) -> Link:
    """A connection with channel 1, which vanishes without lingering when its socket is closed."""
    link = Link(target)
    link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.open_channel(CHANNEL)
    return link


def declare_bounded(link: Link, length_max: int) -> str:
    """A queue that drops its oldest messages when it is full."""
    declare = QueueDeclare(exclusive=True, arguments={"x-max-length": length_max})
    return link.call(CHANNEL, declare, QueueDeclareOk).queue
