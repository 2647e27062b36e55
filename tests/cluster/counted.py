"""Clients that count what was confirmed to publishers, and what consumers were given."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.adapters.utils.connection_workflow import AMQPConnectorException
from pika.exceptions import AMQPError, NackError, UnroutableError

# What a client of pika gets when its node is gone.
_LOST = (AMQPError, AMQPConnectorException, OSError)
PERSISTENT = pika.BasicProperties(delivery_mode=2)
# A client whose node is stopped gives up and goes to the next one.
_HEARTBEAT_S = 4
_PAUSE_S = 0.1


class _Client:
    """A thread that is connected to the first of its nodes that serves it."""

    def __init__(self, name: str, ports: Sequence[int]) -> None:
        self.name = name
        self._ports = list(ports)
        self._is_ending = threading.Event()
        self.failures: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self, seconds: float = 60) -> None:
        """Stop, and wait for the thread."""
        self._is_ending.set()
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"{self.name} does not end"

    def _run(self) -> None:
        while not self._is_ending.is_set():
            try:
                connection = connected(self._ports[0])
            except _LOST as error:
                self._failed(error)
                continue
            try:
                self._work(connection)
            except _LOST as error:
                self._failed(error)
            finally:
                with contextlib.suppress(*_LOST):
                    connection.close()

    def _failed(self, error: Exception) -> None:
        self.failures[type(error).__name__] += 1
        self._ports.append(self._ports.pop(0))
        time.sleep(_PAUSE_S)

    def _work(self, connection: pika.BlockingConnection) -> None:
        raise NotImplementedError


class CountedPublisher(_Client):
    """Publishes numbered persistent messages to queues in turn, each one confirmed before the next."""

    def __init__(self, name: str, ports: Sequence[int], queues: Sequence[str]) -> None:
        super().__init__(name, ports)
        self._queues = list(queues)
        self._number = 0
        # Bodies by queue.
        self.confirmed: dict[str, set[bytes]] = {queue: set() for queue in queues}
        self.nacked: Counter[str] = Counter()
        # The longest time without a confirm, by queue (s).
        self.gaps: dict[str, float] = dict.fromkeys(queues, 0.0)
        self._confirmed_at = dict.fromkeys(queues, time.monotonic())

    def _work(self, connection: pika.BlockingConnection) -> None:
        channel = connection.channel()
        channel.confirm_delivery()
        while not self._is_ending.is_set():
            for queue in self._queues:
                self._number += 1
                body = b"%s %d" % (self.name.encode(), self._number)
                try:
                    channel.basic_publish("", queue, body, PERSISTENT)
                except (NackError, UnroutableError):
                    self.nacked[queue] += 1
                    continue
                self.confirmed[queue].add(body)
                now = time.monotonic()
                self.gaps[queue] = max(self.gaps[queue], now - self._confirmed_at[queue])
                self._confirmed_at[queue] = now


class CountedConsumer(_Client):
    """Consumes one queue with acknowledgements; counts what came and what came again without a mark."""

    def __init__(self, name: str, ports: Sequence[int], queue: str) -> None:
        super().__init__(name, ports)
        self._queue = queue
        self.received: Counter[bytes] = Counter()
        # Bodies that came a second time and were not marked as redelivered.
        self.unmarked: list[bytes] = []

    def _work(self, connection: pika.BlockingConnection) -> None:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=50)
        for method, _, body in channel.consume(self._queue, inactivity_timeout=0.2):
            if self._is_ending.is_set():
                return
            if method is None:
                if not channel.is_open or not channel._consumer_infos:
                    # The server has cancelled it.
                    raise OSError("cancelled")
                continue
            self._record(body, is_marked=method.redelivered)
            self._settle(channel, method.delivery_tag)

    def _record(self, body: bytes, *, is_marked: bool) -> None:
        if self.received[body] and not is_marked:
            self.unmarked.append(body)
        self.received[body] += 1

    def _settle(self, channel: BlockingChannel, tag: int) -> None:
        channel.basic_ack(tag)


class RejectingConsumer(CountedConsumer):
    """Consumes one queue and rejects everything."""

    def _settle(self, channel: BlockingChannel, tag: int) -> None:
        channel.basic_reject(tag, requeue=False)


def connected(port: int) -> pika.BlockingConnection:
    """A connection to a node. Raises AMQPError or OSError."""
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            "127.0.0.1",
            port,
            heartbeat=_HEARTBEAT_S,
            blocked_connection_timeout=20,
            socket_timeout=5,
            stack_timeout=8,
        )
    )


def with_channel(port: int, work: Callable[[BlockingChannel], Any]) -> Any:
    """What `work` returns for a channel of a connection that is closed afterwards."""
    connection = connected(port)
    try:
        return work(connection.channel())
    finally:
        connection.close()


def drained(port: int, queue: str) -> list[bytes]:
    """All messages of a queue, which are acknowledged."""

    def drain(channel: BlockingChannel) -> list[bytes]:
        bodies = []
        while True:
            method, _, body = channel.basic_get(queue)
            if method is None:
                return bodies
            channel.basic_ack(method.delivery_tag)
            bodies.append(body)

    found: list[bytes] = with_channel(port, drain)
    return found
