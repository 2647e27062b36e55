"""Messages of equal length that are encoded once and published repeatedly."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from warren.wire.methods import BasicPublish
from warren.wire.properties import BasicProperties

CHUNK_BYTES = 262_144  # maximum size of one system call
CHANNEL = 1
_FRAME_HEADER = struct.Struct(">BHI")
_FRAME_OVERHEAD = 8
_END = b"\xce"
_METHOD, _HEADER, _BODY = 1, 2, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The properties and the body of every message of a load."""

    body: bytes
    is_persistent: bool
    frame_size_max: int


class PublishRing:
    """A ring of at least one chunk of encoded messages, to each of `routes` in turn."""

    __slots__ = ("_count", "_encoded", "body_at", "length")

    def __init__(self, routes: Sequence[tuple[str, str]], content: Content) -> None:
        messages = [encode_publish(route, content) for route in routes]
        self.length = len(messages[0])
        if any(len(message) != self.length for message in messages):
            raise ValueError("the exchanges and routing keys of a load must have equal lengths")
        repeats = -(-CHUNK_BYTES // (self.length * len(messages)))
        self._count = repeats * len(messages)
        self._encoded = memoryview(b"".join(messages) * repeats)
        self.body_at = self.length - len(encode_body(content))
        if content.body:
            self.body_at += _FRAME_HEADER.size

    def take(self, sequence: int, count: int) -> memoryview:
        """Return at most `count` messages, and at most a chunk, from message number `sequence` on."""
        start = sequence % self._count
        count = min(count, self._count - start, max(1, CHUNK_BYTES // self.length))
        return self._encoded[start * self.length : (start + count) * self.length]


def encode_publish(route: tuple[str, str], content: Content) -> bytes:
    """Encode one message for the exchange and routing key in `route`: method, header and body frames."""
    exchange, routing_key = route
    method = BasicPublish(exchange=exchange, routing_key=routing_key).encode()
    properties = BasicProperties(delivery_mode=2 if content.is_persistent else None)
    header = properties.encode(len(content.body))
    return _frame(_METHOD, method) + _frame(_HEADER, header) + encode_body(content)


def encode_body(content: Content) -> bytes:
    """Encode the body in as few frames as possible."""
    step = content.frame_size_max - _FRAME_OVERHEAD
    parts = range(0, len(content.body), step)
    return b"".join(_frame(_BODY, content.body[start : start + step]) for start in parts)


def _frame(kind: int, payload: bytes) -> bytes:
    return _FRAME_HEADER.pack(kind, CHANNEL, len(payload)) + payload + _END
