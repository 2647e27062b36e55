"""The addresses and the TLS session of a connection, from the socket, the PROXY header and TLS."""

from functools import lru_cache
from ipaddress import ip_address

from msgspec import Struct

# Cached hosts: many clients come from few hosts.
_HOSTS_MAX = 1024


class Peer(Struct, frozen=True, kw_only=True):
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
    # A client in memory, which is the node itself: its name, and the user that it is without a password, or
    # empty if it logs in with one. Nothing that arrives at a socket sets these.
    local_name: str = ""
    local_user: str = ""
    # True for a client in memory that acts for the operator of the node.
    is_operator: bool = False
    # True for a shovel or federation link, whichever node makes it.
    is_link: bool = False

    @property
    def is_loopback(self) -> bool:
        """True if the client itself, not the listener, is on this machine: users such as guest require it.

        A link acts for somebody who may be anywhere: where its node is says nothing about who that is. Only
        one that has the rights of a user without a password is the user.
        """
        if self.local_name:
            return bool(self.local_user) or self.is_operator
        return not self.is_link and is_loopback(self.host)

    @property
    def name(self) -> str:
        """The connection's name in logs and the management API, as RabbitMQ writes it."""
        return self.local_name or f"{self.host}:{self.port} -> {self.server_host}:{self.server_port}"


@lru_cache(_HOSTS_MAX)
def is_loopback(host: str) -> bool:
    """True if `host` is a loopback address, or the path of a Unix socket."""
    if host.startswith("/"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
