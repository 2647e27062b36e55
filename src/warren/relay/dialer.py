"""Port: opens connections to brokers; implemented above the waterline, where the sockets are."""

from typing import Protocol

from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.uri import Target


class Dialer(Protocol):
    """Opens a connection to one address, with its handshake."""

    async def dial(
        self, target: Target, name: str, user: str, listener: ConnectionListener
    ) -> ClientConnection:
        """Return an open connection to `target`, which the broker shows under `name`.

        A target without a host is this node: the connection is in memory, and has the rights of `user`, the
        user who made the shovel or the link. Raises BrokerRefused if there is no such address, nobody
        listens, TLS fails, the login is refused, or it takes too long.
        """
