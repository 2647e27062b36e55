"""Connections with retries, and a consumer, over AMQP 0-9-1."""

import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

from pyspark_warren.deliveries import DeliveryReader
from pyspark_warren.options import BrokerOptions
from warren.blocking.connection import BlockingConnection, ConnectOptions
from warren.blocking.tls import TlsNames, client_context, refusal_hint, wants_certificate
from warren.client.ack_writer import ack
from warren.client.errors import BrokerRefused
from warren.client.raw_frames import closed, decoded
from warren.client.uri import ClientTls
from warren.wire.methods import (
    BasicCancel,
    BasicConsume,
    BasicConsumeOk,
    BasicQos,
    BasicQosOk,
    ChannelClose,
    ConnectionClose,
)

T = TypeVar("T")
CHANNEL = 1
RECEIVE_BYTES = 1_048_576
PRODUCT = "pyspark_warren"
# These let a failed login be told from a lost connection, and report a deleted queue to its consumer.
CAPABILITIES = ("authentication_failure_close", "consumer_cancel_notify", "publisher_confirms")
# 0 for a lost connection; 320 (0-9-1) for a connection that the broker closes because it stops.
_RETRYABLE_CODES = (0, 320)
WAIT_S = 0.2
WAIT_S_MAX = 5.0
# Detects a broker that vanished without closing the connection after about a minute; the default of Linux is
# two hours.
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


_TLS_NAMES = TlsNames(
    ca_file="'tls.caFile'", cert_file="'tls.certFile'", key_file="'tls.keyFile'",
    key_password="'tls.keyPassword'",
)  # fmt: skip


class Unreachable(BrokerRefused):
    """No connection could be opened, after all retries."""


def connect(broker: BrokerOptions) -> BlockingConnection:
    """Open a connection, with retries while the broker is unavailable. Raises Unreachable."""
    connect_options = ConnectOptions(
        product=PRODUCT,
        capabilities=CAPABILITIES,
        answer_s_max=broker.timeout_ms / 1000,
        context=tls_context(broker.tls) if broker.target.is_tls else None,
    )
    for wait_s in retry_delays(broker):
        try:
            link = BlockingConnection(broker.target, connect_options)
            _keep_alive(link.socket)
            return link
        except (OSError, BrokerRefused) as error:
            if wait_s is None or not is_retryable(error):
                host = f"{broker.target.host}:{broker.target.port}"
                hint = hint_of(error, broker.tls) if broker.target.is_tls else ""
                raise Unreachable(f"no connection to {host}: {error}{hint}") from error
        time.sleep(wait_s)
    raise AssertionError


def retry_delays(broker: BrokerOptions) -> Iterator[float | None]:
    """Yield the delay in seconds before each retry, then None.

    If attempts take long themselves, as with a host that does not answer, there are fewer than `retries`.
    """
    wait_s, planned_s, begun = WAIT_S, broker.timeout_ms / 1000, time.monotonic()
    planned_s += sum(min(WAIT_S * 2**number, WAIT_S_MAX) for number in range(broker.retries))
    for _ in range(broker.retries):
        if time.monotonic() - begun > planned_s:
            break
        yield wait_s
        wait_s = min(2 * wait_s, WAIT_S_MAX)
    yield None


def with_retries(broker: BrokerOptions, ask: Callable[[], T]) -> T:
    """Return `ask()`, retried while the broker is unavailable."""
    for wait_s in retry_delays(broker):
        try:
            return ask()
        except (OSError, BrokerRefused) as error:
            if wait_s is None or not is_retryable(error):
                raise
        time.sleep(wait_s)
    raise AssertionError


def is_retryable(error: Exception) -> bool:
    """Whether a retry can succeed: the connection was lost, or the broker is stopping."""
    is_final = isinstance(error, ssl.SSLCertVerificationError | Unreachable) or wants_certificate(
        error.__cause__ or error
    )
    return not is_final and getattr(error, "code", 0) in _RETRYABLE_CODES


