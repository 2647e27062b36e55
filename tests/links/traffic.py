"""Publishers and a consumer that stay at work while brokers are killed and links are cut.

A message is identified by its source and its serial. A publisher never publishes a serial again, also if it
does not know whether the message is confirmed; so what arrives twice was duplicated by a link.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, NamedTuple

import pika
from pika.exceptions import AMQPError

RECONNECT_S = 0.2
# Publishes without a confirm, and those between two reads of the socket.
WINDOW, BATCH = 2_000, 50
BODY_BYTES = 100
# The source of messages that are not counted: they are published until a link has made its queue.
PROBE = "probe"
_PERSISTENT = pika.BasicProperties(delivery_mode=2)


class Copy(NamedTuple):
    """A message that has arrived."""

    source: str
    serial: int
    # Whether the link has received it as redelivered; None if it does not say so.
    is_redelivered: bool | None


class Publisher:
    """Publishes at `rate` per second until `count` messages are confirmed."""

    def __init__(self, source: str, port: int, address: tuple[str, str], *, count: int, rate: float) -> None:
        self.source = source
        self._port = port
        self._exchange, self._key = address
        self._count = count
        self._rate = rate
        # Messages with the serials up to this one were published.
        self.published = 0
        self.confirmed: set[int] = set()
        self.unroutable = 0
        # Delivery tag -> serial, in order.
        self._unconfirmed: dict[int, int] = {}
        self._tag = 0
        self._is_ending = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=source)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """True if `count` messages are confirmed."""
        return len(self.confirmed) == self._count

    def end(self) -> None:
        """Publish no more."""
        self._is_ending.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._is_ending.is_set() and not self.is_done:
                try:
                    self._publish_until_lost()
                except (AMQPError, OSError):
                    self._is_ending.wait(RECONNECT_S)
        except BaseException as error:
            self.error = error

    def _publish_until_lost(self) -> None:
        connection = _connected(self._port)
        channel = connection.channel()._impl
        channel.confirm_delivery(self._answered)
        channel.add_on_return_callback(self._returned)
        self._unconfirmed.clear()
        self._tag = 0
        started, before = time.monotonic(), len(self.confirmed)
        while not self._is_ending.is_set() and not self.is_done:
            due = min(self._count, before + int((time.monotonic() - started) * self._rate))
            behind = due - len(self.confirmed) - len(self._unconfirmed)
            possible = min(BATCH, WINDOW - len(self._unconfirmed), behind)
            for _ in range(possible):
                self._publish(channel)
            connection.process_data_events(0 if possible == BATCH else 0.01)
        connection.close()

    def _publish(self, channel: Any) -> None:
        body = b"%s %d " % (self.source.encode(), self.published)
        self._tag += 1
        self._unconfirmed[self._tag] = self.published
        self.published += 1
        channel.basic_publish(self._exchange, self._key, body.ljust(BODY_BYTES), _PERSISTENT, mandatory=True)

    def _answered(self, frame: Any) -> None:
        method = frame.method
        tags = [method.delivery_tag]
        if method.multiple:
            tags = list(takewhile(lambda tag: tag <= method.delivery_tag, self._unconfirmed))
        serials = [self._unconfirmed.pop(tag) for tag in tags]
        if isinstance(method, pika.spec.Basic.Ack):
            self.confirmed.update(serials)

    def _returned(self, *_: object) -> None:
        self.unroutable += 1


class Collector:
    """Takes all messages of a queue and acknowledges none, so that each of its sessions finds all of them."""

    def __init__(self, port: int, queue: str) -> None:
        self._port = port
        self._queue = queue
        self.sessions = 0
        # What the present session has received, in order.
        self.copies: list[Copy] = []
        # Everything that any session has received.
        self.seen: set[tuple[str, int]] = set()
        self._is_ending = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"collector of {queue}")
        self._thread.start()

    def has(self, wanted: set[tuple[str, int]]) -> bool:
        """True if the present session has received all of `wanted`."""
        copies = self.copies
        return len(copies) >= len(wanted) and wanted <= {copy[:2] for copy in copies}

    def end(self) -> None:
        """Take no more."""
        self._is_ending.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._is_ending.is_set():
                try:
                    self._consume_until_lost()
                except (AMQPError, OSError):
                    self._is_ending.wait(RECONNECT_S)
        except BaseException as error:
            self.error = error

    def _consume_until_lost(self) -> None:
        connection = _connected(self._port)
        channel = connection.channel()
        copies: list[Copy] = []
        self.copies = copies
        self.sessions += 1

        def received(_channel: object, _method: object, properties: Any, body: bytes) -> None:
            source, serial, *_ = body.split()
            passed = (properties.headers or {}).get("x-received-from")
            copy = Copy(source.decode(), int(serial), passed[0]["redelivered"] if passed else None)
            copies.append(copy)
            self.seen.add(copy[:2])

        # Without the queue of events of the blocking channel, which doubles what a message costs.
        channel._impl.basic_consume(self._queue, received)
        while not self._is_ending.is_set():
            connection.process_data_events(0.1)
        connection.close()


class Findings(NamedTuple):
    """What has become of the messages of all publishers at one consumer."""

    # Confirmed to a publisher.
    messages: int
    # Those of them that have not arrived.
    lost: int
    # Copies of a message beyond the first.
    duplicates: int
    # Those of them of which the link knows that they were not redelivered to it.
    duplicates_at_first_delivery: int
    # First copies that arrived behind a later message of their source.
    late: int
    # Those of them of which the link knows that they were not redelivered to it.
    late_at_first_delivery: int
    # Messages that nobody has published.
    unknown: int
    # Messages that were published and not confirmed: a broker was killed; they may arrive.
    unconfirmed: int
    # Messages for which the source had no queue.
    unroutable: int


def findings(publishers: Sequence[Publisher], collected: Sequence[Copy]) -> Findings:
    """Compare what was published with what has arrived."""
    copies = [copy for copy in collected if copy.source != PROBE]
    arrived = {copy[:2] for copy in copies}
    published = {(each.source, serial) for each in publishers for serial in range(each.published)}
    confirmed = {(each.source, serial) for each in publishers for serial in each.confirmed}
    again, late = _again_and_late(copies)
    return Findings(
        messages=len(confirmed),
        lost=len(confirmed - arrived),
        duplicates=len(again),
        duplicates_at_first_delivery=sum(copy.is_redelivered is False for copy in again),
        late=len(late),
        late_at_first_delivery=sum(copy.is_redelivered is False for copy in late),
        unknown=len(arrived - published),
        unconfirmed=len(published) - len(confirmed),
        unroutable=sum(each.unroutable for each in publishers),
    )


def _again_and_late(copies: Sequence[Copy]) -> tuple[list[Copy], list[Copy]]:
    """Copies of what is there already, and first copies behind a later message of their source."""
    again, late = [], []
    newest: dict[str, int] = {}
    known: set[tuple[str, int]] = set()
    for copy in copies:
        if copy[:2] in known:
            again.append(copy)
            continue
        known.add(copy[:2])
        if copy.serial < newest.get(copy.source, -1):
            late.append(copy)
        else:
            newest[copy.source] = copy.serial
    return again, late


@contextmanager
def ending(*workers: Publisher | Collector) -> Iterator[None]:
    """The workers end with the block."""
    try:
        yield
    finally:
        for worker in workers:
            worker.end()


def _connected(port: int) -> pika.BlockingConnection:
    # Without heartbeats of its own: a broker that is killed closes its connections.
    parameters = pika.ConnectionParameters(
        "127.0.0.1", port, heartbeat=0, socket_timeout=20, stack_timeout=20, blocked_connection_timeout=120
    )
    return pika.BlockingConnection(parameters)
