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


class SlowAdmission(OpenGate):
    """An admission control that admits to a virtual host when the test calls `answer`."""

    def __init__(self) -> None:
        self.answer = Answer()

    async def admit(self, user: User, vhost: str, peer: Peer) -> None:
        await self.answer


class HandshakeHarness:
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
    harness = HandshakeHarness()
    assert harness.connection.is_reading_paused
    assert harness.connection.deadline() is None
    harness.client.expire(60_000)
    assert harness.connection.state is ConnectionState.HANDSHAKE
    harness.arrive(60_000)
    assert harness.client.names() == ["connection.tune"]
    assert not harness.connection.is_reading_paused
    assert harness.connection.deadline() == 70_000


def test_input_received_during_authentication_is_processed_after_it() -> None:
    harness = HandshakeHarness()
    tune = methods.ConnectionTuneOk(channel_max=8, frame_max=4096, heartbeat=0)
    harness.client.send(call(tune, 0), call(methods.ConnectionOpen("/"), 0))
    assert harness.client.names() == []
    harness.arrive()
    assert harness.client.names() == ["connection.tune", "connection.open-ok"]
    assert harness.connection.is_open


def test_a_late_refusal_is_answered() -> None:
    harness = HandshakeHarness()
    harness.admission_control.is_right = False
    harness.arrive()
    assert harness.client.names() == ["connection.close"]
    assert harness.connection.state is ConnectionState.CLOSING


def test_a_client_that_disconnected_during_authentication_is_not_admitted() -> None:
    harness = HandshakeHarness()
    harness.connection.lost()
    assert harness.connection.is_finished
    harness.arrive()
    assert not harness.connection.is_open
    assert harness.client.names() == []


def test_a_protocol_header_may_arrive_in_pieces() -> None:
    client = Broker().connect()
    for octet in b"AMQP\x00\x00\x09\x01":
        client.send(bytes((octet,)))
    assert client.names() == ["connection.start"]


def test_a_connection_is_open_when_its_virtual_host_is_and_what_was_sent_behind_is_processed() -> None:
    broker = Broker()
    broker.server.admission_control = slow = SlowAdmission()  # type: ignore[assignment]
    client = broker.connect()
    client.send(b"AMQP\x00\x00\x09\x01")
    client.send(
        call(START_OK, 0),
        call(methods.ConnectionTuneOk(channel_max=8, frame_max=4096, heartbeat=0), 0),
        call(methods.ConnectionOpen("/"), 0),
        call(methods.ChannelOpen()),
    )
    assert client.names() == ["connection.start", "connection.tune"]
    assert not client.connection.is_open
    slow.answer.arrive()
    broker.turn()
    assert client.names() == ["connection.open-ok", "channel.open-ok"]
    assert client.connection.is_open
