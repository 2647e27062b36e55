"""Publishes over AMQP with publisher confirms."""

import select
import ssl
import time
from typing import Self

from pyspark_warren.amqp import CHANNEL, RECEIVE_BYTES, connect
from pyspark_warren.options import BrokerOptions
from warren.client.confirms import ConfirmCounter, UnexpectedBytes
from warren.client.raw_frames import reason
from warren.wire.methods import ConfirmSelect, ConfirmSelectOk

# Unconfirmed messages at a time: more than a broker receives during one sync of its disk.
WINDOW = 20_000
WRITE_BYTES = 262_144
# Reply code 320 (0-9-1): the broker is stopping, and is usually restarted.
_STOPPING = "the broker answered 320"


class PublishFailed(Exception):
    """The broker returned, rejected or did not confirm a message; the batch must be published again."""


class ConnectionLost(PublishFailed):
    """The connection was lost; unconfirmed messages can be published again over a new one."""


class AmqpPublisher:
    """A connection with one channel in confirm mode."""

    def __init__(self, broker: BrokerOptions) -> None:
        self._timeout_s = broker.timeout_ms / 1000
        self._link = connect(broker)
        try:
            self._link.open_channel(CHANNEL)
            self._link.call(CHANNEL, ConfirmSelect(), ConfirmSelectOk)
        except BaseException:
            self._link.socket.close()
            raise
        self.frame_size_max = self._link.frame_size_max
        self._socket = self._link.socket
        self._socket.setblocking(False)
        self._confirms = ConfirmCounter(CHANNEL)
        self._published = 0
        self._progress = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._socket.setblocking(True)
        self._link.close()

    def publish(self, frames: list[bytes]) -> None:
        """Publish messages, each one item of `frames`; wait while WINDOW messages are unconfirmed."""
        pieces: list[bytes] = []
        size = 0
        for message in frames:
            pieces.append(message)
            size += len(message)
            if size >= WRITE_BYTES:
                self._write(b"".join(pieces), len(pieces))
                pieces, size = [], 0
        if pieces:
            self._write(b"".join(pieces), len(pieces))

    def finish(self) -> None:
        """Return when all messages are confirmed. Raises PublishFailed with the reason if one is not."""
        while self._confirms.settled < self._published:
            self._wait(is_writing=False)

    def _write(self, data: bytes, count: int) -> None:
        self._published += count
        while self._published - self._confirms.settled > max(WINDOW, count):
            self._wait(is_writing=False)
        rest = memoryview(data)
        while rest:
            if not self._wait(is_writing=True):
                continue
            try:
                sent = self._socket.send(rest)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                continue
            except OSError as error:
                self._receive()
                raise ConnectionLost(f"the connection to the broker was lost: {error}") from error
            rest = rest[sent:]
            self._progress = time.monotonic()

    def _wait(self, *, is_writing: bool) -> bool:
        """Wait for confirms, or with `is_writing` for a writable socket; return whether it is writable."""
        readers, writers, _ = select.select(
            [self._socket], [self._socket] if is_writing else [], [], self._timeout_s
        )
        if readers or (isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()):
            self._receive()
        if time.monotonic() - self._progress > self._timeout_s:
            raise PublishFailed(
                f"no message was confirmed for {self._timeout_s:g} seconds: publishers are blocked by an "
                "alarm, or the broker is overloaded; timeoutMs sets how long to wait"
            )
        return bool(writers)

    def _receive(self) -> None:
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError as error:
            raise ConnectionLost(f"the connection to the broker was lost: {error}") from error
        if not data:
            raise ConnectionLost("the broker closed the connection")
        try:
            if self._confirms.feed(data, self._published):
                self._progress = time.monotonic()
        except UnexpectedBytes as stranger:
            told = self._close_reason(stranger.data)
            raise (ConnectionLost if told.startswith(_STOPPING) else PublishFailed)(told) from None
        if self._confirms.nacked:
            raise PublishFailed(f"the broker rejected {self._confirms.nacked} messages (basic.nack)")

    def _close_reason(self, data: bytes) -> str:
        """Return the reason in a frame that is not a confirm, after waiting up to a second for all of it."""
        deadline = time.monotonic() + 1
        while len(data) < 8 or len(data) < int.from_bytes(data[3:7], "big") + 8:
            if not select.select([self._socket], [], [], max(0.0, deadline - time.monotonic()))[0]:
                break
            more = self._socket.recv(RECEIVE_BYTES)
            if not more:
                break
            data += more
        return reason(data)
