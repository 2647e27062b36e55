"""What clients were told, read from the data that their broker received and sent, in the broker's
own order.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.crash.load import SHARED, SHARING
from tests.crash.simulated_files import Call

# The queues of a message, how many bytes of its body are missing, and the others.
Content: TypeAlias = tuple[tuple[str, ...], int, bytes]
_GREETING = b"AMQP\x00\x00\x09\x01"
_METHOD, _HEADER, _BODY = 1, 2, 3
_PUBLISH, _ACK, _DELIVER, _GET_OK = (60, 40), (60, 80), (60, 60), (60, 71)
_CONSUME, _GET, _GET_EMPTY = (60, 20), (60, 70), (60, 72)
_DECLARE, _DECLARE_OK, _DELETE, _DELETE_OK = (50, 10), (50, 11), (50, 40), (50, 41)


@dataclass
class WireHistory:
    """The history up to one call of the broker."""

    # Queue -> body -> whether it was confirmed.
    sent: dict[str, dict[bytes, bool]] = field(default_factory=lambda: defaultdict(dict))
    # Queue -> bodies whose acknowledgement the broker has received.
    acknowledged: dict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    asked: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    deleting: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    confirms: int = 0
    _connections: "dict[int, Connection]" = field(default_factory=dict)

    def take(self, call: Call) -> None:
        """Process one more call; calls that are not on sockets are skipped."""
        if call.kind == "I":
            if call.second.startswith(_GREETING):
                self._connections[call.at] = Connection(self)
                call = Call("I", call.at, b"", call.second[len(_GREETING) :])
            self._connections[call.at].received(call.second)
        elif call.kind == "S" and call.at in self._connections:
            self._connections[call.at].sent(call.second)


class Connection:
    """One client with one channel."""

    def __init__(self, history: WireHistory) -> None:
        self._history = history
        self._in = bytearray()
        self._out = bytearray()
        # The message whose content is in progress: its queues, how many bytes are missing, and its body.
        self._incoming: Content = ((), 0, b"")
        self._outgoing: Content = ((), 0, b"")
        self._tag = 0
        self._published: dict[int, tuple[tuple[str, ...], bytes]] = {}
        self._deliveries: dict[int, tuple[tuple[str, ...], bytes]] = {}
        self._deleting: list[str] = []
        # The queue of each consumer, and those of the gets that are not answered.
        self._consumed: dict[str, str] = {}
        self._getting: list[str] = []

    def received(self, data: bytes) -> None:
        """The client has sent data."""
        history = self._history
        for kind, payload in _frames(self._in, data):
            if kind == _METHOD:
                method, rest = struct.unpack_from(">HH", payload), payload[4:]
                if method == _PUBLISH:
                    exchange, behind = _short(rest, 2)
                    assert exchange in ("", SHARING), exchange
                    queues = SHARED if exchange else (_short(rest, behind)[0],)
                    self._incoming = (queues, -1, b"")
                elif method == _ACK:
                    for queues, body in _settled(self._deliveries, rest):
                        for queue in queues:
                            history.acknowledged[queue].add(body)
                elif method == _CONSUME:
                    queue, behind = _short(rest, 2)
                    self._consumed[_short(rest, behind)[0]] = queue
                elif method == _GET:
                    self._getting.append(_short(rest, 2)[0])
                elif method == _DECLARE:
                    history.asked.add(_short(rest, 2)[0])
                elif method == _DELETE:
                    self._deleting.append(_short(rest, 2)[0])
                    history.deleting.add(self._deleting[-1])
            else:
                self._incoming = _content(self._incoming, kind, payload)
                queues, missing, body = self._incoming
                if not missing:
                    self._published[len(self._published) + 1] = (queues, body)
                    for queue in queues:
                        history.sent[queue].setdefault(body, False)
        return

    def sent(self, data: bytes) -> None:
        """The broker has sent data."""
        history = self._history
        for kind, payload in _frames(self._out, data):
            if kind == _METHOD:
                method, rest = struct.unpack_from(">HH", payload), payload[4:]
                if method == _ACK:
                    # Nothing that was confirmed before can be confirmed again.
                    for queues, body in _settled(self._published, rest, is_kept=True):
                        for queue in queues:
                            history.sent[queue][body] = True
                        history.confirms += 1
                elif method == _DELIVER:
                    consumer, at = _short(rest, 0)
                    self._tag = struct.unpack_from(">Q", rest, at)[0]
                    self._outgoing = ((self._consumed[consumer],), -1, b"")
                elif method == _GET_OK:
                    self._tag = struct.unpack_from(">Q", rest)[0]
                    self._outgoing = ((self._getting.pop(0),), -1, b"")
                elif method == _GET_EMPTY:
                    self._getting.pop(0)
                elif method == _DECLARE_OK:
                    history.declared.add(_short(rest, 0)[0])
                elif method == _DELETE_OK:
                    history.deleted.add(self._deleting.pop(0))
            elif kind in (_HEADER, _BODY):
                self._outgoing = _content(self._outgoing, kind, payload)
                queues, missing, body = self._outgoing
                if not missing:
                    self._deliveries[self._tag] = (queues, body)


def _frames(waiting: bytearray, data: bytes) -> Iterator[tuple[int, bytes]]:
    """The frames of a channel that are complete now."""
    waiting += data
    while len(waiting) >= 7:
        kind, channel, size = struct.unpack_from(">BHI", waiting)
        if len(waiting) < size + 8:
            return
        payload = bytes(waiting[7 : 7 + size])
        del waiting[: size + 8]
        if channel:
            yield kind, payload


def _short(data: bytes, at: int) -> tuple[str, int]:
    """The short string at `at`, and the rest."""
    end = at + 1 + data[at]
    return data[at + 1 : end].decode(), end


def _content(under_way: Content, kind: int, payload: bytes) -> Content:
    queues, missing, body = under_way
    if kind == _HEADER:
        return queues, struct.unpack_from(">Q", payload, 4)[0], b""
    return queues, missing - len(payload), body + payload


def _settled(
    waiting: dict[int, tuple[tuple[str, ...], bytes]], rest: bytes, *, is_kept: bool = False
) -> list[tuple[tuple[str, ...], bytes]]:
    """The numbers that an acknowledgement covers; persistent messages continue to be counted."""
    tag, flags = struct.unpack_from(">QB", rest)
    tags = [number for number in waiting if number <= tag] if flags & 1 else [tag]
    found = [waiting[number] for number in tags]
    if is_kept:
        return found
    for number in tags:
        del waiting[number]
    return found
