"""A connection that consumes and counts deliveries."""

import socket
import ssl

from warren.blocking.connection import BlockingConnection
from warren.cli.perf.connection import NOT_NOW
from warren.cli.perf.delivery_counter import DeliveryCounter, Misaligned
from warren.cli.perf.histogram import Histogram
from warren.cli.perf.paced_producer import STAMPS
from warren.client.ack_writer import AckWriter, ack
from warren.client.errors import BrokerRefused
from warren.client.raw_frames import reason

CHANNEL = 1
RECEIVE_BYTES = 1 << 20
FLOOD_BYTES = 1 << 18  # this much in one read means that the consumer lags
SKIPS_MAX = 3  # number of reads that may be discarded unread after one that was verified


class PerfConsumer:
    """Counts deliveries by their bytes, and acknowledges every `ack_every` messages with one ack."""

    def __init__(self, connection: BlockingConnection, buffer: bytearray, *, ack_every: int) -> None:
        self.connection = connection
        self.consumed = 0
        self._socket = connection.socket
        self._buffer = buffer
        self._view = memoryview(buffer)
        self._deliveries = DeliveryCounter()
        self._ack_every = ack_every
        self._ack_writer = AckWriter(CHANNEL)
        self._acknowledged = 0
        self._is_held = False
        self._pending = b""
        self._skips = 0 if isinstance(self._socket, ssl.SSLSocket) else SKIPS_MAX

    def receive(self, now_ns: int) -> None:
        """Read and count deliveries. Raises BrokerRefused if the broker closes the connection."""
        try:
            received = self._socket.recv_into(self._buffer)
        except NOT_NOW:
            return
        if not received:
            raise BrokerRefused("the broker closed a consuming connection")
        self.count(self._view[:received], now_ns)
        if received >= FLOOD_BYTES and self._deliveries.length:
            self.skip()

    def skip(self) -> None:
        """Let the kernel discard received bytes unread; the next bytes that are read verify the count."""
        for _ in range(self._skips):
            try:
                skipped = self._socket.recv_into(self._buffer, 0, socket.MSG_TRUNC)
            except NOT_NOW:
                return
            self.consumed = self._deliveries.skip(skipped)
            if self._ack_every:
                self._acknowledge()
            if skipped < FLOOD_BYTES:
                return

    def count(self, data: memoryview, now_ns: int) -> None:
        """Count the deliveries in `data`, and acknowledge them."""
        try:
            self.consumed = self._deliveries.feed(data)
        except Misaligned as misaligned:
            raise BrokerRefused(reason(misaligned.data)) from None
        if self._ack_every:
            self._acknowledge()

    def flush(self) -> bool:
        """Write pending acknowledgements; False if the socket accepts only a part."""
        if self._pending:
            try:
                self._pending = self._pending[self._socket.send(self._pending) :]
            except NOT_NOW:
                return False
        return not self._pending

    def hold(self, *, is_held: bool) -> None:
        """Withhold acknowledgements, or send the withheld ones."""
        self._is_held = is_held
        if self._ack_every:
            self._acknowledge()

    def finish(self) -> None:
        """Write the remaining acknowledgements and close; after a timeout, close the socket at once."""
        if not self._pending:
            return
        try:
            self._socket.settimeout(1)
            self._socket.sendall(self._pending)
        except OSError:
            self._socket.close()

    def _acknowledge(self) -> None:
        if self._is_held:
            return
        tag = self.consumed - self.consumed % self._ack_every
        if tag > self._acknowledged:
            if self._ack_every == 1:
                self._pending += self._ack_writer.up_to(self._acknowledged, tag)
            else:
                self._pending += ack(CHANNEL, tag, is_multiple=True)
            self._acknowledged = tag


class LatencyConsumer(PerfConsumer):
    """A consumer that also reads the two timestamps in each body."""

    def __init__(
        self, connection: BlockingConnection, buffer: bytearray, *, ack_every: int, measured_from_ns: int
    ) -> None:
        super().__init__(connection, buffer, ack_every=ack_every)
        self.since_due = Histogram()
        self.since_sent = Histogram()
        self._measured_from_ns = measured_from_ns
        self._unread = b""  # the received part of an incomplete delivery

    def skip(self) -> None:
        """Do nothing: every message must be read."""

    def count(self, data: memoryview, now_ns: int) -> None:
        """Count the deliveries in `data`, and record their latencies."""
        super().count(data, now_ns)
        length = self._deliveries.length
        unread = self._unread + bytes(data)
        if not length:
            self._unread = unread
            return
        at = 0
        while len(unread) >= at + length:
            due_ns, sent_ns = STAMPS.unpack_from(unread, at + self._deliveries.body_at)
            if due_ns >= self._measured_from_ns:
                self.since_due.record(now_ns - due_ns)
                self.since_sent.record(now_ns - sent_ns)
            at += length
        self._unread = unread[at:]
