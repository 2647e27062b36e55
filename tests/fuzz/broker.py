"""A whole broker without I/O, time or randomness, and the frames that its clients exchange with it."""

import struct
import traceback
from collections.abc import Callable

from tests.clock import ManualClock

from warren.framing.output_listener import OutputListener
from warren.metadata.commands import PutUser, PutVhost, SetPermissions
from warren.metadata.machine import Metadata
from warren.metadata.proposals import LocalProposals
from warren.metadata.users import User
from warren.session.connection import Connection
from warren.session.handshake import HandshakeSettings
from warren.session.peer import Peer
from warren.session.server import Server, ServerDependencies, SessionSettings
from warren.session.vhost_services import VhostDependencies, VhostServices
from warren.wire import methods
from warren.wire.methods import METHODS, Method, decode_method
from warren.wire.properties import BasicProperties

FRAME_SIZE_MAX = 4096
INTERNAL_ERROR = 541
EVERYTHING = ".*"


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """One frame."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def call(method: Method, channel: int = 1) -> bytes:
    """A method frame."""
    return frame(1, channel, method.encode())


def publication(exchange: str, routing_key: str, body: bytes, **properties: object) -> bytes:
    """The three frames of a message."""
    header = BasicProperties(**properties).encode(len(body))
    publish = methods.BasicPublish(exchange=exchange, routing_key=routing_key, mandatory=True)
    return call(publish) + frame(2, 1, header) + frame(3, 1, body)


HANDSHAKE = (
    b"AMQP\x00\x00\x09\x01"
    + call(methods.ConnectionStartOk(mechanism="PLAIN", response="\0guest\0guest"), 0)
    + call(methods.ConnectionTuneOk(channel_max=8, frame_max=FRAME_SIZE_MAX, heartbeat=10), 0)
    + call(methods.ConnectionOpen(virtual_host="/"), 0)
    + call(methods.ChannelOpen())
)
DEAD_LETTERING = {"x-max-length": 4, "x-dead-letter-exchange": "dead"}
PREPARATION = b"".join(
    (
        call(methods.ExchangeDeclare(exchange="events", type="topic")),
        call(methods.ExchangeDeclare(exchange="dead", type="fanout")),
        call(
            methods.QueueDeclare(
                queue="jobs", arguments={"x-max-length": 4, "x-dead-letter-exchange": "dead"}
            )
        ),
        call(methods.QueueDeclare(queue="dead", arguments={"x-max-priority": 3, "x-max-length": 4})),
        call(methods.QueueBind(queue="jobs", exchange="events", routing_key="a.#")),
        call(methods.QueueBind(queue="dead", exchange="dead")),
    )
)

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
        """Admit the client to the only virtual host."""


class Sleeper(OutputListener):
    """An output listener that does nothing, because output is collected after each step."""

    def output_ready(self) -> None:
        pass


def _never(pause_ms: int, action: Callable[[], None]) -> None:
    """Time does not pass."""


class InProcessBroker:
    """A broker with one virtual host and one user, without real time and randomness."""

    def __init__(self) -> None:
        self.surprises: list[str] = []
        self.clock = ManualClock()
        metadata = Metadata()
        local = LocalProposals(metadata, lambda: 0)
        local.apply(PutVhost(name="/"))
        local.apply(PutUser(name="guest", password_hash=b"", hashing_algorithm=""))
        local.apply(
            SetPermissions(user="guest", vhost="/", configure=EVERYTHING, write=EVERYTHING, read=EVERYTHING)
        )
        handshake = HandshakeSettings(server_properties={})
        dependencies = ServerDependencies(
            random_bytes=bytes, later=self.later, turn=self.clock.turn, report=self.note, node_name="n"
        )
        self.server = Server(OpenGate(), SessionSettings(handshake=handshake), dependencies)
        vhost_dependencies = VhostDependencies(
            random_bytes=bytes, later=self.later, after=_never, turn=self.clock.turn, node_name="n"
        )
        self.services = VhostServices.open("/", metadata, local, vhost_dependencies)
        assert list(self.services.recover({})) == [None]
        self.server.vhost_services["/"] = self.services
        self.output_listener = Sleeper()

    def later(self, action: Callable[[int], None]) -> None:
        """Nothing happens later, as there are no turns."""
        action(self.clock.now)

    def note(self, line: str) -> None:
        """Record an unexpected exception with its origin."""
        if line.startswith("unexpected"):
            self.surprises.append(f"{line}\n{traceback.format_exc()}")

    def connect(self, port: int) -> Connection:
        """A connection that has received nothing."""
        peer = Peer(host="127.0.0.1", port=port, server_host="127.0.0.1", server_port=5672)
        return Connection(self.server, peer, self.output_listener)


def collect(connection: Connection) -> bytes:
    """Everything that the broker has to send to `connection` now."""
    said = b"".join(connection.take_output())
    connection.output_written()
    return said + b"".join(connection.take_output())


# connection.close and channel.close: class and method, then the reply code, and the reply text with its size.
_CLOSES = (b"\x00\x0a\x00\x32", b"\x00\x14\x00\x28")
_TEXT_AT = 7


def _decoded(data: bytes) -> Method:
    """The method in `data`; the reply-text of a close quotes what a client sent, which may be no UTF-8."""
    if data.startswith(_CLOSES):
        end = _TEXT_AT + data[_TEXT_AT - 1]
        text = data[_TEXT_AT:end].decode("ascii", "replace").replace("\ufffd", "?").encode()
        data = data[:_TEXT_AT] + text + data[end:]
    return decode_method(data)


def received(said: bytes) -> list[Method]:
    """The methods that a broker sent, which must be valid frames of a server."""
    found: list[Method] = []
    at = 0
    while at < len(said):
        if said[at:].startswith(b"AMQP"):
            at += 8
            continue
        kind, _, size = struct.unpack_from(">BHI", said, at)
        assert size <= FRAME_SIZE_MAX - 8 or not found, f"a frame of {size} bytes"
        assert said[at + 7 + size] == 0xCE, "a frame without its end marker"
        assert kind in (1, 2, 3, 8), f"a frame of type {kind}"
        if kind == 1:
            method = _decoded(said[at + 7 : at + 7 + size])
            assert METHODS[method.index].is_from_server, f"the server sent {method.name}"
            found.append(method)
        at += size + 8
    return found
