"""Who someone is: a name and a password, a token or a certificate, asked of each backend in order.

Every refusal of credentials has one text, and takes as long whatever is wrong: neither tells which users
exist. Who fails too often waits before the next attempt is looked at. A directory that does not answer lets
nobody in, and that is not held against them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from warren.access.directory import Directory, DirectoryRefused, DirectoryUnavailable
from warren.access.future import Future
from warren.access.grants import TokenUser
from warren.access.login_throttle import LoginThrottle, LoginThrottleSettings
from warren.access.mechanisms import AMQPLAIN, EXTERNAL, PLAIN, READERS
from warren.access.password_verifier import PasswordVerifier, PasswordVerifierDependencies
from warren.access.tokens import TokenRefused, TokenVerifier, is_like_token
from warren.errors import CommandInvalid, LoginRefused, NotAllowed
from warren.metadata.machine import Metadata
from warren.metadata.users import User


class LoginPeer(Protocol):
    """What is asked about the other end of a connection."""

    @property
    def host(self) -> str:
        """Its address."""

    @property
    def is_loopback(self) -> bool:
        """The client itself, not the listener, is on this machine."""

    @property
    def certificate_login(self) -> str | None:
        """The user whom a verified client certificate names."""


class BackendKind(Enum):
    """Who is asked who somebody is; RabbitMQ calls it a backend."""

    INTERNAL = "internal"
    OAUTH2 = "oauth2"
    LDAP = "ldap"


@dataclass(frozen=True, slots=True)
class Backend:
    """Who says who somebody is, and who says what they may do."""

    authentication: BackendKind = BackendKind.INTERNAL
    authorization: BackendKind = BackendKind.INTERNAL


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationSettings:
    """Which mechanisms are offered, in order, who is asked, and who is let in from this machine only."""

    mechanisms: tuple[str, ...] = (AMQPLAIN, PLAIN)
    backends: tuple[Backend, ...] = (Backend(),)
    loopback_users: frozenset[str] = frozenset(("guest",))
    login_throttle: LoginThrottleSettings = field(default_factory=LoginThrottleSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationDependencies(PasswordVerifierDependencies):
    """What logging in needs from above the waterline."""

    # Port: over after so many milliseconds.
    wait: Callable[[int], Future[None]]
    # Told what an operator should know, in one line.
    report: Callable[[str], None]
    # Reads tokens, if a backend wants any.
    tokens: TokenVerifier | None = None
    # Knows people, if a backend wants any.
    directory: Directory | None = None


class Authenticator:
    """Turns what a client says about itself into the name of a user."""

    __slots__ = (
        "_dependencies",
        "_login_throttle",
        "_mechanisms",
        "_metadata",
        "_password_verifier",
        "_settings",
        "_without_certificate",
    )

    def __init__(
        self, metadata: Metadata, settings: AuthenticationSettings, dependencies: AuthenticationDependencies
    ) -> None:
        self._metadata = metadata
        self._settings = settings
        self._dependencies = dependencies
        self._mechanisms = settings.mechanisms
        self._without_certificate = tuple(name for name in settings.mechanisms if name != EXTERNAL)
        self._password_verifier = PasswordVerifier(metadata, dependencies)
        self._login_throttle = LoginThrottle(settings.login_throttle)

    def mechanisms(self, peer: LoginPeer) -> tuple[str, ...]:
        """The mechanisms offered to `peer`: EXTERNAL only to one with a certificate."""
        return self._without_certificate if peer.certificate_login is None else self._mechanisms

    async def authenticate(self, mechanism: str, response: bytes, peer: LoginPeer) -> User:
        """The user, who has proved to be that one."""
        if mechanism not in self.mechanisms(peer):
            raise CommandInvalid(f"unknown authentication mechanism '{mechanism}'")
        if mechanism == EXTERNAL:
            name = peer.certificate_login or ""
            user = self._metadata.users.by_name.get(name)
        else:
            name, password = READERS[mechanism](response)
            user = await self._user(mechanism, name, password, peer)
        if user is None or (user.name in self._settings.loopback_users and not peer.is_loopback):
            raise refusal(mechanism, name)
        return user

    async def renewed(self, user: User, secret: str) -> User:
        """`user`, who has got `secret` in place of the old one; NotAllowed if that is not so.

        What does not expire needs no renewal: as in RabbitMQ, it is taken note of.
        """
        if not isinstance(user, TokenUser):
            return user
        found = await self._bearer(secret, user.name)
        if found is None or found.name != user.name:
            raise NotAllowed("New secret was refused by one of the backends", method_index=0)
        return found

    async def _user(self, mechanism: str, name: str, password: str, peer: LoginPeer) -> User | None:
        wait_ms = self._login_throttle.wait_ms(peer.host, name, self._dependencies.now())
        if wait_ms is None:
            raise refusal(mechanism, name)
        if wait_ms:
            await self._dependencies.wait(wait_ms)
        try:
            user = await self._found(name, password)
        except DirectoryUnavailable as error:
            self._dependencies.report(f"nobody says who {name!r} is: {error}")
            return None
        now = self._dependencies.now()
        if user is not None:
            self._login_throttle.succeeded(peer.host, name, now)
        elif self._login_throttle.failed(peer.host, name, now):
            self._dependencies.report(
                f"too many logins from {peer.host} failed: those that follow are slowed down"
            )
        return user

    async def _found(self, name: str, password: str) -> User | None:
        """Whom the first backend knows that knows anybody; DirectoryUnavailable if one could not say."""
        unavailable: DirectoryUnavailable | None = None
        backends = self._settings.backends
        if is_like_token(password):
            # Nobody's password: it need not be compared with one first, which takes long.
            backends = tuple(
                sorted(backends, key=lambda backend: backend.authentication is BackendKind.INTERNAL)
            )
        for backend in backends:
            try:
                user = await self._known_to(backend.authentication, name, password)
            except DirectoryUnavailable as error:
                unavailable = error
                continue
            if user is None:
                continue
            if backend.authorization is backend.authentication:
                return user
            # What somebody may do whom one backend knows, another says: the users of the metadata.
            known = self._metadata.users.by_name.get(user.name)
            if known is not None:
                return known
        if unavailable is not None:
            raise unavailable
        return None

    async def _known_to(self, source: BackendKind, name: str, password: str) -> User | None:
        match source:
            case BackendKind.INTERNAL:
                is_right = await self._password_verifier.is_password_of(name, password)
                return self._metadata.users.by_name.get(name) if is_right else None
            case BackendKind.OAUTH2:
                return await self._bearer(password, name)
            case BackendKind.LDAP:
                return await self._directory_user(name, password)

    async def _directory_user(self, name: str, password: str) -> User | None:
        directory = self._dependencies.directory
        if directory is None or (self._dependencies.tokens is not None and is_like_token(password)):
            # A token is for no directory to see.
            return None
        try:
            return await directory.user_of(name, password)
        except DirectoryRefused as error:
            self._dependencies.report(f"LDAP does not let {name!r} in: {error}")
            return None

    async def _bearer(self, token: str, name: str) -> TokenUser | None:
        tokens = self._dependencies.tokens
        if tokens is None or not is_like_token(token):
            return None
        try:
            return await tokens.user_of(token, name)
        except TokenRefused as error:
            self._dependencies.report(f"a token was refused: {error}")
            return None


def refusal(mechanism: str, name: str) -> LoginRefused:
    """What a client with wrong credentials is told that says it is `name`, whatever is wrong with them."""
    error = LoginRefused(
        f"Login was refused using authentication mechanism {mechanism}. For details see the broker logfile.",
        method_index=0,
    )
    error.user = name
    return error
