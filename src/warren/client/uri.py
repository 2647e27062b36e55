"""Parses AMQP URIs, the addresses of brokers."""

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

PORTS = {"amqp": 5672, "amqps": 5671}
DEFAULT_URI = "amqp://guest:guest@127.0.0.1:5672/%2f"
_SHAPE = "an AMQP URI is amqp://USER:PASSWORD@HOST:PORT/VHOST or amqps://…, with %40 for an @ in a password"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """Files of trusted certificates and of the client certificate."""

    # None: the trusted certificates of the system.
    ca_file: str | None = None
    cert_file: str | None = None
    # None: the key is in `cert_file`.
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    is_verified: bool = True


NO_FILES = ClientTls()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The address of a broker, the user, and the TLS files."""

    host: str
    port: int
    user: str
    # Not in the repr, which can end up in a traceback.
    password: str = field(repr=False)
    vhost: str
    is_tls: bool
    tls: ClientTls = NO_FILES


def parse_uri(uri: str) -> Target:
    """Parse `uri` by the AMQP URI specification; missing parts have RabbitMQ's defaults.

    Raises ValueError, whose text does not contain `uri`, since it may have a password.
    """
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        raise ValueError(_SHAPE) from None
    if parts.scheme not in PORTS:
        raise ValueError(_SHAPE)
    # Without a path the vhost is the default one; `amqp://host/` names the vhost with the empty name.
    vhost = unquote(parts.path[1:]) if parts.path else "/"
    if "/" in parts.path[1:]:
        raise ValueError(f"{_SHAPE}; write a slash in the name of a vhost as %2f")
    return Target(
        host=parts.hostname or "localhost",
        port=port or PORTS[parts.scheme],
        user=unquote(parts.username) if parts.username is not None else "guest",
        password=unquote(parts.password) if parts.password is not None else "guest",
        vhost=vhost,
        is_tls=parts.scheme == "amqps",
    )
