"""A broker with streams without I/O, and clients that speak the stream protocol with it."""

import random
from collections.abc import Iterator

from tests.sim.disk import SimulatedDisk
from tests.stream_delivery import decode_deliver
from tests.unit.session.client import GUEST, Broker, CountingWake

from warren.errors import AmqpError, LoginRefused, NotAllowed
from warren.metadata.users import User
from warren.session.peer import Peer
from warren.session.streams.connection import StreamConnection
from warren.session.streams.handshake import StreamSettings
from warren.session.streams.stream_server import StreamServer
from warren.store.store_port import StorePort
from warren.store.streams.recovery import open_streams
from warren.store.streams.stream_log import StreamLogDependencies
from warren.wire.streams import commands
from warren.wire.streams.codes import RESPONSE, CommandKey
from warren.wire.streams.commands import StreamCommand, decode
from warren.wire.streams.delivery import DeliverFrame
from warren.wire.streams.fields import Offset
from warren.wire.streams.frames import framed
from warren.wire.streams.publish import Publication, encode_publish

PEER = Peer(host="127.0.0.1", port=1, server_host="127.0.0.1", server_port=5552)
ANSWERS = {
    each.key: each
    for each in vars(commands).values()
    if isinstance(each, type) and issubclass(each, StreamCommand) and each is not StreamCommand
}


def data(body: bytes) -> bytes:
    """`body` as the body of an AMQP 1.0 message."""
    return b"\x00\x53\x75\xa0" + bytes((len(body),)) + body


class PasswordAdmission:
    """An admission control that accepts every user with the common password."""

    def mechanisms(self, peer: Peer) -> tuple[str, ...]:
        return "PLAIN", "AMQPLAIN"

    async def authenticate(self, mechanism: str, response: bytes, peer: Peer, *, protocol: str) -> User:
        assert protocol == "stream"
        if not response:
            raise AmqpError("malformed")
        if not response.endswith(b"\0guest"):
            raise LoginRefused("no")
        return GUEST

    async def admit(self, user: User, vhost: str, peer: Peer) -> None:
        if vhost != "/":
            raise NotAllowed("no such virtual host")


class Quiet(StorePort):
    """Nothing to do: the tests write the store."""

    def commit_due(self) -> None:
        pass


class Node(Broker):
    """A broker with streams on a simulated disk."""

    def __init__(self, **settings: object) -> None:
        super().__init__()
        self.server.admission_control = PasswordAdmission()  # type: ignore[assignment]
        self.disk = SimulatedDisk(random.Random(1))
        files = StreamLogDependencies(disk=self.disk, random_bytes=random.Random(2).randbytes, report=print)
        self.store = open_streams(files, Quiet(), lambda _: False).store
        self.services.vhost.attach_stream_store(self.store)
        self.stream_server = StreamServer(self.server, StreamSettings(cluster_name="c", **settings))  # type: ignore[arg-type]

    def write(self) -> None:
        """Write everything to disk."""
        self.store.commit()
        while self.disk.is_busy:
            self.disk.advance()
        while self.turns:
            self.turn()

    def stream(self, name: str = "s") -> "StreamClient":
        """A connected client that has created the stream `name`."""
        client = StreamClient(self)
        client.open()
        client.ask(commands.Create(name, {}))
        return client


def with_filters(*entries: tuple[int, str | None, bytes]) -> bytes:
    """A Publish of version 2."""
    parts = [b"\0\2\0\2\1", len(entries).to_bytes(4, "big")]
    for sequence, value, message in entries:
        text = b"\xff\xff" if value is None else len(value).to_bytes(2, "big") + value.encode()
        parts += (sequence.to_bytes(8, "big"), text, len(message).to_bytes(4, "big"), message)
    return framed(b"".join(parts))


class StreamClient:
    """One end of a connection to the broker under test."""

    def __init__(self, node: Node) -> None:
        self.output_listener = CountingWake()
        self.clock = node.clock
        self.connection = StreamConnection(node.stream_server, PEER, self.output_listener)
        self._correlation = 0

    @property
    def now(self) -> int:
        """The time of the broker, which is the same for all clients."""
        return self.clock.now

    @now.setter
    def now(self, now: int) -> None:
        self.clock.now = now

    def expire(self, now: int) -> None:
        """Advance the time."""
        self.now = now
        self.connection.expire()

    def open(self, heartbeat_s: int = 0, frame_size_max: int = 0) -> list[object]:
        """Perform the handshake; returns the answers."""
        return [
            *self.ask(commands.PeerProperties({"product": "test"})),
            *self.ask(commands.SaslHandshake()),
            *self.ask(commands.SaslAuthenticate("PLAIN", b"\0guest\0guest")),
            *self.ask(commands.Tune(frame_size_max, heartbeat_s)),
            *self.ask(commands.Open("/")),
        ]

    def say(self, *data: bytes) -> None:
        """Say `data` in one read."""
        self.connection.receive(b"".join(data))
        while self.connection.has_more:
            self.connection.process_more()

    def ask(self, command: StreamCommand) -> list[object]:
        """Send `command`; returns the answers."""
        self._correlation += 1
        self.say(command.encode(self._correlation))
        return self.hear()

    def publish(self, publisher: int, *entries: tuple[int, object]) -> list[object]:
        """Publish messages with these sequences; returns the answers."""
        self.say(framed(encode_publish(Publication(publisher, list(entries)))))  # type: ignore[arg-type]
        return self.hear()

    def subscribe(
        self, number: int, offset: Offset, credit: int = 10, stream: str = "s", **properties: str
    ) -> list[object]:
        """Subscribe; returns the answers."""
        named = {name.replace("_", "-"): value for name, value in properties.items()}
        return self.ask(commands.Subscribe(number, stream, offset, credit, named))

    def hear(self) -> list[object]:
        """Everything the broker has sent: commands, deliveries, or key and code of simple responses."""
        data = b""
        while said := b"".join(self.connection.take_output()):
            data += said
            self.connection.output_written()
        return list(received(data))

    def bodies(self) -> list[bytes]:
        """The messages that it delivers."""
        return [body for one in self.hear() if isinstance(one, DeliverFrame) for body in one.messages]


def received(data: bytes) -> Iterator[object]:
    at = 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        frame, at = data[at + 4 : end], end
        key = int.from_bytes(frame[:2], "big")
        if key == CommandKey.DELIVER:
            yield decode_deliver(frame)
        elif key in ANSWERS and not (key & RESPONSE and len(frame) == 10):
            yield decode(frame, ANSWERS)[0]
        else:
            yield CommandKey(key & ~RESPONSE), int.from_bytes(frame[-2:], "big")
