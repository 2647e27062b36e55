"""The address of a broker, as an AMQP URI says it."""

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from warren.client.tls import NO_FILES, ClientTls

PORTS = {"amqp": 5672, "amqps": 5671}
DEFAULT_URI = "amqp://guest:guest@127.0.0.1:5672/%2f"
_SHAPE = "an AMQP URI is amqp://USER:PASSWORD@HOST:PORT/VHOST or amqps://…, with %40 for an @ in a password"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where to connect, as whom, and which files TLS has there."""

    host: str
    port: int
    user: str
    # Not in its text, which may be in a trace.
    password: str = field(repr=False)
    vhost: str
    is_tls: bool
    tls: ClientTls = NO_FILES


def parse_uri(uri: str) -> Target:
    """The target that `uri` names; what it leaves out has RabbitMQ's defaults (AMQP URI specification).

    No text of a ValueError repeats `uri`: a password is in it.
    """
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        raise ValueError(_SHAPE) from None
    if parts.scheme not in PORTS:
        raise ValueError(_SHAPE)
    # No path at all means the default vhost; `amqp://host/` names the vhost with the empty name.
    vhost = unquote(parts.path[1:]) if parts.path else "/"
    if "/" in parts.path[1:]:
        raise ValueError(f"{_SHAPE}; a slash inside a vhost is written %2f")
    return Target(
        host=parts.hostname or "localhost",
        port=port or PORTS[parts.scheme],
        user=unquote(parts.username) if parts.username is not None else "guest",
        password=unquote(parts.password) if parts.password is not None else "guest",
        vhost=vhost,
        is_tls=parts.scheme == "amqps",
    )
