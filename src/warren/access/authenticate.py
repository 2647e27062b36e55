"""Authentication: finds the user of a client by password, token or certificate, asking each backend in order.

Every refusal of credentials has the same text and takes the same time, whatever was wrong, so that neither
reveals which users exist. After too many failures the next attempt is delayed. A directory that does not
answer causes a refusal that is not counted as a failure.
"""

from collections.abc import Awaitable, Callable
from enum import Enum
from functools import partial
from typing import Protocol

from msgspec import Struct, field

from warren.access.directory import Directory, DirectoryRefused, DirectoryUnavailable
from warren.access.future import Future
from warren.access.grants import ExternalUser, TokenUser
from warren.access.login_throttle import LoginThrottle, LoginThrottleSettings
from warren.access.mechanisms import AMQPLAIN, EXTERNAL, PLAIN, READERS
from warren.access.operator import OPERATOR_USER
from warren.access.password_verifier import PasswordVerifier, PasswordVerifierDependencies
from warren.access.tokens import TokenRefused, TokenVerifier, is_like_token
from warren.access.web_grants import HTTP, AskWebServer, web_user
from warren.errors import CommandInvalid, LoginRefused, NotAllowed
from warren.metadata.identity import INTERNAL
from warren.metadata.machine import Metadata
from warren.metadata.refusal_check import RefusalCheck
from warren.metadata.users import User


class LoginPeer(Protocol):
    """What authentication needs to know about the remote end of a connection."""

    @property
    def host(self) -> str:
        """The remote address."""

    @property
    def is_loopback(self) -> bool:
        """True if the client itself, not the listener, is on this machine."""

    @property
    def certificate_login(self) -> str | None:
        """The user name in the verified client certificate; None if there is no such certificate."""

    @property
    def local_user(self) -> str:
        """The user that a client in memory, which is the node itself, is without a password; else empty."""

    @property
    def is_operator(self) -> bool:
        """True if a client in memory acts for the operator of the node, who may do everything."""


class BackendKind(Enum):
    """The kinds of authentication backends; the values are RabbitMQ's names."""

    INTERNAL = "internal"
    OAUTH2 = "oauth2"
    LDAP = "ldap"
    HTTP = "http"


class Backend(Struct, frozen=True):
    """A pair of backends: one authenticates users, one authorizes them."""

    authentication: BackendKind = BackendKind.INTERNAL
    authorization: BackendKind = BackendKind.INTERNAL


class AuthenticationSettings(Struct, frozen=True, kw_only=True):
    """The offered mechanisms, the backends in order, and the users who can log in over loopback only."""

    mechanisms: tuple[str, ...] = (AMQPLAIN, PLAIN)
    backends: tuple[Backend, ...] = (Backend(),)
    loopback_users: frozenset[str] = frozenset(("guest",))
    login_throttle: LoginThrottleSettings = field(default_factory=LoginThrottleSettings)


class AuthenticationDependencies(PasswordVerifierDependencies, frozen=True, kw_only=True):
    """What authentication needs from above the waterline."""

    # Port: completes after the given number of milliseconds.
    wait: Callable[[int], Future[None]]
    # Port: logs one line for the operator.
    report: Callable[[str], None]
    # Verifies tokens; None if no backend uses them.
    tokens: TokenVerifier | None = None
    # Asks the directory; None if no backend uses it.
    directory: Directory | None = None
    # Port: the tags of a name and password, or of the name of a certificate, at the web server; None if it
    # refuses them. It raises DirectoryUnavailable without an answer. None if no backend asks.
    web_login: Callable[[str, str | None], Awaitable[tuple[str, ...] | None]] | None = None
    # Port: asks the web server for permissions; None if no backend does.
    ask_web_server: AskWebServer | None = None
    # Finds out whether a refusal was caused by metadata that are out of date; None if they never are.
    refusal_check: RefusalCheck | None = None


