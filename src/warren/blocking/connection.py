"""A blocking connection: handshake, methods and their answers. Callers read content from the socket."""

import socket
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from warren.client.errors import BrokerRefused, malformed
from warren.client.uri import Target
from warren.errors import AmqpError
from warren.limits import FRAME_SIZE_MIN, MESSAGE_SIZE_MAX
from warren.wire.method import Method
from warren.wire.methods import (
    BasicReturn,
    ChannelClose,
    ChannelOpen,
    ChannelOpenOk,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    decode_method,
)

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
FRAME_HEADER = struct.Struct(">BHI")
FRAME_OVERHEAD = 8
METHOD_FRAME = 1
END = b"\xce"
FRAME_SIZE_MAX = 131_072  # proposed if the broker sets no limit
GOODBYE_S_MAX = 2
RECEIVE_BYTES = 65_536

Answer = TypeVar("Answer", bound=Method)


_BARE_SLASH = (
    "a URI that ends with a slash after its port names the virtual host with the empty name: "
    "omit the slash or write /%2f for the virtual host '/'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectOptions:
    """Options of a connection other than its address."""

    product: str
    # A broker sends connection.blocked and basic.cancel only to clients with these capabilities.
    capabilities: tuple[str, ...] = ()
    # Seconds; 0 disables heartbeats, so that the broker sends no unsolicited frames.
    heartbeat: int = 0
    answer_s_max: float = 60
    # None: the trusted certificates of the system.
    context: ssl.SSLContext | None = field(default=None, repr=False)


class BlockingConnection:
    """An open connection; the constructor connects and performs the handshake."""

    def __init__(self, target: Target, options: ConnectOptions) -> None:
        self.socket = _connect(target, options)
        self._received = bytearray()
        self.frame_size_max = FRAME_SIZE_MAX
        try:
            self._handshake(target, options)
        except BaseException:
            self.socket.close()
            raise

    def _handshake(self, target: Target, options: ConnectOptions) -> None:
        self.socket.sendall(PROTOCOL_HEADER)
        self.server_properties = self.expect(0, ConnectionStart).server_properties
        self.send(
            0,
            ConnectionStartOk(
                client_properties={
                    "product": options.product,
                    "capabilities": dict.fromkeys(options.capabilities, True),
                },
                mechanism="PLAIN",
                response=f"\0{target.user}\0{target.password}",
                locale="en_US",
            ),
        )
        tune = self.expect(0, ConnectionTune)
        if 0 < tune.frame_max < FRAME_SIZE_MIN:
            raise malformed(f"a maximum frame size of {tune.frame_max} bytes, less than {FRAME_SIZE_MIN}")
        self.frame_size_max = min(tune.frame_max or FRAME_SIZE_MAX, MESSAGE_SIZE_MAX)
        self.send(
            0,
            ConnectionTuneOk(
                channel_max=tune.channel_max, frame_max=self.frame_size_max, heartbeat=options.heartbeat
            ),
        )
        try:
            self.call(0, ConnectionOpen(virtual_host=target.vhost), ConnectionOpenOk)
        except BrokerRefused as error:
            if target.vhost or not error.code:
                raise
            raise BrokerRefused(f"{error}; {_BARE_SLASH}", error.code) from None

    def open_channel(self, channel: int = 1) -> None:
        """Open the channel number `channel`. Raises BrokerRefused."""
        self.call(channel, ChannelOpen(), ChannelOpenOk)

    def send(self, channel: int, method: Method) -> None:
        """Send one method. Raises BrokerRefused if the connection is lost."""
        try:
            self.socket.sendall(method_frame(channel, method))
        except OSError as error:
            raise BrokerRefused(f"the connection to the broker was lost: {error}") from error

    def call(self, channel: int, method: Method, answer: type[Answer]) -> Answer:
        """Send one method and return its answer. Raises BrokerRefused for a close."""
        self.send(channel, method)
        return self.expect(channel, answer)

    def call_many(
        self, channel: int, methods: list[Method], answer: type[Answer], *, window: int = 64
    ) -> None:
        """Send many methods with at most `window` unanswered, and wait for all answers."""
        for start in range(0, len(methods), window):
            part = methods[start : start + window]
            self.socket.sendall(b"".join(method_frame(channel, method) for method in part))
            for _ in part:
                self.expect(channel, answer)

    def expect(self, channel: int, answer: type[Answer]) -> Answer:
        """Return the next method of type `answer` on `channel`; other frames are skipped.

        Raises BrokerRefused for a close, or if the connection is lost.
        """
        while True:
            kind, number, payload = self._read_frame()
            if kind != METHOD_FRAME:
                continue
            method = decoded(payload)
            if isinstance(method, ConnectionClose | ChannelClose):
                raise closed(method)
            if number == channel and isinstance(method, answer):
                return method

    def take_unread(self) -> bytes:
        """Return the bytes received after the last answer; a reader of the socket starts with these."""
        unread = bytes(self._received)
        self._received.clear()
        return unread

    def close(self) -> None:
        """Send connection.close, wait briefly for the answer, and close the socket; errors are ignored."""
        try:
            self.socket.settimeout(GOODBYE_S_MAX)
            self.send(0, ConnectionClose(reply_code=200, reply_text="done"))
            goodbye = method_frame(0, ConnectionCloseOk())
            tail = b""
            while not tail.endswith(goodbye):
                data = self.socket.recv(RECEIVE_BYTES)
                if not data:
                    break
                tail = (tail + data)[-len(goodbye) :]
        except (OSError, BrokerRefused):
            pass  # already closed
        finally:
            self.socket.close()

    def _read_frame(self) -> tuple[int, int, bytes]:
        self._fill(lambda: len(self._received) >= FRAME_HEADER.size)
        kind, channel, size = FRAME_HEADER.unpack_from(self._received)
        if size > self.frame_size_max:
            raise malformed(f"a frame of {size} bytes, more than the agreed {self.frame_size_max}")
        self._fill(lambda: len(self._received) >= size + FRAME_OVERHEAD)
        if self._received[size + FRAME_HEADER.size] != END[0]:
            raise malformed("a frame without an end")
        payload = bytes(self._received[FRAME_HEADER.size : FRAME_HEADER.size + size])
        del self._received[: size + FRAME_OVERHEAD]
        return kind, channel, payload

    def _fill(self, is_enough: Callable[[], bool]) -> None:
        while not is_enough():
            try:
                data = self.socket.recv(RECEIVE_BYTES)
            except OSError as error:
                raise BrokerRefused(f"the connection to the broker was lost: {error}") from error
            if not data:
                raise BrokerRefused("the broker closed the connection") from EOFError()
            self._received += data


def _connect(target: Target, options: ConnectOptions) -> socket.socket:
    plain = socket.create_connection((target.host, target.port), options.answer_s_max)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not target.is_tls:
        return plain
    context = options.context or ssl.create_default_context()
    return context.wrap_socket(plain, server_hostname=target.host)


def decoded(payload: bytes) -> Method:
    """Decode a method that the broker sent. Raises BrokerRefused if it is not one of AMQP 0-9-1."""
    try:
        return decode_method(payload)
    except AmqpError as error:
        raise malformed(str(error)) from None


def method_frame(channel: int, method: Method) -> bytes:
    """Return the frame of `method`."""
    payload = method.encode()
    return FRAME_HEADER.pack(METHOD_FRAME, channel, len(payload)) + payload + END


def closed(method: ConnectionClose | ChannelClose) -> BrokerRefused:
    """Return a close of the broker as an exception."""
    return BrokerRefused(f"the broker answered {method.reply_code} {method.reply_text}", method.reply_code)


def reason(data: bytes) -> str:
    """Describe unexpected frames in `data`: the reason of a close or return, or the name of the method."""
    at = 0
    while len(data) >= at + FRAME_OVERHEAD:
        kind, _, size = FRAME_HEADER.unpack_from(data, at)
        if kind == METHOD_FRAME and len(data) >= at + FRAME_OVERHEAD + size:
            method = decoded(data[at + FRAME_HEADER.size : at + FRAME_HEADER.size + size])
            if isinstance(method, ConnectionClose | ChannelClose):
                return str(closed(method))
            if isinstance(method, BasicReturn):
                place = f"exchange {method.exchange!r}, routing key {method.routing_key!r}"
                return f"the broker returned a message: {method.reply_code} {method.reply_text} ({place})"
            return f"the broker sent an unexpected {method.name}"
        at += FRAME_OVERHEAD + size
    return f"the broker sent unexpected bytes: {data[:40].hex(' ')}"
