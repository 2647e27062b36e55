"""Who is at the other end of a connection: facts from the socket, the PROXY header and TLS."""

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address

# Hosts whose address was looked into: many clients come from few.
_HOSTS_MAX = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Both ends of one connection; behind a PROXY header, the ends that the proxy names."""

    host: str
    port: int
    server_host: str
    server_port: int
    is_tls: bool = False
    tls_protocol: str = ""
    tls_cipher: str = ""
    # The user that a verified client certificate names; None without such a certificate.
    certificate_login: str | None = None

    @property
    def is_loopback(self) -> bool:
        """The client, not the listener, is on this machine: users like guest are let in only then."""
        return is_loopback(self.host)

    @property
    def name(self) -> str:
        """The connection's name in logs and the management API, as RabbitMQ writes it."""
        return f"{self.host}:{self.port} -> {self.server_host}:{self.server_port}"


@lru_cache(_HOSTS_MAX)
def is_loopback(host: str) -> bool:
    """Whether `host` is an address of this machine that only it can use."""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
