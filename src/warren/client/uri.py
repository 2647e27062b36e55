"""Parses AMQP URIs, the addresses of brokers."""

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from warren.limits import CHANNELS_MAX, FRAME_SIZE_MAX

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
    # The name that the certificate of the broker must have, and that it is asked for (SNI). None: the host of
    # the address; empty: it is asked for no name, and its certificate may have any.
    server_name: str | None = None


NO_FILES = ClientTls()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The address of a broker, the user, the TLS files, and what else its URI says."""

    # Empty for a local target: the node itself.
    host: str
    port: int
    # Empty for the target of a link whose URI has no user.
    user: str
    # Not in the repr, which can end up in a traceback.
    password: str = field(repr=False)
    vhost: str
    is_tls: bool
    tls: ClientTls = NO_FILES
    # SASL mechanisms, of which the first that the broker offers is used.
    mechanisms: tuple[str, ...] = ("PLAIN",)
    # None: what the broker proposes; 0 disables heartbeats.
    heartbeat_s: int | None = None
    # How long opening the connection may take; None: the default.
    timeout_ms: int | None = None
    channels_max: int = CHANNELS_MAX
    frame_size_max: int = FRAME_SIZE_MAX

    @property
    def is_local(self) -> bool:
        """True if this is the node itself, which is reached without a socket."""
        return not self.host


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
    # As in the URIs of PostgreSQL, a host that begins with %2F is the path of a Unix socket.
    named = parts.netloc.rpartition("@")[2]
    is_unix = named[:3].lower() == "%2f"
    if is_unix and parts.scheme == "amqps":
        raise ValueError("an amqps URI cannot have the path of a Unix socket as its host")
    return Target(
        host=unquote(named) if is_unix else parts.hostname or "localhost",
        port=port or PORTS[parts.scheme],
        user=unquote(parts.username) if parts.username is not None else "guest",
        password=unquote(parts.password) if parts.password is not None else "guest",
        vhost=vhost,
        is_tls=parts.scheme == "amqps",
    )
