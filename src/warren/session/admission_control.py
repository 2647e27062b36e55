"""Authentication of clients, and their admission to virtual hosts within the connection limits."""

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from warren.access.authenticate import Authenticator
from warren.access.authorize import check_vhost
from warren.access.web_grants import AskWebServer
from warren.errors import AmqpError, InternalError, LoginRefused, NotAllowed, NotFound
from warren.metadata.machine import Metadata
from warren.metadata.refusal_check import RefusalCheck
from warren.metadata.users import User
from warren.model.decided import decided
from warren.session.events.event_publisher import AMQP, PROTOCOLS, EventPublisher
from warren.session.peer import Peer

_CONNECTIONS_LIMIT = "max-connections"


class AuthAttempts(Struct):
    """The successful and failed logins over one protocol."""

    succeeded: int = 0
    failed: int = 0


class ConnectionCounts(Protocol):
    """The numbers of open connections, on all nodes, and which virtual hosts are available."""

    @property
    def event_publisher(self) -> EventPublisher:
        """The publisher of login events."""

    def connections_of(self, user: str) -> int:
        """The number of open connections of `user`."""

    def connections_to(self, vhost: str) -> int:
        """The number of open connections to `vhost`."""

    def is_alive(self, vhost: str) -> bool:
        """True if `vhost`, which exists, is running."""

    async def wait_until_started(self, vhost: str) -> None:
        """Wait while `vhost`, which exists, starts for the first time."""


class AdmissionControl:
    """Decides for the handshakes of one node; a refusal is raised as the exception that becomes the reply."""

    def __init__(
        self,
        metadata: Metadata,
        authenticator: Authenticator,
        counts: Callable[[], ConnectionCounts],
        report: Callable[[str], None],
        *,
        refusal_check: RefusalCheck,
    ) -> None:
        self._refusal_check = refusal_check
        self._metadata = metadata
        self._authenticator = authenticator
        self._counts = counts
        self._report = report
        self._attempts: dict[str, AuthAttempts] = {}

    @property
    def attempts(self) -> Mapping[str, "AuthAttempts"]:
        """The login attempts by protocol."""
        return self._attempts

    def forget_attempts(self) -> None:
        """Reset the login attempts to zero."""
        self._attempts.clear()

    def mechanisms(self, peer: Peer) -> tuple[str, ...]:
        """SASL mechanisms offered to `peer`, in order of preference."""
        return self._authenticator.mechanisms(peer)

    async def authenticate(
        self, mechanism: str, response: bytes, peer: Peer, *, protocol: str = AMQP
    ) -> User:
        """Return the authenticated user. LoginRefused for wrong credentials, AmqpError if malformed."""
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

    @property
    def ask_web_server(self) -> AskWebServer | None:
        """The port that asks the web server for permissions; None if none decides them."""
        return self._authenticator.ask_web_server

    async def renewed(self, user: User, secret: str) -> User:
        """Return `user` with the permissions of a new secret. NotAllowed if it belongs to another user."""
        return await self._authenticator.renewed(user, secret)

    async def admit(self, user: User, vhost: str, peer: Peer) -> None:
        """Raise AmqpError unless `user` may open a connection to `vhost` now (RabbitMQ 3.10.8, measured).

        Both may have been created on another node, so that this one has to apply that, and to start `vhost`.
        """
        index = self._refusal_check.index
        try:
            await decided(lambda: self._admit_started(user, vhost))
            return
        except NotAllowed as refusal:
            is_absent = self._metadata.vhost(vhost) is None
            doubted = NotFound(refusal.message) if is_absent else refusal
            if not await self._refusal_check.is_refuted(doubted, index):
                raise
        await decided(lambda: self._admit_started(user, vhost))

    async def _admit_started(self, user: User, vhost: str) -> None:
        if self._metadata.vhost(vhost) is not None and not self._counts().is_alive(vhost):
            await self._counts().wait_until_started(vhost)
        self._admit(user, vhost)

    def _admit(self, user: User, vhost: str) -> None:
        found = self._metadata.vhost(vhost)
        if found is None:
            raise NotAllowed(f"vhost {vhost} not found")
        limit = found.limit(_CONNECTIONS_LIMIT)
        if limit is not None and self._counts().connections_to(vhost) >= limit:
            raise NotAllowed(
                f"access to vhost '{vhost}' refused for user '{user.name}': "
                f"connection limit ({limit}) is reached"
            )
        self._check_user_limit(user.identity)
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
