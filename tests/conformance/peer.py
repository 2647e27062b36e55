"""One end of an AMQP connection on a raw socket: it sends what it is told to, and stores what it receives.

It answers nothing by itself: no heartbeat, no close-ok.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from tests.conformance import protocol
from tests.conformance.protocol import METHODS_BY_ID, METHODS_BY_NAME

ALL_CAPABILITIES = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}


@dataclass(frozen=True)
class Event:
    """A received event: a method, 'header', 'body', 'heartbeat', 'protocol-header' or 'closed'."""

    channel: int
    name: str
    values: dict[str, Any]


class Mismatch(AssertionError):
    """The broker answered differently than expected."""


class Peer:
    """A socket to the broker, and what was received on it, by channel."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pending = bytearray()
        self._by_channel: dict[int, deque[Event]] = {}
        self.arrived: deque[Event] = deque()
        self.is_closed = False
        self.is_condemned = False
        self.is_released = False
        self.sent_at = time.monotonic()
        self.frame_size_max = 131072
        self.open_channels: set[int] = set()

    # --- sending ------------------------------------------------------------------------------

    def send(self, data: bytes, *, slowly: bool = False) -> None:
        """Send data; if the broker has closed, that is noticed when receiving."""
        self._socket.settimeout(60)
        with contextlib.suppress(ConnectionError):
            if slowly:
                for octet in data:
                    self._socket.sendall(bytes([octet]))
            else:
                self._socket.sendall(data)
        self.sent_at = time.monotonic()

    def send_method(self, channel: int, name: str, **values: Any) -> None:
        """Send one method frame."""
        payload = METHODS_BY_NAME[name].encode(values)
        self.send(protocol.encode_frame(protocol.METHOD, channel, payload))

    def shut_down(self) -> None:
        """Close the sending half."""
        self._socket.shutdown(socket.SHUT_WR)

    def disconnect(self) -> None:
        """Close the socket."""
        self._socket.close()
        self.is_closed = True

    # --- receiving ----------------------------------------------------------------------------

    def next_event(self, channel: int | None, timeout: float) -> Event | None:
        """The next event on `channel` (any channel if None), or None when `timeout` s have passed."""
        deadline = time.monotonic() + timeout
        while True:
            if channel is None and self.arrived:
                return self._take(self.arrived[0])
            if channel is not None and self._by_channel.get(channel):
                return self._take(self._by_channel[channel][0])
            if self.is_closed or not self._receive(deadline):
                return None

    def expect_method(self, channel: int, name: str, timeout: float = 10) -> dict[str, Any]:
        """The fields of the next event on `channel`, which is the method `name`."""
        event = self.next_event(channel, timeout)
        if event is None or event.name != name:
            raise Mismatch(f"{name} expected on channel {channel}, got {event}")
        return event.values

    def wait_closed(self, timeout: float) -> bool:
        """Whether the broker closes the socket within `timeout` s."""
        deadline = time.monotonic() + timeout
        while not self.is_closed and self._receive(deadline):
            pass
        return self.is_closed

    def put_back(self, event: Event) -> None:
        """Undo `next_event`: the event is the next one again."""
        self.arrived.appendleft(event)
        self._by_channel.setdefault(event.channel, deque()).appendleft(event)

    def _take(self, event: Event) -> Event:
        self.arrived.remove(event)
        self._by_channel[event.channel].remove(event)
        return event

    def _receive(self, deadline: float) -> bool:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return False
        self._socket.settimeout(remaining)
        try:
            data = self._socket.recv(262144)
        except TimeoutError:
            return False
        except OSError:
            data = b""
        if not data:
            self.is_closed = True
        self._pending += data
        self._cut()
        return True

    def _cut(self) -> None:
        while len(self._pending) >= 8:
            if self._pending[:4] == b"AMQP":
                self._keep(Event(0, "protocol-header", {"version": ".".join(map(str, self._pending[4:8]))}))
                del self._pending[:8]
                continue
            size = int.from_bytes(self._pending[3:7], "big")
            if len(self._pending) < size + 8:
                return
            if self._pending[size + 7] != protocol.FRAME_END:
                raise Mismatch(f"a frame of the broker does not end in 0xCE: {bytes(self._pending[:64])!r}")
            channel = int.from_bytes(self._pending[1:3], "big")
            self._keep(decode_event(self._pending[0], channel, bytes(self._pending[7 : size + 7])))
            del self._pending[: size + 8]

    def _keep(self, event: Event) -> None:
        if event.name == "channel.open-ok":
            self.open_channels.add(event.channel)
        elif event.name in ("channel.close", "channel.close-ok"):
            self.open_channels.discard(event.channel)
        elif event.name == "connection.close":
            self.is_condemned = True
        elif event.name == "connection.close-ok":
            self.is_released = True
        self.arrived.append(event)
        self._by_channel.setdefault(event.channel, deque()).append(event)

    # --- what is always the same -----------------------------------------------------------------

    def handshake(self, user: str, password: str, vhost: str, **options: Any) -> dict[str, Any]:
        """Perform the handshake up to connection.open-ok; returns the fields of connection.start."""
        self.send(protocol.HEADER_0_9_1)
        start = self.expect_method(0, "connection.start")
        capabilities = options.get("capabilities", ALL_CAPABILITIES)
        self.send_method(
            0,
            "connection.start-ok",
            client_properties={"product": "transcript", "capabilities": capabilities},
            mechanism="PLAIN",
            response=f"\0{user}\0{password}",
            locale="en_US",
        )
        tune = self.expect_method(0, "connection.tune")
        self.frame_size_max = options.get("frame_max", tune["frame_max"])
        self.send_method(
            0,
            "connection.tune-ok",
            channel_max=options.get("channel_max", tune["channel_max"]),
            frame_max=self.frame_size_max,
            heartbeat=options.get("heartbeat", 0),
        )
        self.send_method(0, "connection.open", virtual_host=vhost)
        self.expect_method(0, "connection.open-ok")
        return start


def decode_event(kind: int, channel: int, payload: bytes) -> Event:
    """The event of a frame."""
    if kind == protocol.METHOD:
        spec = METHODS_BY_ID[int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:4], "big")]
        return Event(channel, spec.name, spec.decode(payload))
    if kind == protocol.HEADER:
        body_size, properties = protocol.decode_header(payload)
        return Event(channel, "header", {"body_size": body_size, **properties})
    if kind == protocol.BODY:
        return Event(channel, "body", {"octets": payload.decode("utf-8", "surrogateescape")})
    if kind == protocol.HEARTBEAT and not payload:
        return Event(channel, "heartbeat", {})
    raise Mismatch(f"a frame of type {kind} with {len(payload)} bytes from the broker")
