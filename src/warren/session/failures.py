"""What a client did wrong, told to whoever operates the broker, in RabbitMQ's words."""

from typing import TYPE_CHECKING

from warren.errors import AmqpError
from warren.wire.methods import METHODS

if TYPE_CHECKING:
    from warren.session.connection import Connection

_NONE = "none"


def channel_failed(connection: "Connection", number: int, error: AmqpError, index: int) -> None:
    """Tell that `error`, in the method of `index`, ended a channel."""
    connection.server.client_failed(
        "channel",
        f"Channel error on connection {_place(connection)}, channel {number}: "
        f"operation {_operation(index)} caused a channel exception {_kind(error)}",
    )


def connection_failed(connection: "Connection", error: AmqpError) -> None:
    """Tell that `error` ends an open connection."""
    connection.server.client_failed(
        "connection",
        f"Error on AMQP connection {_place(connection)}: "
        f"operation {_operation(error.method_index or 0)} caused a connection exception {_kind(error)}",
    )


def _place(connection: "Connection") -> str:
    login, domain = connection.login, connection.domain
    if login is None or domain is None:
        return connection.peer.name
    return f"{connection.peer.name} (vhost: '{domain.vhost.name}', user: '{login.user}')"


def _operation(index: int) -> str:
    method = METHODS.get(index)
    return _NONE if method is None else method.name


def _kind(error: AmqpError) -> str:
    return f"{error.name.lower()}: {error.message}"
