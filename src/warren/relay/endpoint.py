"""Connects to one end of a relay, which may have several addresses."""

from urllib.parse import quote

from msgspec import Struct

from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.uri import PORTS, Target
from warren.relay.dialer import Dialer


class Endpoint(Struct, frozen=True, kw_only=True):
    """One end of a relay: the addresses of its broker, and how the connection is called there."""

    targets: tuple[Target, ...]
    # How the addresses are shown, without credentials, in the same order; empty: as `shown_uri` has them.
    uris: tuple[str, ...] = ()
    # Shown by the broker as the name of the connection.
    name: str
    # The user whose rights a connection to this node has; see `Dialer`.
    user: str

    def shown_uri(self, place: int) -> str:
        """The address numbered `place` modulo their number, to be shown; empty if there is none."""
        if not self.targets:
            return ""
        place %= len(self.targets)
        return self.uris[place] if self.uris else shown_uri(self.targets[place])


class EndpointConnection(Struct, frozen=True):
    """An open connection to one of the addresses of an endpoint."""

    connection: ClientConnection
    target: Target
    # The address without credentials, to be shown.
    uri: str


async def connect(
    dialer: Dialer, endpoint: Endpoint, listener: ConnectionListener, first: int = 0
) -> EndpointConnection:
    """Connect to the first address that accepts, beginning with the one numbered `first` modulo their number.

    The number of the attempt as `first` distributes attempts over the addresses. Raises BrokerRefused, whose
    text names the failure of every address, and whose code is that of the last one.
    """
    targets = endpoint.targets
    failures: list[str] = []
    code = 0
    for place in range(first, first + len(targets)):
        target = targets[place % len(targets)]
        uri = endpoint.shown_uri(place)
        try:
            connection = await dialer.dial(target, endpoint.name, endpoint.user, listener)
        except BrokerRefused as error:
            failures.append(f"{uri}: {error.text}")
            code = error.code
        else:
            return EndpointConnection(connection, target, uri)
    raise BrokerRefused("; ".join(failures) or "there is no address to connect to", code)


def shown_uri(target: Target) -> str:
    """Return the address of `target` without user, password and files."""
    scheme = "amqps" if target.is_tls else "amqp"
    vhost = "" if target.vhost == "/" else f"/{quote(target.vhost, safe='')}"
    if not target.host:
        return f"{scheme}://{vhost}"
    host = f"[{target.host}]" if ":" in target.host else target.host
    port = "" if target.port == PORTS[scheme] else f":{target.port}"
    return f"{scheme}://{host}{port}{vhost}"
