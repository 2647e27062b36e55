"""The handshake, phase by phase, with the answers measured with RabbitMQ 3.10.8."""

import pytest
from tests.unit.access.dependencies import finished

from warren.errors import (
    AmqpError,
    ChannelNumberError,
    CommandInvalid,
    LoginRefused,
    NotAllowed,
    UnexpectedFrame,
)
from warren.metadata.users import User
from warren.session.handshake import (
    PROTOCOL_HEADER,
    TRANSITIONS,
    Handshake,
    HandshakePhase,
    HandshakeSettings,
    Offer,
)
from warren.session.peer import Peer
from warren.session.server_properties import server_properties
from warren.wire.method import Method
from warren.wire.methods import (
    METHODS,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    decode_method,
)

START = 1_000_000
PEER = Peer(host="127.0.0.1", port=40000, server_host="127.0.0.1", server_port=5672)
CLOSES = {"capabilities": {"authentication_failure_close": True}}

ALICE = User(name="alice", password_hash=b"", hashing_algorithm="", tags=(), limits={})


class OneUser:
    """An admission control for alice with the password pw, who may open the virtual host /."""

    def mechanisms(self, peer: Peer) -> tuple[str, ...]:
        return ("PLAIN", "AMQPLAIN")

    async def authenticate(self, mechanism: str, response: bytes, peer: Peer) -> User:
        if response != b"\x00alice\x00p\xff":
            raise LoginRefused("Login was refused", method_index=0)
        return ALICE

    async def admit(self, user: User, vhost: str, peer: Peer) -> None:
        if vhost != "/":
            raise NotAllowed(f"vhost {vhost} not found")


def make() -> Handshake:
    settings = HandshakeSettings(server_properties=server_properties("warren@test"))
    return Handshake(OneUser(), PEER, Offer(settings), START)


def start_ok(properties: dict[str, object] | None = None, password: str = "p\udcff") -> ConnectionStartOk:
    return ConnectionStartOk(properties or {}, "PLAIN", f"\x00alice\x00{password}", "en_US")


def at(phase: HandshakePhase, properties: dict[str, object] | None = None) -> Handshake:
    """A handshake that awaits `phase`."""
    handshake = make()
    steps: list[Method] = [start_ok(properties), ConnectionTuneOk(100, 8192, 30), ConnectionOpen("/")]
    handshake.receive_header(PROTOCOL_HEADER)
    while handshake.phase is not phase:
        finished(handshake.handle(steps.pop(0)))
    return handshake


def test_a_client_connects_in_four_steps() -> None:
    handshake = make()
    start = decode_method(handshake.receive_header(b"AMQP\x00\x00\x09\x01"))
    assert isinstance(start, ConnectionStart)
    assert (start.version_major, start.version_minor) == (0, 9)
    assert start.mechanisms == "PLAIN AMQPLAIN"
    assert start.locales == "en_US"
    assert handshake.frame_size_max == 4096
    properties: dict[str, object] = {
        "capabilities": {"basic.nack": True, "x": False},
        "connection_name": "me",
    }
    assert decode_method(finished(handshake.handle(start_ok(properties)))) == ConnectionTune(2047, 131072, 60)
    assert handshake.account is ALICE
    assert finished(handshake.handle(ConnectionTuneOk(100, 65536, 30))) == b""
    assert (handshake.channels_max, handshake.frame_size_max, handshake.heartbeat_s) == (100, 65536, 30)
    assert decode_method(finished(handshake.handle(ConnectionOpen("/")))) == ConnectionOpenOk()
    assert handshake.is_complete
    assert handshake.vhost == "/"
    assert handshake.mechanism == "PLAIN"
    assert handshake.capabilities == {"basic.nack"}
    assert handshake.client_properties == properties
    assert handshake.deadline() is None


def test_start_lists_the_ten_capabilities_that_clients_check() -> None:
    start = decode_method(make().receive_header(PROTOCOL_HEADER))
    assert isinstance(start, ConnectionStart)
    properties = start.server_properties
    assert properties["capabilities"] == dict.fromkeys(
        [
            "publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify",
            "connection.blocked", "consumer_priorities", "authentication_failure_close", "per_consumer_qos",
            "direct_reply_to", "accept_consumer_cancel_ok",
        ],
        True,
    )  # fmt: skip
    assert properties["product"] == "RabbitMQ"
    assert properties["cluster_name"] == "warren@test"


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (b"AMQP\x01\x01\x00\x09", (0, 9)),
        (b"AMQP\x01\x01\x08\x00", (8, 0)),
        (b"AMQP\x01\x01\x09\x01", (8, 0)),
    ],
)
def test_older_protocol_headers_are_accepted(header: bytes, version: tuple[int, int]) -> None:
    start = decode_method(make().receive_header(header))
    assert isinstance(start, ConnectionStart)
    assert (start.version_major, start.version_minor) == version
    if version == (8, 0):
        assert start.server_properties["capabilities"] == {}


@pytest.mark.parametrize(
    "header",
    [
        b"GET / HT",
        b"AMQP\x09\x09\x09\x09",
        b"AMQP\x00\x01\x00\x00",
        b"AMQP\x03\x01\x00\x00",
        b"AMQP\x00\x00\x09\x02",
        b"AMQP\x00\x00\x0a\x01",
        b"AMQP\x01\x01\x00\x0a",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
    ],
)
def test_any_other_protocol_header_is_refused(header: bytes) -> None:
    handshake = make()
    assert handshake.receive_header(header) == b""
    assert handshake.phase is HandshakePhase.REFUSED


