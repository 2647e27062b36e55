"""Which deliveries of a broker were acknowledged, read from the bytes that its sockets received and sent."""

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.crash.simulated_files import Call

_GREETING = b"AMQP\x00\x00\x09\x01"
_METHOD, _BODY = 1, 3
_ACK, _DELIVER = (60, 80), (60, 60)
_FRAME_END = 0xCE
_FRAME = struct.Struct(">BHI")
# A frame, without its end: type, channel, payload.
Frame = tuple[int, int, bytes]


def acknowledged(calls: Iterable[Call]) -> set[bytes]:
    """The bodies of all deliveries whose acknowledgement the broker has read from a socket."""
    connections: dict[int, _Connection] = {}
    found: set[bytes] = set()
    for call in calls:
        if call.kind == "I":
            data = call.second
            if data.startswith(_GREETING):
                connections[call.at] = _Connection()
                data = data[len(_GREETING) :]
            if call.at in connections:
                found.update(connections[call.at].received(data))
        elif call.kind == "S" and call.at in connections:
            connections[call.at].sent(call.second)
    return found


class _Connection:
    """The deliveries of one connection; other methods than deliver and ack are ignored."""

    def __init__(self) -> None:
        self._in, self._out = bytearray(), bytearray()
        # Channel -> delivery tag -> body, in order.
        self._deliveries: dict[int, dict[int, bytes]] = defaultdict(dict)
        # Channel -> the tag whose body follows.
        self._tags: dict[int, int] = {}

    def sent(self, data: bytes) -> None:
        """The broker has sent `data`."""
        for kind, channel, payload in _frames(self._out, data):
            if kind == _METHOD:
                # What follows another method, as a basic.return, is not a delivery.
                self._tags.pop(channel, None)
                if struct.unpack_from(">HH", payload) == _DELIVER:
                    self._tags[channel] = struct.unpack_from(">Q", payload, 5 + payload[4])[0]
                    self._deliveries[channel][self._tags[channel]] = b""
            elif kind == _BODY and channel in self._tags:
                self._deliveries[channel][self._tags[channel]] += payload

    def received(self, data: bytes) -> Iterator[bytes]:
        """The broker has received `data`; yields the bodies that it acknowledges."""
        for kind, channel, payload in _frames(self._in, data):
            if kind != _METHOD or struct.unpack_from(">HH", payload) != _ACK:
                continue
            tag, is_multiple = struct.unpack_from(">QB", payload, 4)
            deliveries = self._deliveries[channel]
            tags = [number for number in deliveries if number <= tag] if is_multiple & 1 else [tag]
            for number in tags:
                yield deliveries.pop(number)


def _frames(waiting: bytearray, data: bytes) -> Iterator[Frame]:
    """The frames that are complete now."""
    waiting += data
    at = 0
    while len(waiting) - at >= _FRAME.size:
        kind, channel, size = _FRAME.unpack_from(waiting, at)
        if len(waiting) - at < size + 8:
            break
        if waiting[at + 7 + size] != _FRAME_END:
            # The number of the socket is that of another connection now, which is not one of AMQP.
            waiting.clear()
            return
        yield kind, channel, bytes(waiting[at + 7 : at + 7 + size])
        at += size + 8
    del waiting[:at]
