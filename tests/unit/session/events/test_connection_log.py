"""The connection log has RabbitMQ's texts, with address, user and virtual host."""

import re

import pytest
from tests.unit.session.client import Broker, OpenGate, call

from warren.errors import ConnectionForced, LoginRefused
from warren.limits import LOGGED_NAME_LENGTH_MAX
from warren.metadata.users import User
from warren.session.handshake import PROTOCOL_HEADER
from warren.session.peer import Peer
from warren.wire import methods

NAME = "127.0.0.1:1 -> 127.0.0.1:5672"
PLACE = f"PID ({NAME}, vhost: '/', user: 'guest')"


def reported(broker: Broker) -> list[tuple[str, str, str]]:
    """Category, level and text, with PID in place of the process identifier."""
    return [
        (category, level, re.sub(r"connection <[^ >]+>", "connection PID", text))
        for category, level, text in broker.reported
    ]


def test_opening_and_closing_a_connection_is_logged_as_by_rabbitmq() -> None:
    broker = Broker()
    client = broker.connect()
    client.send(PROTOCOL_HEADER)
    client.log_in(named="named")
    client.send(call(methods.ConnectionClose(), 0))
    assert reported(broker) == [
        ("connection", "info", f"accepting AMQP connection PID ({NAME})"),
        ("connection", "info", f"connection PID ({NAME}) has a client-provided name: named"),
        (
            "connection",
            "info",
            f"connection PID ({NAME} - named): user 'guest' authenticated and granted access to vhost '/'",
        ),
        ("connection", "info", f"closing AMQP connection PID ({NAME} - named, vhost: '/', user: 'guest')"),
    ]


def test_a_connection_closed_without_handshake_is_a_warning() -> None:
    broker = Broker()
    broker.client().connection.lost()
    why = "client unexpectedly closed TCP connection"
    assert reported(broker)[-1] == ("connection", "warning", f"closing AMQP connection {PLACE}: {why}")


def test_a_connection_closed_by_the_broker_is_not_logged_as_lost() -> None:
    broker = Broker()
    connection = broker.client().connection
    connection.close(ConnectionForced("enough"))
    count = len(broker.reported)
    connection.lost()
    assert len(broker.reported) == count


@pytest.mark.parametrize(
    ("sent", "level", "why"),
    [
        (b"", "debug", "the client closed it before it sent any data"),
        (b"AMQ", "warning", "client unexpectedly closed TCP connection"),
        (PROTOCOL_HEADER, "warning", "client unexpectedly closed TCP connection"),
        (b"GET / HT", "error", "the client speaks HTTP, not AMQP: it began with b'GET / HT'"),
        (b"\x80\n345678", "error", "the client does not speak AMQP: it began with b'\\x80\\n345678'"),
    ],
)
def test_the_level_of_a_failed_handshake_depends_on_what_the_client_sent(
    sent: bytes, level: str, why: str
) -> None:
    broker = Broker()
    client = broker.connect()
    if sent:
        client.send(sent)
    client.connection.lost()
    assert reported(broker)[-1] == ("connection", level, f"closing AMQP connection PID ({NAME}): {why}")
    assert len(broker.reported) == 2


@pytest.mark.parametrize(
    ("sent", "awaited"), [(b"AMQ", "its protocol header"), (PROTOCOL_HEADER, "its next frame")]
)
def test_a_handshake_timeout_names_the_phase(sent: bytes, awaited: str) -> None:
    broker = Broker()
    client = broker.connect()
    client.send(sent)
    due = client.connection.deadline()
    assert due is not None
    client.expire(due)
    why = f"the handshake took too long: {awaited} did not come"
    assert reported(broker)[-1] == ("connection", "error", f"closing AMQP connection PID ({NAME}): {why}")


class ClosedGate(OpenGate):
    """An admission control that refuses every client."""

    async def authenticate(self, mechanism: str, response: bytes, peer: Peer) -> User:
        refusal = LoginRefused("Login was refused")
        refusal.user = "guest"
        raise refusal


def test_a_refused_login_names_the_user_and_no_password() -> None:
    broker = Broker()
    broker.server.admission_control = ClosedGate()
    client = broker.connect()
    properties = {"connection_name": "n" * 999}
    client.send(
        PROTOCOL_HEADER, call(methods.ConnectionStartOk(properties, "PLAIN", "\0guest\0secret", "en_US"), 0)
    )
    client.connection.lost()
    name = "n" * LOGGED_NAME_LENGTH_MAX
    assert [text for _, _, text in reported(broker)[1:]] == [
        f"connection PID ({NAME}) has a client-provided name: {name}",
        f"Error on AMQP connection PID ({NAME}, state: starting): PLAIN login refused: "
        "user 'guest' - invalid credentials",
        f"closing AMQP connection PID ({NAME} - {name})",
    ]


def test_a_channel_error_names_connection_user_and_operation() -> None:
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="missing", passive=True))
    assert reported(broker)[-1] == (
        "channel",
        "error",
        f"Channel error on connection {PLACE}, channel 1: operation queue.declare caused a channel "
        "exception not_found: no queue 'missing' in vhost '/'",
    )
    assert client.connection.is_open


def test_a_connection_error_is_logged_once() -> None:
    broker = Broker()
    broker.client().ask(methods.ChannelOpen(), methods.ChannelOpen())
    [(category, _, text)] = [line for line in reported(broker) if line[1] == "error"]
    assert category == "connection"
    assert text.startswith(
        f"Error on AMQP connection {PLACE[:-1]}, state: running), channel 1: operation channel.open caused a "
        "connection exception"
    )


def test_a_connection_closed_by_the_broker_has_no_operation() -> None:
    broker = Broker()
    broker.client().connection.close(ConnectionForced("enough"))
    assert reported(broker)[-2] == (
        "connection",
        "error",
        f"Error on AMQP connection {PLACE[:-1]}, state: running), channel 0: operation none caused a "
        'connection exception connection_forced: "enough"',
    )
