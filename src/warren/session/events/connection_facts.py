"""The facts of a connection that the connection log and the events use, for either protocol."""

from typing import Protocol

from warren.session.login import Login
from warren.session.peer import Peer
from warren.vhost.requester import Owner


class ConnectionFacts(Protocol):
    """A client's connection as the log and the events describe it."""

    @property
    def protocol(self) -> str:
        """The protocol, as events name it."""

    @property
    def peer(self) -> Peer:
        """Both ends of the connection, and its TLS session."""

    @property
    def owner(self) -> Owner:
        """The owner of its exclusive queues; its serial is part of the connection's pid."""

    @property
    def connected_at(self) -> int:
        """When the client connected (Unix time, ms)."""

    @property
    def login(self) -> Login | None:
        """The user and what was negotiated; None before the connection was open."""

    @property
    def user(self) -> str:
        """The name of the user; empty before the connection was open."""

    @property
    def identity(self) -> str:
        """Who the user is, also among users of other issuers; empty before the connection was open."""

    @property
    def vhost_name(self) -> str:
        """The virtual host; empty before the connection was open."""

    @property
    def frame_size_max(self) -> int:
        """The negotiated frame_max in bytes."""
