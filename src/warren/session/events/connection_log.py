"""What becomes of connections and channels, told to whoever operates the broker.

The lines are those of RabbitMQ's log, so that what reads that one can read this one, but that each is whole:
where RabbitMQ puts a reason into a second line, here it stands behind a colon. What is known is data as well.
"""

from typing import TYPE_CHECKING

from warren.errors import AmqpError, LoginRefused
from warren.limits import LOGGED_NAME_LENGTH_MAX
from warren.session.handshake import Handshake, HandshakePhase
from warren.session.handshake_driver import HandshakeDriver
from warren.wire.methods import METHODS

if TYPE_CHECKING:
    from warren.session.connection import Connection

CONNECTION = "connection"
CHANNEL = "channel"

_NONE = "none"
# How others begin who have come to the wrong port: requests of HTTP, and the first record of TLS.
_OTHER_PROTOCOLS = (
    ((b"GET ", b"HEAD ", b"PUT ", b"POST ", b"DELETE ", b"OPTIONS "), "HTTP"),
    ((b"\x16\x03",), "TLS"),
)


def accepted(connection: "Connection") -> None:
    """Its client has begun to speak: who only looks whether the port is open is not told of."""
    peer = connection.peer
    where = {"peer_host": peer.host, "peer_port": peer.port}
    _log(connection, "info", f"accepting AMQP connection {_description(connection)}", where)


def opened(connection: "Connection") -> None:
    """It is open; its client may have given it a name."""
    login, services = connection.login, connection.services
    assert login is not None
    assert services is not None
    name = _client_name(connection, login.client_properties)
    vhost, user = services.vhost.name, login.user
    _log(
        connection,
        "info",
        f"connection {_description(connection, name)}: user '{user}' authenticated and granted access to "
        f"vhost '{vhost}'",
        {"user": user, "vhost": vhost},
    )


def closing(connection: "Connection") -> None:
    """It was open, and ends as it should."""
    _log(connection, "info", f"closing AMQP connection {_full_description(connection)}")


def client_disconnected(connection: "Connection", handshake_driver: HandshakeDriver | None) -> None:
    """Its client is gone; nothing is told if it had to go, or had said so."""
    if handshake_driver is None:
        if not connection.is_open:
            return
    elif handshake_driver.handshake.phase is HandshakePhase.REFUSED:
        return
    if handshake_driver is None or handshake_driver.header:
        why = "client unexpectedly closed TCP connection"
        _log(connection, "warning", f"closing AMQP connection {_full_description(connection)}: {why}")
    else:
        place = _description(connection)
        _log(connection, "debug", f"accepting AMQP connection {place}")
        why = "the client closed it before it said anything"
        _log(connection, "debug", f"closing AMQP connection {place}: {why}")


def wrong_protocol(connection: "Connection", header: bytes) -> None:
    """What came speaks another protocol."""
    what = "the client does not speak AMQP"
    for beginnings, spoken in _OTHER_PROTOCOLS:
        if header.startswith(beginnings):
            what = f"the client speaks {spoken}, not AMQP"
    why = f"{what}: it began with {header!r}"
    _log(connection, "error", f"closing AMQP connection {_description(connection)}: {why}")


def handshake_timed_out(connection: "Connection", handshake: Handshake) -> None:
    """Its client did not come to an end with the `handshake`; nothing is told if it was refused before."""
    if handshake.phase is HandshakePhase.REFUSED:
        return
    awaited = "its protocol header" if handshake.phase is HandshakePhase.AWAIT_HEADER else "its next frame"
    why = f"the handshake took too long: {awaited} did not come"
    _log(connection, "error", f"closing AMQP connection {_description(connection)}: {why}")


def heartbeats_missed(connection: "Connection") -> None:
    """Nothing was heard of its client for longer than it may be silent."""
    assert connection.login is not None
    why = f"missed heartbeats from client, timeout: {connection.login.heartbeat_s}s"
    _log(connection, "error", f"closing AMQP connection {_full_description(connection)}: {why}")


