"""A broker without I/O, and a client that exchanges bytes with it."""

import struct
from collections.abc import Callable, Generator
from dataclasses import dataclass

from tests.clock import ManualClock

from warren.errors import InternalError
from warren.framing.output_listener import OutputListener
from warren.metadata.commands import INTERNAL_USER, MetadataCommand, PutUser, PutVhost, Reply, SetPermissions
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.users import User
from warren.session.connection import Connection
from warren.session.handshake import HandshakeSettings
from warren.session.peer import Peer
from warren.session.server import Server, ServerDependencies, SessionSettings
from warren.session.vhost_services import VhostDependencies, VhostServices
from warren.wire import methods
from warren.wire.method import Method
from warren.wire.methods import decode_method
from warren.wire.properties import BasicProperties
from warren.wire.table import Table

EVERYTHING = ".*"
FRAME_SIZE_MAX = 4096
CAPABILITIES = {"consumer_cancel_notify": True, "connection.blocked": True}


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """One frame."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def call(method: Method, channel: int = 1) -> bytes:
    """A method frame."""
    return frame(1, channel, method.encode())


def publication(key: str, body: bytes, *, channel: int = 1, exchange: str = "", **more: object) -> bytes:
    """The frames of a message, with its body in one frame."""
    mandatory = bool(more.pop("mandatory", False))
    publish = methods.BasicPublish(exchange=exchange, routing_key=key, mandatory=mandatory)
    header = BasicProperties(**more).encode(len(body))
    content = frame(3, channel, body) if body else b""
    return call(publish, channel) + frame(2, channel, header) + content


@dataclass
class ReceivedMethod:
    """One method of the broker, with its content."""

    channel: int
    method: Method
    properties: BasicProperties | None = None
    body: bytes = b""
    frames: int = 0


def parse(data: bytes) -> list[ReceivedMethod]:
    """The methods in what a broker sent, which must be whole frames."""
    found: list[ReceivedMethod] = []
    at = 0
    while at < len(data):
        kind, channel, size = struct.unpack_from(">BHI", data, at)
        payload = data[at + 7 : at + 7 + size]
        assert len(payload) == size
        assert data[at + 7 + size] == 0xCE
        at += size + 8
        assert size + 8 <= FRAME_SIZE_MAX or kind == 1
        if kind == 1:
            found.append(ReceivedMethod(channel, decode_method(payload)))
        elif kind == 2:
            found[-1].properties = BasicProperties.decode(payload)
            assert found[-1].channel == channel
        elif kind == 3:
            assert found[-1].channel == channel
            found[-1].body += payload
            found[-1].frames += 1
    return found


class CountingWake(OutputListener):
    """An output listener that counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    def output_ready(self) -> None:
        self.count += 1


GUEST = User(name="guest", password_hash=b"", hashing_algorithm="", tags=(), limits={})


class OpenGate:
    """An admission control that accepts every client."""

    def mechanisms(self, peer: Peer) -> tuple[str, ...]:
        return ("PLAIN",)

    async def authenticate(self, mechanism: str, response: bytes, peer: Peer) -> User:
        return GUEST

    async def renewed(self, user: User, secret: str) -> User:
        return user

    async def admit(self, user: User, vhost: str, peer: Peer) -> None:
        """Every virtual host exists."""