def _keep_alive(endpoint: socket.socket) -> None:
    """Enable TCP keepalive; AMQP heartbeats would need a thread, since the reader is often busy."""
    endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        # Some systems lack some of these options.
        if hasattr(socket, name):
            endpoint.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def hint_of(error: Exception, tls: ClientTls) -> str:
    """Return advice for a failed TLS connection; an empty string if there is none."""
    if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
        return ". The port does not use TLS: amqps needs a TLS port, usually 5671"
    hint = refusal_hint(error, tls, _TLS_NAMES)
    return f"; {hint}" if hint else ""


def tls_context(tls: ClientTls) -> ssl.SSLContext:
    """Return the TLS context for AMQP and HTTPS connections."""
    return client_context(tls, _TLS_NAMES)


class AmqpConsumer:
    """A consumer on its own connection; with `offset` it reads a stream."""

    def __init__(self, broker: BrokerOptions, queue: str, *, prefetch: int, offset: Any = None) -> None:
        self._link = connect(broker)
        self.reader = DeliveryReader(is_stream=offset is not None, frame_size_max=self._link.frame_size_max)
        self._acked = 0
        try:
            self._link.open_channel(CHANNEL)
            begun = time.monotonic()
            self._link.call(CHANNEL, BasicQos(prefetch_count=prefetch), BasicQosOk)
            # How long the broker took to answer a request (s).
            self.round_trip_s = time.monotonic() - begun
            arguments = {} if offset is None else {"x-stream-offset": offset}
            consume = BasicConsume(queue=queue, consumer_tag="spark", arguments=arguments)
            self._link.call(CHANNEL, consume, BasicConsumeOk)
            self.reader.feed(self._link.take_unread())
        except BaseException:
            self._link.socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def receive(self, wait_s: float) -> bool:
        """Read for at most `wait_s` seconds; False if nothing arrived. Raises BrokerRefused for a close."""
        data = self.read(wait_s)
        if data:
            self.feed(data)
        return bool(data)

    def read(self, wait_s: float) -> bytes:
        """Read bytes without decoding them; b"" if none arrive within `wait_s` seconds."""
        endpoint = self._link.socket
        pending = isinstance(endpoint, ssl.SSLSocket) and endpoint.pending()
        if not pending and not select.select([endpoint], [], [], wait_s)[0]:
            return b""
        try:
            data = endpoint.recv(RECEIVE_BYTES)
        except OSError as error:
            raise BrokerRefused(f"the connection to the broker was lost: {error}") from error
        if not data:
            raise BrokerRefused("the broker closed the connection")
        return data

    def feed(self, data: bytes) -> None:
        """Decode bytes that were read. Raises BrokerRefused for a close, or a cancel of the consumer."""
        self.reader.feed(data)
        for payload in self.reader.methods:
            method = decoded(payload)
            if isinstance(method, ChannelClose | ConnectionClose):
                raise closed(method)
            if isinstance(method, BasicCancel):
                raise BrokerRefused("the broker cancelled the consumer: its queue was deleted", 404)
        self.reader.methods.clear()

    def ack(self, tag: int) -> None:
        """Acknowledge all messages up to `tag`."""
        if tag > self._acked:
            try:
                self._link.socket.sendall(ack(CHANNEL, tag, is_multiple=True))
            except OSError as error:
                raise BrokerRefused(f"the connection to the broker was lost: {error}") from error
            self._acked = tag

    def ack_half(self, prefetch: int) -> None:
        """Acknowledge received messages once they are half of `prefetch`, so that deliveries continue."""
        tag = self.reader.last_tag()
        if tag - self._acked >= (prefetch + 1) // 2:
            self.ack(tag)

    def close(self) -> None:
        """Close the connection; unacknowledged messages return to the queue."""
        self._link.close()