def fail(handshake: Handshake, method: Method) -> tuple[AmqpError, bool]:
    """The error of `method`, and whether the peer is told."""
    with pytest.raises(AmqpError) as caught:
        finished(handshake.handle(method))
    return caught.value, handshake.refuse(caught.value, START + 100)


def test_a_wrong_password_is_answered_if_the_client_has_the_capability() -> None:
    handshake = at(HandshakePhase.AWAIT_START_OK)
    error, is_told = fail(handshake, start_ok(CLOSES, "wrong"))
    assert (error.code, error.method_index, is_told) == (403, 0, True)
    assert handshake.deadline() is None


def test_a_wrong_password_is_otherwise_followed_by_three_seconds_of_silence() -> None:
    handshake = at(HandshakePhase.AWAIT_START_OK)
    _, is_told = fail(handshake, start_ok({}, "wrong"))
    assert not is_told
    assert handshake.deadline() == START + 3_100
    assert not handshake.is_expired(START + 3_099)
    assert handshake.is_expired(START + 3_100)


def test_an_unknown_mechanism_is_followed_by_silence_despite_the_capability() -> None:
    error, is_told = fail(at(HandshakePhase.AWAIT_START_OK), ConnectionStartOk(CLOSES, "GSSAPI", "", "en_US"))
    assert isinstance(error, CommandInvalid)
    assert not is_told


@pytest.mark.parametrize(
    ("channels", "frame_size", "text"),
    [
        (2047, 0, "frame_max = 0 is higher than the maximum allowed value (131072)"),
        (1, 4095, "frame_max = 4095 is lower than the minimum allowed value (4096)"),
        (1, 131073, "frame_max = 131073 is higher than the maximum allowed value (131072)"),
        (0, 131072, "channel_max = 0 is higher than the maximum allowed value (2047)"),
        (4096, 131072, "channel_max = 4096 is higher than the maximum allowed value (2047)"),
    ],
)
def test_limits_beyond_the_proposal_are_followed_by_silence(
    channels: int, frame_size: int, text: str
) -> None:
    error, is_told = fail(at(HandshakePhase.AWAIT_TUNE_OK, CLOSES), ConnectionTuneOk(channels, frame_size, 0))
    assert isinstance(error, NotAllowed)
    assert error.message == f"negotiated {text}"
    assert not is_told


def test_the_extreme_limits_are_accepted() -> None:
    handshake = at(HandshakePhase.AWAIT_TUNE_OK)
    finished(handshake.handle(ConnectionTuneOk(2047, 131072, 65535)))
    assert handshake.heartbeat_s == 65535
    handshake = at(HandshakePhase.AWAIT_TUNE_OK)
    finished(handshake.handle(ConnectionTuneOk(1, 4096, 0)))
    assert handshake.frame_size_max == 4096


def test_a_refused_vhost_is_answered() -> None:
    error, is_told = fail(at(HandshakePhase.AWAIT_OPEN), ConnectionOpen("nope"))
    assert (error.code, error.reply_text, is_told) == (530, "NOT_ALLOWED - vhost nope not found", True)
    assert error.method_index == ConnectionOpen.index


def test_a_frame_on_another_channel_is_answered_only_when_open_is_awaited() -> None:
    error = UnexpectedFrame("type 1, all octets = <<0,20,0,10,0>>", method_index=0)
    for phase, is_told in (
        (HandshakePhase.AWAIT_START_OK, False),
        (HandshakePhase.AWAIT_TUNE_OK, False),
        (HandshakePhase.AWAIT_OPEN, True),
    ):
        assert at(phase).refuse(error, START) is is_told


def test_every_method_out_of_order_is_refused() -> None:
    for phase in (HandshakePhase.AWAIT_START_OK, HandshakePhase.AWAIT_TUNE_OK, HandshakePhase.AWAIT_OPEN):
        for method in METHODS.values():
            if (phase, method) in TRANSITIONS:
                continue
            error, is_told = fail(at(phase), method())
            assert isinstance(error, ChannelNumberError)
            assert error.message == f"unexpected method in connection state {phase.value}"
            assert error.method_index == method.index
            assert is_told is (phase is HandshakePhase.AWAIT_OPEN)


def test_all_phases_together_have_ten_seconds() -> None:
    for phase in (HandshakePhase.AWAIT_START_OK, HandshakePhase.AWAIT_TUNE_OK, HandshakePhase.AWAIT_OPEN):
        handshake = at(phase)
        assert handshake.deadline() == START + 10_000
        assert handshake.is_expired(START + 10_000)
        assert not handshake.is_expired(START + 9_999)


def test_no_input_is_accepted_after_a_refusal() -> None:
    handshake = at(HandshakePhase.AWAIT_START_OK)
    fail(handshake, start_ok({}, "wrong"))
    with pytest.raises(ChannelNumberError):
        finished(handshake.handle(start_ok()))


def test_time_that_the_broker_takes_does_not_count_for_the_timeout() -> None:
    handshake = at(HandshakePhase.AWAIT_TUNE_OK)
    handshake.extend_deadline(500)
    assert handshake.deadline() == START + 10_500
