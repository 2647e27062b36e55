"""The handshake while authentication is in progress."""

from tests.unit.session.client import GUEST, Answer, Broker, OpenGate, call

from warren.errors import LoginRefused
from warren.metadata.users import User
from warren.session.base_connection import ConnectionState
from warren.session.peer import Peer
from warren.wire import methods

START_OK = methods.ConnectionStartOk(
    client_properties={"capabilities": {"authentication_failure_close": True}},
    mechanism="PLAIN",
    response="\0guest\0guest",
)


class SlowGate(OpenGate):
    """An admission control whose answer arrives when the test calls `answer`."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.is_right = True

    async def authenticate(self, mechanism: str, response: bytes, peer: Peer) -> User:
        await self.answer
        if not self.is_right:
            raise LoginRefused("no", method_index=0)
        return GUEST


class Scene:
    """A client whose authentication is in progress."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.admission_control = SlowGate()
        self.broker.server.admission_control = self.admission_control
        self.client = self.broker.connect()
        self.connection = self.client.connection
        self.client.send(b"AMQP\x00\x00\x09\x01")
        self.client.send(call(START_OK, 0))
        assert self.client.names() == ["connection.start"]

    def arrive(self, now: int = 0) -> None:
        self.broker.clock.now = now
        self.admission_control.answer.arrive()
        self.broker.turn()
        while self.connection.has_more:
            self.connection.process_more()


def test_during_authentication_nothing_is_read_and_the_timeout_is_suspended() -> None:
    scene = Scene()
    assert scene.connection.is_reading_paused
    assert scene.connection.deadline() is None
    scene.client.expire(60_000)
    assert scene.connection.state is ConnectionState.HANDSHAKE
    scene.arrive(60_000)
    assert scene.client.names() == ["connection.tune"]
    assert not scene.connection.is_reading_paused
    assert scene.connection.deadline() == 70_000


def test_input_received_during_authentication_is_processed_after_it() -> None:
    scene = Scene()
    tune = methods.ConnectionTuneOk(channel_max=8, frame_max=4096, heartbeat=0)
    scene.client.send(call(tune, 0), call(methods.ConnectionOpen("/"), 0))
    assert scene.client.names() == []
    scene.arrive()
    assert scene.client.names() == ["connection.tune", "connection.open-ok"]
    assert scene.connection.is_open


def test_a_late_refusal_is_answered() -> None:
    scene = Scene()
    scene.admission_control.is_right = False
    scene.arrive()
    assert scene.client.names() == ["connection.close"]
    assert scene.connection.state is ConnectionState.CLOSING


def test_a_client_that_disconnected_during_authentication_is_not_admitted() -> None:
    scene = Scene()
    scene.connection.lost()
    assert scene.connection.is_finished
    scene.arrive()
    assert not scene.connection.is_open
    assert scene.client.names() == []


def test_a_protocol_header_may_arrive_in_pieces() -> None:
    client = Broker().connect()
    for octet in b"AMQP\x00\x00\x09\x01":
        client.send(bytes((octet,)))
    assert client.names() == ["connection.start"]
