"""Who is at the other end of a connection: facts from the socket, the PROXY header and TLS."""

from dataclasses import dataclass
from ipaddress import ip_address


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
        try:
            address = ip_address(self.host)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return bool((mapped or address).is_loopback)

    @property
    def name(self) -> str:
        """The connection's name in logs and the management API, as RabbitMQ writes it."""
        return f"{self.host}:{self.port} -> {self.server_host}:{self.server_port}"
