"""The connection log: one line for each step in the life of a connection of AMQP 0-9-1 and of its channels.

The lines are those of RabbitMQ's log, so that tools which read that log can read this one. One difference:
each entry is one line. Where RabbitMQ puts a reason on a second line, it follows a colon here. The facts of
an entry are also passed on as fields.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol

from warren.errors import AmqpError, LoginRefused
from warren.limits import LOGGED_NAME_LENGTH_MAX
from warren.metadata.users import User
from warren.session.events.connection_facts import ConnectionFacts
from warren.wire.methods import METHODS

CONNECTION = "connection"
CHANNEL = "channel"

# Writes one line: category, level, text, and the facts as fields.
WriteLog = Callable[[str, str, str, Mapping[str, object]], None]

_NONE = "none"
# The first bytes of clients that speak another protocol: HTTP requests, and the first record of TLS.
_OTHER_PROTOCOLS = (
    ((b"GET ", b"HEAD ", b"PUT ", b"POST ", b"DELETE ", b"OPTIONS "), "HTTP"),
    ((b"\x16\x03",), "TLS"),
)


class HandshakeFacts(Protocol):
    """A handshake that was refused."""

    @property
    def account(self) -> User:
        """The user; its name is empty before one was authenticated."""

    @property
    def mechanism(self) -> str:
        """The SASL mechanism that the client chose."""

    @property
    def client_properties(self) -> dict[str, object]:
        """The properties of start-ok."""

    @property
    def phase(self) -> Enum:
        """The step of the handshake, by RabbitMQ's name."""