class Authenticator:
    """Authenticates clients: maps the SASL response of a client to a user."""

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

    @property
    def ask_web_server(self) -> AskWebServer | None:
        """The port that asks the web server for permissions; None if no backend does."""
        return self._dependencies.ask_web_server

    def mechanisms(self, peer: LoginPeer) -> tuple[str, ...]:
        """The mechanisms offered to `peer`; EXTERNAL only if it has a certificate, or is the node itself."""
        if peer.local_user or peer.is_operator:
            return (EXTERNAL,)
        return self._without_certificate if peer.certificate_login is None else self._mechanisms

    async def authenticate(self, mechanism: str, response: bytes, peer: LoginPeer) -> User:
        """Authenticate the client and return its user; LoginRefused if the credentials are not accepted."""
        if mechanism not in self.mechanisms(peer):
            raise CommandInvalid(f"unknown authentication mechanism '{mechanism}'")
        if peer.is_operator:
            return OPERATOR_USER
        if mechanism == EXTERNAL:
            name = peer.local_user or peer.certificate_login or ""
            user = await self._certified(name, peer)
        else:
            name, password = READERS[mechanism](response)
            user = await self._user(mechanism, name, password, peer)
        if user is None:
            raise refusal(mechanism, name)
        if user.name in self._settings.loopback_users and not peer.is_loopback:
            self._dependencies.report(
                f"user {user.name!r} may log in from this machine only, where no shovel or link counts as "
                "being: see the setting loopback_users"
            )
            raise refusal(mechanism, name)
        return user

    async def renewed(self, user: User, secret: str) -> User:
        """The user with new credentials `secret` in place of the old ones.

        NotAllowed if they are not accepted.

        For a user whose credentials do not expire the secret is accepted unchecked, as in RabbitMQ.
        """
        if not isinstance(user, TokenUser):
            return user
        found = await self._bearer(secret, user.name)
        if found is None or found.identity != user.identity:
            raise NotAllowed("New secret was refused by one of the backends", method_index=0)
        return found

    async def _user(self, mechanism: str, name: str, password: str, peer: LoginPeer) -> User | None:
        wait_ms = self._login_throttle.wait_ms(peer.host, name, self._dependencies.now())
        if wait_ms is None:
            raise refusal(mechanism, name)
        if wait_ms:
            await self._dependencies.wait(wait_ms)
        try:
            user = await self._checked(name, partial(self._found, name, password, peer.host))
        except DirectoryUnavailable as error:
            self._dependencies.report(f"cannot authenticate user {name!r}: {error}")
            return None
        now = self._dependencies.now()
        if user is not None:
            self._login_throttle.succeeded(peer.host, name, now)
        elif self._login_throttle.failed(peer.host, name, now):
            self._dependencies.report(
                f"too many failed logins from {peer.host}: further attempts are delayed"
            )
        return user

    async def _checked(self, name: str, find: Callable[[], Awaitable[User | None]]) -> User | None:
        """The result of `find`, which is called again if another node has just changed the user `name`."""
        refusal_check, by_name = self._dependencies.refusal_check, self._metadata.users.by_name
        known, index = by_name.get(name), self._metadata.index
        user = await find()
        if user is not None or refusal_check is None:
            return user
        is_refuted = await refusal_check.is_refuted(refusal("", name), index)
        # The changes of others are no reason to compare a wrong password twice.
        return await find() if is_refuted and by_name.get(name) is not known else None

    async def _certified(self, name: str, peer: LoginPeer) -> User | None:
        """The user whose name another authority has proved: a certificate, or the node itself."""
        is_asked = not peer.local_user
        find = partial(self._named_or_asked, name, peer.host) if is_asked else partial(self._named, name)
        try:
            return await self._checked(name, find)
        except DirectoryUnavailable as error:
            self._dependencies.report(f"cannot authenticate user {name!r}: {error}")
            return None

    async def _named(self, name: str) -> User | None:
        return self._metadata.users.by_name.get(name)

    async def _named_or_asked(self, name: str, ip: str) -> User | None:
        """The user from the first backend that knows the name; the web server is asked without a password."""
        for backend in self._settings.backends:
            if backend.authorization is not BackendKind.HTTP:
                user = await self._named(name)
            elif backend.authentication is BackendKind.HTTP:
                user = await self._web_user(name, None, ip)
            else:
                known = await self._named(name)
                user = None if known is None else await self._web_authorized(known, None, ip)
            if user is not None:
                return user
        return None

    async def _found(self, name: str, password: str, ip: str) -> User | None:
        """The user from the first backend that accepts the credentials; None if none does.

        Raises DirectoryUnavailable if none does and a directory did not answer.
        """
        unavailable: DirectoryUnavailable | None = None
        backends = self._settings.backends
        if is_like_token(password):
            # A token is not a user's password, so the backend with the slow password comparison is asked
            # last.
            backends = tuple(
                sorted(backends, key=lambda backend: backend.authentication is BackendKind.INTERNAL)
            )
        for backend in backends:
            try:
                user = await self._known_to(backend, name, password, ip)
            except DirectoryUnavailable as error:
                unavailable = error
                continue
            if user is None:
                continue
            if backend.authorization in (backend.authentication, BackendKind.HTTP):
                return user
            # One backend authenticates and another authorizes: the permissions are those of the user in the
            # metadata.
            known = self._metadata.users.by_name.get(user.name)
            if known is not None:
                return known
        if unavailable is not None:
            raise unavailable
        return None

    async def _known_to(self, backend: Backend, name: str, password: str, ip: str) -> User | None:
        """The user whom `backend` authenticates, whose permissions a web server decides if it is to."""
        source, is_web = backend.authentication, backend.authorization is BackendKind.HTTP
        if source is BackendKind.HTTP:
            if is_web:
                return await self._web_user(name, password, ip)
            # It is asked about every name, so that the time does not tell which of them exist.
            is_right = await self._web_tags(name, password) is not None
            return self._metadata.users.by_name.get(name) if is_right else None
        user = await self._user_of(source, name, password)
        return await self._web_authorized(user, password, ip) if is_web and user is not None else user

    async def _user_of(self, source: BackendKind, name: str, password: str) -> User | None:
        match source:
            case BackendKind.INTERNAL:
                is_right = await self._password_verifier.is_password_of(name, password)
                return self._metadata.users.by_name.get(name) if is_right else None
            case BackendKind.OAUTH2:
                return await self._bearer(password, name)
            case BackendKind.LDAP:
                return await self._directory_user(name, password)
            case BackendKind.HTTP:
                # It is asked for tags, not for users.
                return None

    async def _directory_user(self, name: str, password: str) -> User | None:
        directory = self._dependencies.directory
        if directory is None or (self._dependencies.tokens is not None and is_like_token(password)):
            # Tokens are secrets, so they are never sent to a directory.
            return None
        try:
            return await directory.user_of(name, password)
        except DirectoryRefused as error:
            self._dependencies.report(f"LDAP refused user {name!r}: {error}")
            return None

    async def _web_user(self, name: str, password: str | None, ip: str) -> User | None:
        """The user whom the web server knows, with the tags and the permissions that it decides."""
        tags, ask = await self._web_tags(name, password), self._dependencies.ask_web_server
        return None if tags is None or ask is None else web_user(name, HTTP, tags, ip, ask=ask)

    async def _web_authorized(self, user: User, password: str | None, ip: str) -> User | None:
        """`user` of another backend with the permissions of the web server, which must know them too."""
        tags, ask = await self._web_tags(user.name, password), self._dependencies.ask_web_server
        issuer = user.issuer if isinstance(user, ExternalUser) else INTERNAL
        return None if tags is None or ask is None else web_user(user.name, issuer, user.tags, ip, ask=ask)

    async def _web_tags(self, name: str, password: str | None) -> tuple[str, ...] | None:
        """The tags of whom the web server knows by `password`, or by a certificate without one."""
        web_login = self._dependencies.web_login
        is_token = self._dependencies.tokens is not None and is_like_token(password or "")
        # Tokens are secrets, so they are never sent to it.
        if web_login is None or is_token or password == "":
            return None
        return await web_login(name, password)

    async def _bearer(self, token: str, name: str) -> TokenUser | None:
        tokens = self._dependencies.tokens
        if tokens is None or not is_like_token(token):
            return None
        # With a token that has no name, nobody is somebody who exists.
        is_taken = name in self._metadata.users.by_name
        try:
            return await tokens.user_of(token, None if is_taken else name)
        except TokenRefused as error:
            self._dependencies.report(f"a token was refused: {error}")
            return None


def refusal(mechanism: str, name: str) -> LoginRefused:
    """The error for a client that claimed to be `name` and failed to authenticate, for whatever reason."""
    error = LoginRefused(
        f"Login was refused using authentication mechanism {mechanism}. For details see the broker logfile.",
        method_index=0,
    )
    error.user = name
    return error
