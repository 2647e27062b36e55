"""Executes the C lines of a transcript, with one `Peer` per connection."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any

from tests.conformance import notation, protocol
from tests.conformance.notation import LineReader
from tests.conformance.peer import ALL_CAPABILITIES, Mismatch, Peer
from tests.conformance.tables import encode_text

# The name of the vhost in transcripts; several transcripts run at once, each in a separate vhost.
VHOST = "conformance"
USER, PASSWORD = "alice", "alice-password"
_BROKEN_LINE = re.compile(r"\n +")
_TIMES = re.compile(r"(\d+) times\s+")
_CHANNELS = re.compile(r"(\d+)(?:\.\.(\d+))?\s+")
_LAST = ("connection.close-ok", "connection.close")
_DECLARED = {"queue.declare": "queue", "exchange.declare": "exchange"}


class MissingResource(Exception):
    """A resource that the transcript needs is not available, which is not an error of the broker."""


@dataclass
class TranscriptContext:
    """The broker and the vhost of a transcript."""

    host: str
    port: int
    vhost: str
    is_rabbitmq: bool = False
    outside: tuple[str, int] | None = None
    # Each queue that the transcript declares is a quorum queue.
    is_quorum: bool = False
    # Answers have to be those of RabbitMQ 4, with all headers that it adds.
    is_rabbitmq_4: bool = False

    def plain(self, value: Any) -> Any:
        """`value` with the name of the vhost that transcripts use."""
        if isinstance(value, str):
            # RabbitMQ breaks long Erlang terms into lines, indented by different amounts.
            return _BROKEN_LINE.sub(" ", value.replace(self.vhost, VHOST))
        if isinstance(value, dict):
            return {key: self.plain(member) for key, member in value.items()}
        if isinstance(value, list):
            return [self.plain(member) for member in value]
        return value


@dataclass
class Client:
    """The connections of one transcript."""

    context: TranscriptContext
    peers: dict[int, Peer] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    declared: set[tuple[str, str]] = field(default_factory=set)
    failed: bool = True

    def perform(self, number: int, text: str) -> None:
        """Execute one C line."""
        slowly = text.startswith("slowly ")
        text = text.removeprefix("slowly ")
        times = _TIMES.match(text)
        if times:
            text = text[times.end() :]
        channels = _CHANNELS.match(text)
        first = int(channels[1]) if channels else 0
        last = int(channels[2] or first) if channels else 0
        line = LineReader(text[channels.end() :] if channels else text)
        verb = line.word()
        if verb in ("socket", "connect"):
            self._open(number, verb, line.fields())
        elif verb == "sleep":
            time.sleep(float(line.value()))
        elif verb == "disconnect":
            self.peers[number].disconnect()
            self.closed.add(number)
        elif verb == "shut-down":
            self.peers[number].shut_down()
        else:
            rest = line.rest()
            peer = self.peers[number]
            data = [self._encode(peer, at, verb, LineReader(rest)) for at in range(first, last + 1)]
            self.peers[number].send(b"".join(data) * int(times[1] if times else 1), slowly=slowly)

    def finish(self) -> None:
        """Check that nothing more was sent, that open connections close cleanly, and drop the others."""
        for number, peer in self.peers.items():
            if number in self.closed or peer.is_closed or peer.is_released:
                self._expect_nothing(peer)
                continue
            if peer.is_condemned:
                self._expect_nothing(peer)
                peer.send_method(0, "connection.close-ok")
                if not peer.wait_closed(5):
                    raise Mismatch("the socket stays open after connection.close-ok")
                continue
            channels = sorted(peer.open_channels)[:16]
            for channel in channels:
                peer.send_method(channel, "channel.flow", active=True)
            for channel in channels:
                peer.expect_method(channel, "channel.flow-ok")
            self._expect_nothing(peer)
        self.failed = False

    def clean_up(self) -> None:
        """Close every socket, and delete every queue and exchange that the transcript has declared."""
        for peer in self.peers.values():
            _leave(peer)
        if not self.declared:
            return
        cleaner = Peer(self.context.host, self.context.port)
        cleaner.handshake(USER, PASSWORD, self.context.vhost)
        cleaner.send_method(1, "channel.open")
        cleaner.expect_method(1, "channel.open-ok")
        for kind, name in sorted(self.declared, reverse=True):
            cleaner.send_method(1, f"{kind}.delete", **{kind: name})
            event = cleaner.next_event(1, 5)
            if event is not None and event.name == "channel.close":
                cleaner.send_method(1, "channel.close-ok")
                cleaner.send_method(1, "channel.open")
                cleaner.expect_method(1, "channel.open-ok")
        _leave(cleaner)

    def _expect_nothing(self, peer: Peer) -> None:
        rest = [event for event in peer.arrived if event.name != "heartbeat"]
        if rest:
            raise Mismatch(f"the transcript ends, but this came too: {self.context.plain(str(rest))}")

    def _open(self, number: int, verb: str, options: dict[str, Any]) -> None:
        place: tuple[str, int] | None = (self.context.host, self.context.port)
        if options.pop("address", "") == "outside":
            place = self.context.outside
        if place is None:
            raise MissingResource("the broker is not reached by another address than loopback")
        peer = Peer(*place)
        self.peers[number] = peer
        self.closed.discard(number)
        if verb == "socket":
            return
        capabilities = options.pop("capabilities", ALL_CAPABILITIES)
        user = options.pop("user", USER)
        vhost = options.pop("vhost", self.context.vhost)
        password = options.pop("password", f"{user}-password")
        channels = options.pop("channels", 0)
        peer.handshake(user, password, vhost, capabilities=capabilities or {}, **options)
        for channel in range(1, channels + 1):
            peer.send_method(channel, "channel.open")
            peer.expect_method(channel, "channel.open-ok")

    def _encode(self, peer: Peer, channel: int, verb: str, line: LineReader) -> bytes:
        if verb == "hex":
            return bytes.fromhex(line.value())
        if verb == "text":
            return encode_text(line.value())
        if verb == "heartbeat":
            return protocol.encode_frame(protocol.HEARTBEAT, channel, b"")
        if verb == "body":
            return protocol.encode_frame(protocol.BODY, channel, encode_text(line.value()))
        fields = notation.fill(line.fields(), self.kept)
        if verb == "frame":
            return _forced_frame(channel, fields)
        if verb == "header":
            return protocol.encode_frame(
                protocol.HEADER, channel, protocol.encode_header(fields.pop("body_size", 0), fields)
            )
        if verb == "publish":
            return _content(channel, fields, peer.frame_size_max)
        if verb == "connection.open" and fields.get("virtual_host") == VHOST:
            fields["virtual_host"] = self.context.vhost
        if self.context.is_quorum and verb == "queue.declare" and not fields.get("passive"):
            fields["durable"] = True
            fields["arguments"] = {"x-queue-type": "quorum", **fields.get("arguments", {})}
        if verb in _DECLARED and fields.get(_DECLARED[verb]) and not fields.get("passive"):
            self.declared.add((verb.split(".")[0], fields[_DECLARED[verb]]))
        return protocol.encode_frame(protocol.METHOD, channel, protocol.METHODS_BY_NAME[verb].encode(fields))


def _leave(peer: Peer) -> None:
    """Close the connection with a close method if it is open, and the socket."""
    if not (peer.is_closed or peer.is_condemned or peer.is_released):
        peer.send_method(0, "connection.close", reply_code=200)
        while (event := peer.next_event(None, 5)) and event.name not in _LAST:
            pass
    peer.disconnect()


def _forced_frame(channel: int, fields: dict[str, Any]) -> bytes:
    """A frame whose type, size and end are given by the line, valid or not."""
    payload = bytes.fromhex(fields.get("payload", ""))
    size = fields.get("size", len(payload))
    head = bytes([fields["type"]]) + channel.to_bytes(2, "big") + size.to_bytes(4, "big")
    return head + payload + bytes.fromhex(fields.get("end", "ce"))


def _content(channel: int, fields: dict[str, Any], frame_size_max: int) -> bytes:
    body = encode_text(fields.pop("body", ""))
    method = protocol.METHODS_BY_NAME["basic.publish"]
    values = {name: fields.pop(name) for name in method.shown if name in fields}
    data = [
        protocol.encode_frame(protocol.METHOD, channel, method.encode(values)),
        protocol.encode_frame(protocol.HEADER, channel, protocol.encode_header(len(body), fields)),
    ]
    step = (frame_size_max or 131072) - 8
    data.extend(
        protocol.encode_frame(protocol.BODY, channel, body[at : at + step])
        for at in range(0, len(body), step)
    )
    return b"".join(data)