class ConnectionLog:
    """Writes the lines about connections and channels."""

    __slots__ = ("_pid", "_write")

    def __init__(self, write: WriteLog, pid: Callable[[int], str]) -> None:
        """`pid` names the connection with a serial number, in the form of an Erlang process id."""
        self._write = write
        self._pid = pid

    def accepted(self, connection: ConnectionFacts) -> None:
        """The client has sent its first bytes; a connection without any is only logged when it ends."""
        self._log_accepted(connection, f"AMQP connection {self._description(connection)}")

    def stream_accepted(self, connection: ConnectionFacts) -> None:
        """A client of the stream protocol has connected."""
        self._log_accepted(connection, f"stream connection {connection.peer.name}")

    def opened(self, connection: ConnectionFacts) -> None:
        """The handshake is complete; the client may have given the connection a name."""
        assert connection.login is not None
        name = self._log_client_name(connection, connection.login.client_properties)
        vhost, user = connection.vhost_name, connection.login.user
        self._log(
            connection,
            "info",
            f"connection {self._description(connection, name)}: user '{user}' authenticated and granted "
            f"access to vhost '{vhost}'",
            {"user": user, "vhost": vhost},
        )

    def closing(self, connection: ConnectionFacts) -> None:
        """The connection was open and is closed in an orderly way."""
        self._log(connection, "info", f"closing AMQP connection {self._full_description(connection)}")

    def client_disconnected(self, connection: ConnectionFacts) -> None:
        """The client closed the socket without connection.close."""
        where = self._full_description(connection)
        level, why = "warning", "client unexpectedly closed TCP connection"
        if connection.peer.local_name:
            # A connection in memory: the link has logged the error that has ended it.
            level, why = "info", "its shovel or federation link has ended"
        self._log(connection, level, f"closing AMQP connection {where}: {why}")

    def disconnected_silently(self, connection: ConnectionFacts) -> None:
        """The client closed the socket before it sent any bytes, as a port check does."""
        where = self._description(connection)
        self._log(connection, "debug", f"accepting AMQP connection {where}")
        why = "the client closed it before it sent any data"
        self._log(connection, "debug", f"closing AMQP connection {where}: {why}")

    def wrong_protocol(self, connection: ConnectionFacts, header: bytes) -> None:
        """The client did not begin with the header of AMQP 0-9-1, but with `header`."""
        what = "the client does not speak AMQP"
        for beginnings, spoken in _OTHER_PROTOCOLS:
            if header.startswith(beginnings):
                what = f"the client speaks {spoken}, not AMQP"
        why = f"{what}: it began with {header!r}"
        self._log(connection, "error", f"closing AMQP connection {self._description(connection)}: {why}")

    def handshake_timed_out(self, connection: ConnectionFacts, awaited: str) -> None:
        """The client did not complete the handshake in time; `awaited` did not arrive."""
        why = f"the handshake took too long: {awaited} did not come"
        self._log(connection, "error", f"closing AMQP connection {self._description(connection)}: {why}")

    def heartbeats_missed(self, connection: ConnectionFacts) -> None:
        """The client has sent nothing for longer than the heartbeat timeout allows."""
        assert connection.login is not None
        where = self._full_description(connection)
        why = f"missed heartbeats from client, timeout: {connection.login.heartbeat_s}s"
        self._log(connection, "error", f"closing AMQP connection {where}: {why}")

    def handshake_refused(
        self, connection: ConnectionFacts, handshake: HandshakeFacts, error: AmqpError
    ) -> None:
        """The handshake fails with `error`; of wrong credentials it is not logged which part is wrong."""
        why, user = error.message, handshake.account.name
        name = known = self._log_client_name(connection, handshake.client_properties)
        whose = no_vhost = ""
        if isinstance(error, LoginRefused):
            why = f"{handshake.mechanism} login refused: user '{error.user}' - invalid credentials"
            known = ""
        elif user:
            whose, no_vhost = f", user: '{user}'", ", vhost: 'none'"
        where = self._description(connection, known, f"{whose}, state: {handshake.phase.value}")
        self._log(connection, "error", f"Error on AMQP connection {where}: {why}")
        where = self._description(connection, name, no_vhost + whose)
        self._log(connection, "info", f"closing AMQP connection {where}")

    def connection_failed(self, connection: ConnectionFacts, error: AmqpError, number: int) -> None:
        """The open connection fails with `error`, in a method on channel `number` if it has an index."""
        index = error.method_index or 0
        where = self._full_description(connection, ", state: running")
        self._log(
            connection,
            "error",
            f"Error on AMQP connection {where}, channel {number if index else 0}: operation "
            f'{_operation(index)} caused a connection exception {error.name.lower()}: "{error.message}"',
        )
        self.closing(connection)

    def channel_failed(self, connection: ConnectionFacts, number: int, error: AmqpError, index: int) -> None:
        """Channel `number` fails with `error`, in the method of `index`."""
        where = self._full_description(connection, is_named=False)
        self._log(
            connection,
            "error",
            f"Channel error on connection {where}, channel {number}: operation {_operation(index)} caused a "
            f"channel exception {error.name.lower()}: {error.message}",
            {"channel": number},
            category=CHANNEL,
        )

    def consumer_timed_out(
        self, connection: ConnectionFacts, number: int, tag: str, timeout_ms: int | None
    ) -> None:
        """The consumer `tag` of channel `number` is cancelled: a delivery was unacknowledged too long."""
        where = self._full_description(connection)
        self._log(
            connection,
            "warning",
            f"Consumer '{tag}' on channel {number} of connection {where} has timed out waiting for delivery "
            f"acknowledgement. Timeout used: {timeout_ms} ms. It is cancelled",
            {"channel": number},
            category=CHANNEL,
        )

    def _log_accepted(self, connection: ConnectionFacts, description: str) -> None:
        where = {"peer_host": connection.peer.host, "peer_port": connection.peer.port}
        self._log(connection, "info", f"accepting {description}", where)

    def _log(
        self,
        connection: ConnectionFacts,
        level: str,
        text: str,
        more: Mapping[str, object] | None = None,
        *,
        category: str = CONNECTION,
    ) -> None:
        pid = self._pid(connection.owner.serial)
        fields = {"connection": connection.peer.name, "pid": pid, **(more or {})}
        self._write(category, level, text, fields)

    def _description(self, connection: ConnectionFacts, name: str = "", more: str = "") -> str:
        """The connection as `pid (from -> to - name, more)`."""
        named = f" - {name}" if name else ""
        return f"{self._pid(connection.owner.serial)} ({connection.peer.name}{named}{more})"

    def _full_description(self, connection: ConnectionFacts, more: str = "", *, is_named: bool = True) -> str:
        """The connection with its virtual host and user, if it was open."""
        login = connection.login
        if login is None:
            return self._description(connection, more=more)
        name = _given_name(login.client_properties) if is_named else ""
        whose = f", vhost: '{connection.vhost_name}', user: '{login.user}'"
        return self._description(connection, name, whose + more)

    def _log_client_name(self, connection: ConnectionFacts, client_properties: dict[str, object]) -> str:
        """Log and return the name that the client has given the connection; empty without one."""
        name = _given_name(client_properties)
        if name:
            where = self._description(connection)
            self._log(connection, "info", f"connection {where} has a client-provided name: {name}")
        return name


def _given_name(client_properties: dict[str, object]) -> str:
    name = client_properties.get("connection_name")
    return name[:LOGGED_NAME_LENGTH_MAX] if isinstance(name, str) else ""


def _operation(index: int) -> str:
    method = METHODS.get(index)
    return _NONE if method is None else method.name
