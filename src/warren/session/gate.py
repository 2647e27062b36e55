"""Who may come in: what the handshake asks about users and virtual hosts."""

from typing import Protocol

from warren.session.peer import Peer


class Gate(Protocol):
    """Answers for one node; every refusal is an exception that becomes the reply."""

    def mechanisms(self, peer: Peer) -> tuple[str, ...]:
        """SASL mechanisms offered to `peer`, in order of preference."""

    def authenticate(self, mechanism: str, response: bytes, peer: Peer) -> str:
        """The user's name; LoginRefused if it is nobody, AmqpSyntaxError if the response is malformed."""

    def admit(self, user: str, vhost: str, peer: Peer) -> None:
        """Raise NotAllowed unless `user` may open a connection to `vhost` now."""