def handshake_refused(connection: "Connection", handshake: Handshake, error: AmqpError) -> None:
    """The `handshake` ends with `error`; what is wrong with credentials is not said in more than that."""
    why, user = error.message, handshake.account.name
    name = known = _client_name(connection, handshake.client_properties)
    who = nowhere = ""
    if isinstance(error, LoginRefused):
        why = f"{handshake.mechanism} login refused: user '{error.user}' - invalid credentials"
        known = ""
    elif user:
        who, nowhere = f", user: '{user}'", ", vhost: 'none'"
    place = _description(connection, known, f"{who}, state: {handshake.phase.value}")
    _log(connection, "error", f"Error on AMQP connection {place}: {why}")
    _log(connection, "info", f"closing AMQP connection {_description(connection, name, nowhere + who)}")


def connection_failed(connection: "Connection", error: AmqpError, number: int) -> None:
    """The open connection ends with `error`, in a method on channel `number` unless none is to blame."""
    index = error.method_index or 0
    place = _full_description(connection, ", state: running")
    _log(
        connection,
        "error",
        f"Error on AMQP connection {place}, channel {number if index else 0}: operation {_operation(index)} "
        f'caused a connection exception {error.name.lower()}: "{error.message}"',
    )
    closing(connection)


def channel_failed(connection: "Connection", number: int, error: AmqpError, index: int) -> None:
    """Channel `number` ends with `error`, in the method of `index`."""
    _log(
        connection,
        "error",
        f"Channel error on connection {_full_description(connection, is_named=False)}, channel {number}: "
        f"operation {_operation(index)} caused a channel exception {error.name.lower()}: {error.message}",
        {"channel": number},
        category=CHANNEL,
    )


def consumer_timed_out(connection: "Connection", number: int, tag: str) -> None:
    """The consumer `tag` of channel `number` is cancelled, as it has not settled a delivery in time."""
    timeout = connection.server.settings.consumer_timeout_ms
    _log(
        connection,
        "warning",
        f"Consumer '{tag}' on channel {number} of connection {_full_description(connection)} has timed out "
        f"waiting for delivery acknowledgement. Timeout used: {timeout} ms. It is cancelled",
        {"channel": number},
        category=CHANNEL,
    )


def _log(
    connection: "Connection",
    level: str,
    text: str,
    more: dict[str, object] | None = None,
    *,
    category: str = CONNECTION,
) -> None:
    fields = {"connection": connection.peer.name, "pid": _pid(connection), **(more or {})}
    connection.server.log(category, level, text, fields)


def _pid(connection: "Connection") -> str:
    return connection.server.event_publisher.pid(connection.owner.serial)


def _description(connection: "Connection", name: str = "", more: str = "") -> str:
    """Where it is, as `pid (from -> to - name, more)`."""
    named = f" - {name}" if name else ""
    return f"{_pid(connection)} ({connection.peer.name}{named}{more})"


def _full_description(connection: "Connection", more: str = "", *, is_named: bool = True) -> str:
    """Where it is, in which virtual host, and whose, as far as that is known."""
    login, services = connection.login, connection.services
    if login is None or services is None:
        return _description(connection, more=more)
    whose = f", vhost: '{services.vhost.name}', user: '{login.user}'"
    return _description(connection, _given_name(login.client_properties) if is_named else "", whose + more)


def _client_name(connection: "Connection", client_properties: dict[str, object]) -> str:
    """The name that its client has given it, which is told; empty if there is none."""
    name = _given_name(client_properties)
    if name:
        _log(connection, "info", f"connection {_description(connection)} has a client-provided name: {name}")
    return name


def _given_name(client_properties: dict[str, object]) -> str:
    name = client_properties.get("connection_name")
    return name[:LOGGED_NAME_LENGTH_MAX] if isinstance(name, str) else ""


def _operation(index: int) -> str:
    method = METHODS.get(index)
    return _NONE if method is None else method.name
