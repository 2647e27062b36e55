"""A connection to the broker under load: blocking while it is set up, then handed to the load loop."""

import socket
import ssl
import struct
from collections.abc import Callable
from typing import TypeVar

from warren.cli.perf.uri import Target
from warren.wire.method import Method
from warren.wire.methods import (
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
FRAME_SIZE_MAX = 131_072  # asked for when the broker sets no limit
ANSWER_S_MAX = 60
GOODBYE_S_MAX = 2
RECEIVE_BYTES = 65_536
NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

Answer = TypeVar("Answer", bound=Method)


class BrokerRefused(Exception):
    """The broker closed the channel or the connection, or went away; the text says what it gave as reason."""


class Link:
    """One connection, its handshake done; heartbeats are off so that the stream holds nothing unasked."""

    def __init__(self, target: Target) -> None:
        self.socket = connect(target)
        self._received = bytearray()
        self.frame_size_max = FRAME_SIZE_MAX
        self.socket.sendall(PROTOCOL_HEADER)
        self.expect(0, ConnectionStart)
        # No capabilities: a broker sends connection.blocked and basic.cancel only to those who know them.
        self.send(
            0,
            ConnectionStartOk(
                client_properties={"product": "warren perf"},
                mechanism="PLAIN",
                response=f"\0{target.user}\0{target.password}",
                locale="en_US",
            ),
        )
        tune = self.expect(0, ConnectionTune)
        self.frame_size_max = tune.frame_max or FRAME_SIZE_MAX
        tuned = ConnectionTuneOk(channel_max=tune.channel_max, frame_max=self.frame_size_max, heartbeat=0)
        self.send(0, tuned)
        self.call(0, ConnectionOpen(virtual_host=target.vhost), ConnectionOpenOk)

    def open_channel(self, channel: int = 1) -> None:
        """Open channel number `channel`."""
        self.call(channel, ChannelOpen(), ChannelOpenOk)

    def send(self, channel: int, method: Method) -> None:
        """Write one method."""
        self.socket.sendall(method_frame(channel, method))

    def call(self, channel: int, method: Method, answer: type[Answer]) -> Answer:
        """Write one method and wait for its answer."""
        self.send(channel, method)
        return self.expect(channel, answer)

    def call_many(
        self, channel: int, methods: list[Method], answer: type[Answer], *, window: int = 64
    ) -> None:
        """Write many methods, at most `window` of them ahead of their answers."""
        for start in range(0, len(methods), window):
            part = methods[start : start + window]
            self.socket.sendall(b"".join(method_frame(channel, method) for method in part))
            for _ in part:
                self.expect(channel, answer)

    def expect(self, channel: int, answer: type[Answer]) -> Answer:
        """Wait for `answer` on `channel`; the broker must not send anything else there."""
        while True:
            kind, number, payload = self._read_frame()
            if kind != METHOD_FRAME:
                continue
            method = decode_method(payload)
            if isinstance(method, ConnectionClose | ChannelClose):
                raise BrokerRefused(f"the broker answered {method.reply_code} {method.reply_text}")
            if number == channel and isinstance(method, answer):
                return method

    def take_unread(self) -> bytes:
        """What has arrived behind the last answer; whoever reads the socket from now on begins with it."""
        unread = bytes(self._received)
        self._received.clear()
        return unread

    def close(self) -> None:
        """Say goodbye, discard what still arrives, and close the socket."""
        try:
            self.socket.settimeout(GOODBYE_S_MAX)
            self.send(0, ConnectionClose(reply_code=200, reply_text="done"))
            goodbye = method_frame(0, ConnectionCloseOk())
            tail = b""
            while not tail.endswith(goodbye):
                octets = self.socket.recv(RECEIVE_BYTES)
                if not octets:
                    break
                tail = (tail + octets)[-len(goodbye) :]
        except OSError:
            pass  # it is gone already, which is what was wanted
        finally:
            self.socket.close()

    def _read_frame(self) -> tuple[int, int, bytes]:
        self._fill(lambda: len(self._received) >= FRAME_HEADER.size)
        kind, channel, size = FRAME_HEADER.unpack_from(self._received)
        self._fill(lambda: len(self._received) >= size + FRAME_OVERHEAD)
        payload = bytes(self._received[FRAME_HEADER.size : FRAME_HEADER.size + size])
        del self._received[: size + FRAME_OVERHEAD]
        return kind, channel, payload

    def _fill(self, is_enough: Callable[[], bool]) -> None:
        while not is_enough():
            try:
                octets = self.socket.recv(RECEIVE_BYTES)
            except OSError as error:
                raise BrokerRefused(f"the broker went away: {error}") from error
            if not octets:
                raise BrokerRefused("the broker closed the socket")
            self._received += octets


def connect(target: Target) -> socket.socket:
    """A socket to `target`; a certificate is not checked, since all that travels is invented."""
    plain = socket.create_connection((target.host, target.port), ANSWER_S_MAX)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not target.is_tls:
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(plain, server_hostname=target.host)


def method_frame(channel: int, method: Method) -> bytes:
    """The frame of `method`."""
    payload = method.encode()
    return FRAME_HEADER.pack(METHOD_FRAME, channel, len(payload)) + payload + END


def reason(octets: bytes) -> str:
    """What the broker says in `octets`, where something else was expected: a close, or not even that."""
    at = 0
    while len(octets) >= at + FRAME_OVERHEAD:
        kind, _, size = FRAME_HEADER.unpack_from(octets, at)
        if kind == METHOD_FRAME and len(octets) >= at + FRAME_OVERHEAD + size:
            method = decode_method(octets[at + FRAME_HEADER.size : at + FRAME_HEADER.size + size])
            if isinstance(method, ConnectionClose | ChannelClose):
                return f"the broker answered {method.reply_code} {method.reply_text}"
            return f"the broker sent an unexpected {method.name}"
        at += FRAME_OVERHEAD + size
    return f"the broker sent something unexpected: {octets[:40].hex(' ')}"
