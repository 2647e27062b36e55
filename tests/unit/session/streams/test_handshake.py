"""The handshake of a stream client, as RabbitMQ 3.10.8 performs it."""

import pytest
from tests.unit.session.streams.client import Node, StreamClient

from warren.limits import HANDSHAKE_MS, STREAM_FRAME_ACCEPTED_MAX
from warren.session.streams.handshake import COMPATIBLE_VERSION
from warren.wire.streams import commands
from warren.wire.streams.codes import CommandKey, ResponseCode


@pytest.fixture
def node() -> Node:
    return Node()


def test_a_client_connects(node: Node) -> None:
    client = StreamClient(node)
    properties, mechanisms, login, tune, opened = client.open()
    assert properties.properties["product"] == "RabbitMQ"
    assert properties.properties["version"] == COMPATIBLE_VERSION
    assert mechanisms == commands.SaslHandshakeResponse(ResponseCode.OK, ("PLAIN", "AMQPLAIN"))
    assert login == (CommandKey.SASL_AUTHENTICATE, ResponseCode.OK)
    assert tune == commands.Tune(1_048_576, 60)
    assert opened.properties == {"advertised_host": "127.0.0.1", "advertised_port": "5552"}
    assert client.connection.is_open
    assert list(node.server.stream_connections) == [client.connection]


def test_the_advertised_host_and_port_are_those_of_the_settings() -> None:
    client = StreamClient(Node(advertised_host="example.org", advertised_port=5))
    assert client.open()[-1].properties == {"advertised_host": "example.org", "advertised_port": "5"}


@pytest.mark.parametrize(
    ("mechanism", "response", "code"),
    [
        ("PLAIN", b"\0guest\0wrong", ResponseCode.AUTHENTICATION_FAILURE),
        ("PLAIN", b"", ResponseCode.SASL_ERROR),
        ("EXTERNAL", b"", ResponseCode.SASL_MECHANISM_NOT_SUPPORTED),
    ],
)
def test_a_failed_login_is_answered_and_closes_the_connection(
    node: Node, mechanism: str, response: bytes, code: ResponseCode
) -> None:
    client = StreamClient(node)
    client.ask(commands.SaslHandshake())
    assert client.ask(commands.SaslAuthenticate(mechanism, response)) == [
        (CommandKey.SASL_AUTHENTICATE, code)
    ]
    assert client.connection.is_finished


def test_an_inaccessible_vhost_closes_the_connection(node: Node) -> None:
    client = StreamClient(node)
    client.ask(commands.SaslHandshake())
    client.ask(commands.SaslAuthenticate("PLAIN", b"\0guest\0guest"))
    client.ask(commands.Tune(0, 0))
    assert client.ask(commands.Open("other")) == [(CommandKey.OPEN, ResponseCode.VHOST_ACCESS_FAILURE)]
    assert client.connection.is_finished
    assert not node.server.stream_connections


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xff\xff\xff",
        commands.Open("/").encode(1),
        commands.Create("s", {}).encode(1),
        b"\0\0\0\1\0",
    ],
    ids=["http", "size", "early open", "early command", "short"],
)
def test_an_invalid_frame_during_the_handshake_closes_the_connection_without_an_answer(
    node: Node, data: bytes
) -> None:
    client = StreamClient(node)
    client.say(data)
    assert client.hear() == []
    assert client.connection.is_finished


def test_the_frame_size_before_the_connection_is_open_is_configured() -> None:
    node = Node(frame_size_handshake=5_000)
    clients = {size: StreamClient(node) for size in (5_000, 5_001)}
    for size, client in clients.items():
        client.say(size.to_bytes(4, "big"))
    assert [client.connection.is_finished for client in clients.values()] == [False, True]


def test_a_frame_of_up_to_16_mib_is_accepted_whatever_was_negotiated(node: Node) -> None:
    for asked in (0, 5_000, 2_000_000):
        client = StreamClient(node)
        client.open(frame_size_max=asked)
        client.say((STREAM_FRAME_ACCEPTED_MAX + 1).to_bytes(4, "big"))
        assert client.hear() == [commands.Close(ResponseCode.FRAME_TOO_LARGE, "frame too large")]
        client = StreamClient(node)
        client.open(frame_size_max=asked)
        client.say(STREAM_FRAME_ACCEPTED_MAX.to_bytes(4, "big"))
        assert client.hear() == []


def test_a_handshake_that_takes_too_long_is_dropped(node: Node) -> None:
    client = StreamClient(node)
    assert client.connection.deadline() == HANDSHAKE_MS
    client.expire(HANDSHAKE_MS - 1)
    assert not client.connection.is_finished
    client.expire(HANDSHAKE_MS)
    assert client.connection.is_finished
