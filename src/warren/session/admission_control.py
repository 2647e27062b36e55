"""Who may come in: users by their credentials, virtual hosts by permission, both up to their limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from warren.access.authenticate import Authenticator
from warren.access.authorize import check_vhost
from warren.errors import AmqpError, InternalError, LoginRefused, NotAllowed
from warren.metadata.machine import Metadata
from warren.metadata.users import User
from warren.session.events.event_publisher import AMQP, PROTOCOLS, EventPublisher
from warren.session.peer import Peer

_CONNECTIONS_LIMIT = "max-connections"


@dataclass(slots=True)
class AuthAttempts:
    """How often somebody tried to log in by one protocol."""

    succeeded: int = 0
    failed: int = 0


class ConnectionCounts(Protocol):
    """How many connections are open, and what may be connected to."""

    @property
    def event_publisher(self) -> EventPublisher:
        """Who tells of logins."""

    def connections_of(self, user: str) -> int:
        """Those of `user`."""

    def connections_to(self, vhost: str) -> int:
        """Those to `vhost`."""

    def is_alive(self, vhost: str) -> bool:
        """Whether `vhost`, which exists, is not down."""


class AdmissionControl:
    """What the handshakes of one node ask; every refusal is an exception that becomes the reply."""

    def __init__(
        self,
        metadata: Metadata,
        authenticator: Authenticator,
        counts: Callable[[], ConnectionCounts],
        report: Callable[[str], None],
    ) -> None:
        self._metadata = metadata
        self._authenticator = authenticator
        self._counts = counts
        self._report = report
        self._attempts: dict[str, AuthAttempts] = {}

    @property
    def attempts(self) -> Mapping[str, "AuthAttempts"]:
        """How often somebody tried to log in, by protocol."""
        return self._attempts

    def forget_attempts(self) -> None:
        """Count them from zero again."""
        self._attempts.clear()

    def mechanisms(self, peer: Peer) -> tuple[str, ...]:
        """SASL mechanisms offered to `peer`, in order of preference."""
        return self._authenticator.mechanisms(peer)

    async def authenticate(
        self, mechanism: str, response: bytes, peer: Peer, *, protocol: str = AMQP
    ) -> User:
        """The user; LoginRefused if it is nobody, another AmqpError if the response is malformed."""
        attempts = self._attempts.setdefault(protocol, AuthAttempts())
        try:
            user = await self._authenticator.authenticate(mechanism, response, peer)
            attempts.succeeded += 1
            if protocol in PROTOCOLS:
                self._counts().event_publisher.authenticated(user.name, mechanism, peer, protocol=protocol)
            return user
        except AmqpError as error:
            attempts.failed += 1
            if protocol in PROTOCOLS and isinstance(error, LoginRefused):
                self._counts().event_publisher.authenticated(
                    error.user,
                    mechanism,
                    peer,
                    protocol=protocol,
                    error=f"user '{error.user}' - invalid credentials",
                )
            if protocol != AMQP:
                self._report(f"{mechanism} login refused for {peer.name}: {error.name.lower()}")
            raise

    async def renewed(self, user: User, secret: str) -> User:
        """`user`, with what a new secret lets them do; NotAllowed if it is not theirs."""
        return await self._authenticator.renewed(user, secret)

    def admit(self, user: User, vhost: str, peer: Peer) -> None:
        """Raise unless `user` may open a connection to `vhost` now (RabbitMQ 3.10.8, measured)."""
        found = self._metadata.vhost(vhost)
        if found is None:
            raise NotAllowed(f"vhost {vhost} not found")
        limit = found.limit(_CONNECTIONS_LIMIT)
        if limit is not None and self._counts().connections_to(vhost) >= limit:
            raise NotAllowed(
                f"access to vhost '{vhost}' refused for user '{user.name}': "
                f"connection limit ({limit}) is reached"
            )
        self._check_user_limit(user.name)
        check_vhost(self._metadata, user, vhost)
        if not self._counts().is_alive(vhost):
            raise InternalError(
                f"access to vhost '{vhost}' refused for user '{user.name}': vhost '{vhost}' is down"
            )

    def _check_user_limit(self, user: str) -> None:
        known = self._metadata.users.by_name.get(user)
        limit = known.limit(_CONNECTIONS_LIMIT) if known is not None else None
        if limit is not None and self._counts().connections_of(user) >= limit:
            raise NotAllowed(
                f"connection refused for user '{user}': user connection limit ({limit}) is reached"
            )