class Answer:
    """A future without a loop: its waiters resume when `arrive` is called."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[object], None]] = []
        self._is_there = False

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        self._callbacks.append(callback)

    def arrive(self) -> None:
        self._is_there = True
        for callback in self._callbacks:
            callback(self)

    def __await__(self) -> Generator["Answer", None, None]:
        if not self._is_there:
            yield self


class SlowProposals:
    """Applies each command when the test lets its answer arrive."""

    def __init__(self, local: LocalProposals) -> None:
        self._local = local
        self.waiting: list[Answer] = []
        self.is_slow = False
        self.is_failing = False
        self.is_in_doubt = False

    async def resolve(self) -> None:
        raise InternalError("the disk has failed")

    async def propose(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        if self.is_failing:
            raise InternalError("the disk has failed")
        if self.is_slow:
            answer = Answer()
            self.waiting.append(answer)
            await answer
        return self._local.apply(command, user)

    async def is_outdated(self, index: int) -> bool:
        return await self._local.is_outdated(index)

    def apply(self, command: MetadataCommand) -> Reply:
        return self._local.apply(command)

    def arrive(self) -> None:
        """Let the oldest answer arrive."""
        self.waiting.pop(0).arrive()


class Broker:
    """A broker with one virtual host, one user, and time and randomness that the test sets."""

    def __init__(self, **settings: object) -> None:
        self.reports: list[str] = []
        # Log lines: category, level, text.
        self.reported: list[tuple[str, str, str]] = []
        # Actions that wait for a turn.
        self.turns: list[Callable[[int], None]] = []
        self.clock = ManualClock()
        metadata = Metadata()
        self.proposals = SlowProposals(LocalProposals(metadata, lambda: 0))
        for command in (
            PutVhost(name="/"),
            PutUser(name="guest", password_hash=b"", hashing_algorithm=""),
            SetPermissions(user="guest", vhost="/", configure=EVERYTHING, write=EVERYTHING, read=EVERYTHING),
        ):
            self.proposals.apply(command)
        handshake = HandshakeSettings(server_properties={})
        dependencies = ServerDependencies(
            random_bytes=bytes,
            later=self.turns.append,
            turn=self.clock.turn,
            report=self.reports.append,
            log=lambda category, level, text, _: self.reported.append((category, level, text)),
            node_name="n",
        )
        self.server = Server(OpenGate(), SessionSettings(handshake=handshake, **settings), dependencies)
        # Actions to be called later: milliseconds, and the action.
        self.later: list[tuple[int, Callable[[], None]]] = []
        vhost_dependencies = VhostDependencies(
            random_bytes=bytes,
            later=self.turns.append,
            after=lambda pause_ms, action: self.later.append((pause_ms, action)),
            turn=self.clock.turn,
            node_name="warren@test",
        )
        self.services = VhostServices.open("/", metadata, self.proposals, vhost_dependencies)
        assert list(self.services.recover({})) == [None]
        self.server.vhost_services["/"] = self.services

    def turn(self) -> None:
        """Run the action that has waited longest."""
        self.turns.pop(0)(self.clock.now)

    def block(self, reason: str) -> None:
        """Set an alarm, or clear it with an empty `reason`, and resume the publishers that waited for it."""
        self.server.block(reason)
        while self.turns:
            self.turn()

    def connect(self) -> "Client":
        """A client that has not sent anything yet."""
        return Client(self)

    def client(self, *, heartbeat: int = 0, capabilities: dict[str, bool] | None = None) -> "Client":
        """A client with channel 1 open."""
        client = Client(self)
        client.open(heartbeat, CAPABILITIES if capabilities is None else capabilities)
        return client


class Client:
    """One end of a connection to the broker under test."""

    def __init__(self, broker: Broker) -> None:
        peer = Peer(host="127.0.0.1", port=1, server_host="127.0.0.1", server_port=5672)
        self.output_listener = CountingWake()
        self.connection = Connection(broker.server, peer, self.output_listener)
        self.clock = broker.clock

    @property
    def now(self) -> int:
        """The time of the broker, which is the same for all clients."""
        return self.clock.now

    @now.setter
    def now(self, now: int) -> None:
        self.clock.now = now

    def open(self, heartbeat: int, capabilities: dict[str, bool]) -> None:
        self.send(b"AMQP\x00\x00\x09\x01")
        self.log_in(heartbeat, capabilities)

    def log_in(
        self, heartbeat: int = 0, capabilities: dict[str, bool] = CAPABILITIES, *, named: str = ""
    ) -> None:
        """Everything after the protocol header, and channel 1."""
        properties: Table = {"capabilities": dict(capabilities)} | (
            {"connection_name": named} if named else {}
        )
        start = methods.ConnectionStartOk(properties, mechanism="PLAIN", response="\0guest\0guest")
        tune = methods.ConnectionTuneOk(channel_max=8, frame_max=FRAME_SIZE_MAX, heartbeat=heartbeat)
        self.send(call(start, 0), call(tune, 0), call(methods.ConnectionOpen("/"), 0))
        self.ask(methods.ChannelOpen())

    def send(self, *data: bytes) -> None:
        """Say `data` in one read."""
        self.connection.receive(b"".join(data))
        while self.connection.has_more:
            self.connection.process_more()

    def ask(self, *calls: Method, channel: int = 1) -> list[ReceivedMethod]:
        """Send these methods in one read; returns the answers."""
        self.send(*(call(method, channel) for method in calls))
        return self.hear()

    def hear(self) -> list[ReceivedMethod]:
        """Everything that the broker has sent since the last call."""
        said = b"".join(self.connection.take_output())
        self.connection.output_written()
        return parse(said + b"".join(self.connection.take_output()))

    def names(self) -> list[str]:
        """The names of the methods that it has sent."""
        return [received.method.name for received in self.hear()]

    def bodies(self) -> list[bytes]:
        """The bodies of the messages that it delivered."""
        return [one.body for one in self.hear() if isinstance(one.method, methods.BasicDeliver)]

    def expire(self, now: int) -> None:
        """Advance the time."""
        self.now = now
        self.connection.expire()
