"""Logins to the web interface at OAuth 2 providers, and the sessions that begin with them.

The node is the client of the provider: it exchanges the code, keeps the tokens in memory with the session,
and renews them. A browser gets a cookie, and no access token (decision 0460).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from msgspec import Struct, field

from warren.access.authorization_code import (
    AuthorizationClient,
    CodeRefused,
    ProviderEndpoints,
    ProviderTokens,
    SealedLogins,
    authorization_url,
    check_id_token,
    check_response_issuer,
    code_form,
    end_session_url,
    refresh_form,
)
from warren.access.grants import ExternalUser, TokenUser
from warren.errors import AmqpError
from warren.limits_access import TOKEN_RENEWAL_INTERVAL_MS, TOKEN_RENEWAL_MS
from warren.metadata.users import User

# Characters of an error of the provider in the log.
_ERROR_SHOWN = 200

# Port: the user with the permissions of a new token; raises NotAllowed if it is another's.
RenewUser = Callable[[User, str], Awaitable[User]]


class ProviderUnavailable(Exception):
    """A provider gave no usable answer; the message says why."""


class IdentityProvider(Protocol):
    """Port: the servers of one provider."""

    async def endpoints(self) -> ProviderEndpoints:
        """Its addresses; raises ProviderUnavailable."""

    async def tokens(self, form: Mapping[str, str]) -> ProviderTokens:
        """The answer of the token endpoint; ProviderUnavailable, or CodeRefused if it refuses."""


class LoginServer(Struct, frozen=True, kw_only=True):
    """A resource server with which users log in to the web interface."""

    id: str
    # The text of its button.
    label: str
    client: AuthorizationClient
    provider: IdentityProvider
    provider_url: str
    # True if users come from the provider with a token, and are only sent there.
    is_idp_initiated: bool = False


class OAuthSettings(Struct, frozen=True, kw_only=True):
    """How users log in to the web interface: RabbitMQ's `management.oauth_…`."""

    servers: Mapping[str, LoginServer] = field(default_factory=dict)
    # True if nobody logs in to the web interface with a password.
    is_password_refused: bool = False
    # The settings in the form of RabbitMQ, without secrets.
    described: Mapping[str, object] = field(default_factory=lambda: {"oauth_enabled": False})

    @property
    def idp_server(self) -> LoginServer | None:
        """The first resource server whose users come with a token; None if those of none do."""
        return next((server for server in self.servers.values() if server.is_idp_initiated), None)


class OAuthLogins:
    """The logins of one node at its providers."""

    def __init__(
        self, settings: OAuthSettings, random_bytes: Callable[[int], bytes], now: Callable[[], int]
    ) -> None:
        self.settings = settings
        self._sealed = SealedLogins(random_bytes, now)
        self._now = now

    async def begin(self, server: LoginServer, base: str) -> tuple[str, str]:
        """Where to send a browser that is at `base`, and the sealed login that it keeps meanwhile.

        Raises ProviderUnavailable.
        """
        endpoints = await server.provider.endpoints()
        login = self._sealed.begin(server.id, base)
        return authorization_url(server.client, endpoints, login), self._sealed.seal(login)

    async def complete(self, sealed: str, answer: Mapping[str, str]) -> "tuple[str, ProviderGrant]":
        """The access token and the grant of a login; `answer` is what the provider has sent with the browser.

        Raises CodeRefused or ProviderUnavailable.
        """
        login = self._sealed.unseal(sealed, answer.get("state", ""))
        server = self.settings.servers.get(login.server)
        if server is None:
            raise CodeRefused(f"the resource server {login.server!r} is not set any more")
        endpoints = await server.provider.endpoints()
        check_response_issuer(endpoints, answer.get("iss"))
        if "code" not in answer:
            raise CodeRefused(f"the provider refused it: {answer.get('error', '')[:_ERROR_SHOWN]!r}")
        tokens = await server.provider.tokens(code_form(server.client, login, answer["code"]))
        if tokens.id_token:
            check_id_token(tokens.id_token, server.client, endpoints, login, now=self._now())
        return tokens.access_token, ProviderGrant(server, login.base, tokens, self._now)


class ProviderGrant:
    """What a provider has granted to a session of the web interface."""

    __slots__ = ("_base", "_id_token", "_now", "_refresh_token", "_renewing", "_server", "_tried_at")

    def __init__(
        self, server: LoginServer, base: str, tokens: ProviderTokens, now: Callable[[], int]
    ) -> None:
        """`base` is the address of the page, to which the provider returns; empty if it does not."""
        self._server = server
        self._base = base
        self._refresh_token = tokens.refresh_token
        self._id_token = tokens.id_token
        self._now = now
        self._tried_at = 0
        self._renewing: asyncio.Task[ExternalUser | None] | None = None

    async def renewed(self, user: ExternalUser, renew_user: RenewUser) -> ExternalUser | None:
        """`user` with a new token if that of `user` is about to expire; None if it stays as it is.

        Concurrent callers share one request. A provider that does not answer is asked again.
        """
        if not isinstance(user, TokenUser) or user.expires_at is None or not self._refresh_token:
            return None
        if self._renewing is None:
            now = self._now()
            if user.expires_at - now > TOKEN_RENEWAL_MS or now - self._tried_at < TOKEN_RENEWAL_INTERVAL_MS:
                return None
            self._tried_at = now
            self._renewing = asyncio.get_running_loop().create_task(self._renew(user, renew_user))
            self._renewing.add_done_callback(self._ended)
        return await asyncio.shield(self._renewing)

    @property
    def is_https(self) -> bool:
        """True if the browser uses https for the page."""
        return self._base.startswith("https:")

    async def end_url(self) -> str:
        """Where the browser ends its session at the provider; empty if the provider has told no address."""
        if not self._base:
            return self._server.provider_url
        try:
            endpoints = await self._server.provider.endpoints()
        except ProviderUnavailable:
            return ""
        if not endpoints.end_session:
            return ""
        return end_session_url(self._server.client, endpoints.end_session, self._base, self._id_token)

    def _ended(self, _: object) -> None:
        self._renewing = None

    async def _renew(self, user: ExternalUser, renew_user: RenewUser) -> ExternalUser | None:
        try:
            tokens = await self._server.provider.tokens(
                refresh_form(self._server.client, self._refresh_token)
            )
            renewed = await renew_user(user, tokens.access_token)
        except ProviderUnavailable:
            return None
        except (CodeRefused, AmqpError):
            # The provider has ended the session, or means another user: it is not asked again.
            self._refresh_token = ""
            return None
        # A provider may give a new refresh token with each answer, and then refuses the old one.
        self._refresh_token = tokens.refresh_token or self._refresh_token
        self._id_token = tokens.id_token or self._id_token
        return renewed if isinstance(renewed, ExternalUser) else None
