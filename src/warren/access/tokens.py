"""JSON Web Tokens (RFC 7519) used as passwords: verifies them and reads user, permissions and expiry.

1. A token must be signed by a known key with an algorithm that the configuration permits, never one chosen by
   the token: `none` is not permitted, and a key is used only with the algorithms of its type.
2. A token must be for this broker: its audience must name one of the resource servers, whose provider's keys
   verify it, and only scopes with the configured prefix count.
3. The reason for refusing a token is written to the log only.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import Struct

from warren.access.grants import OAUTH2, OAUTH2_UNNAMED, TokenUser, token_user
from warren.access.scopes import Scopes
from warren.access.token_claims import ClaimSettings, name_in, scopes_in
from warren.limits import TOKEN_LIFETIME_S, TOKEN_SIZE_MAX, TOKEN_SKEW_MS

if TYPE_CHECKING:
    from joserfc.jwk import Key

# Algorithms with a public key; others must be configured explicitly.
ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519",
)  # fmt: skip
# Algorithms with a shared secret, which lets any verifier sign tokens as well.
SHARED_ALGORITHMS = ("HS256", "HS384", "HS512")
_PARTS = 3
# The base64 encoding of `{"`, with which every JSON object begins.
_BEGINNING = "ey"

# Port: the key with an identifier; None asks for the default key.
FindKey: TypeAlias = "Callable[[str | None], Awaitable[Key | None]]"


class TokenSettings(ClaimSettings, frozen=True, kw_only=True):
    """How the tokens for one resource server are verified and read: RabbitMQ's `auth_oauth2`."""

    verifies_audience: bool = True
    algorithms: tuple[str, ...] = ALGORITHMS
    requires_expiry: bool = False
    # How long a token without an expiry lives from its issue, or without that from the login; None: for ever.
    lifetime_s: int | None = TOKEN_LIFETIME_S

    @property
    def is_audience_checked(self) -> bool:
        """True if tokens have to name the resource server."""
        return self.verifies_audience and bool(self.resource_server_id)


class ResourceServer(Struct, frozen=True):
    """A name by which tokens may mean this broker, with its settings and the keys of its provider."""

    settings: TokenSettings
    keys: FindKey


class TokenRefused(Exception):
    """The token was not accepted; the message gives the reason for the log."""


class TokenVerifier:
    """Verifies tokens for one node."""

    __slots__ = ("_now", "_servers")

    def __init__(self, servers: Sequence[ResourceServer], now: Callable[[], int]) -> None:
        self._servers = servers
        self._now = now

    async def user_of(self, token: str, name: str | None = "") -> TokenUser:
        """The user of `token`, called `name` if the token has no name.

        TokenRefused if it is not valid, or if it has no name and `name` is None, because it is another's.
        """
        if len(token) > TOKEN_SIZE_MAX:
            raise TokenRefused(f"it is longer than {TOKEN_SIZE_MAX} bytes")
        # joserfc and cryptography are loaded only by brokers that take tokens (decision 0194).
        from joserfc import jws, jwt
        from joserfc.errors import JoseError

        try:
            unverified = jws.extract_compact(token.encode("ascii"))
            # The audience is read before the signature is verified, with a key that depends on it.
            server = self._server_of(msgspec.json.decode(unverified.payload))
            settings = server.settings
            identifier = unverified.headers().get("kid")
            key = await server.keys(identifier if isinstance(identifier, str) else None)
            if key is None:
                raise TokenRefused(f"there is no key {identifier!r}")
            claims = jwt.decode(token, key, algorithms=list(settings.algorithms)).claims
            # Two readers of JSON need not agree about a name that is there twice.
            if self._server_of(claims) is not server:
                raise TokenRefused("its audience can be read in two ways")
        except (JoseError, ValueError, TypeError, RecursionError) as error:
            raise TokenRefused(str(error)) from None
        expires_at = self._checked_times(claims, settings)
        scopes = Scopes(scopes_in(claims, settings), settings.scope_syntax, claims)
        claimed = name_in(claims, settings)
        if claimed:
            return token_user(claimed, scopes, expires_at, OAUTH2)
        if name is None:
            raise TokenRefused("it has no name, and the client gives the name of an existing user")
        return token_user(name, scopes, expires_at, OAUTH2_UNNAMED)

    def _server_of(self, claims: object) -> ResourceServer:
        """The resource server that the audience of a token names, or the only one that need not be named."""
        value = claims.get("aud") if isinstance(claims, dict) else None
        # A text is one audience, spaces included (RFC 7519 §4.1.3).
        audience = value if isinstance(value, list) else [value]
        servers = self._servers
        named = [server for server in servers if server.settings.resource_server_id in audience]
        if len(named) > 1:
            raise TokenRefused("its audience includes several resource servers of this broker")
        unchecked = [server for server in servers if not server.settings.is_audience_checked]
        found = named or unchecked
        if len(found) == 1:
            return found[0]
        if unchecked:
            raise TokenRefused("its audience does not say which of several resource servers it is for")
        names = " or ".join(repr(server.settings.resource_server_id) for server in servers)
        raise TokenRefused(f"its audience does not include {names}")

    def _checked_times(self, claims: Mapping[str, object], settings: TokenSettings) -> int | None:
        """The expiry of the token (ms) or None; TokenRefused if it has expired or is not valid yet."""
        begins, ends = _milliseconds(claims, "nbf"), _milliseconds(claims, "exp")
        if ends is None and settings.requires_expiry:
            raise TokenRefused("it has no expiry")
        if ends is None and settings.lifetime_s is not None:
            issued_at = _milliseconds(claims, "iat")
            ends = (self._now() if issued_at is None else issued_at) + settings.lifetime_s * 1000
        if begins is not None and begins > self._now() + TOKEN_SKEW_MS:
            raise TokenRefused("it is not valid yet")
        if ends is not None and ends <= self._now():
            raise TokenRefused("it has expired")
        return ends


def is_like_token(password: str) -> bool:
    """True if `password` may be a token; used to avoid verifying a token as a password."""
    return password.startswith(_BEGINNING) and password.count(".") == _PARTS - 1


def _milliseconds(claims: Mapping[str, object], name: str) -> int | None:
    """The claim `name`, in seconds, as milliseconds.

    None if it is missing, TokenRefused if it is no number.
    """
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise TokenRefused(f"claim {name!r} is not a number of seconds")
    return int(value * 1000)
