"""JSON Web Tokens (RFC 7519) used as passwords: verifies them and reads user, permissions and expiry.

1. A token must be signed by a known key with an algorithm that the configuration permits, never one chosen by
   the token: `none` is not permitted, and a key is used only with the algorithms of its type.
2. A token must be for this broker: its audience must name the resource server, and only scopes with the
   configured prefix count.
3. The reason for refusing a token is written to the log only.
"""

from collections.abc import Awaitable, Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from warren.access.grants import OAUTH2, OAUTH2_UNNAMED, TokenUser, token_user
from warren.access.scopes import Scopes
from warren.limits import TOKEN_LIFETIME_S, TOKEN_SIZE_MAX, TOKEN_SKEW_MS

if TYPE_CHECKING:
    from joserfc.jwk import Key

# Algorithms with a public key; others must be configured explicitly.
ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519",
)  # fmt: skip
# Algorithms with a shared secret, which lets any verifier sign tokens as well.
SHARED_ALGORITHMS = ("HS256", "HS384", "HS512")
# The claims that are tried after `sub` for the user name, unless configured otherwise.
_NAME_CLAIMS = ("sub", "client_id")
_PARTS = 3
# The base64 encoding of `{"`, with which every JSON object begins.
_BEGINNING = "ey"

# Port: the key with an identifier; None asks for the default key.
FindKey: TypeAlias = "Callable[[str | None], Awaitable[Key | None]]"


class TokenSettings(Struct, frozen=True, kw_only=True):
    """RabbitMQ's `auth_oauth2`."""

    resource_server_id: str = ""
    # The prefix of scopes for this broker; None: the id of the resource server and a dot.
    scope_prefix: str | None = None
    verifies_audience: bool = True
    name_claims: tuple[str, ...] = ()
    additional_scopes_key: str = ""
    # Aliases, each of which stands for several scopes.
    scope_aliases: Mapping[str, str] = field(default_factory=dict)
    algorithms: tuple[str, ...] = ALGORITHMS
    # How long a token without an expiry lives from its issue, or without that from the login; None: for ever.
    lifetime_s: int | None = TOKEN_LIFETIME_S


class TokenRefused(Exception):
    """The token was not accepted; the message gives the reason for the log."""


class TokenVerifier:
    """Verifies tokens for one node."""

    __slots__ = ("_keys", "_now", "_prefix", "_settings")

    def __init__(self, settings: TokenSettings, keys: FindKey, now: Callable[[], int]) -> None:
        self._settings = settings
        self._keys = keys
        self._now = now
        prefix = settings.scope_prefix
        if prefix is None:
            prefix = f"{settings.resource_server_id}." if settings.resource_server_id else ""
        self._prefix = prefix

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
            headers = jws.extract_compact(token.encode("ascii")).headers()
            identifier = headers.get("kid")
            key = await self._keys(identifier if isinstance(identifier, str) else None)
            if key is None:
                raise TokenRefused(f"there is no key {identifier!r}")
            claims = jwt.decode(token, key, algorithms=list(self._settings.algorithms)).claims
        except (JoseError, ValueError, TypeError) as error:
            raise TokenRefused(str(error)) from None
        expires_at = self._checked_times(claims)
        self._check_audience(claims)
        scopes, claimed = Scopes(self._scopes(claims)), self._name(claims)
        if claimed:
            return token_user(claimed, scopes, expires_at, OAUTH2)
        if name is None:
            raise TokenRefused("it has no name, and the client gives the name of an existing user")
        return token_user(name, scopes, expires_at, OAUTH2_UNNAMED)

    def _checked_times(self, claims: Mapping[str, object]) -> int | None:
        """The expiry of the token (ms) or None; TokenRefused if it has expired or is not valid yet."""
        begins, ends = _milliseconds(claims, "nbf"), _milliseconds(claims, "exp")
        if ends is None and self._settings.lifetime_s is not None:
            issued_at = _milliseconds(claims, "iat")
            ends = (self._now() if issued_at is None else issued_at) + self._settings.lifetime_s * 1000
        if begins is not None and begins > self._now() + TOKEN_SKEW_MS:
            raise TokenRefused("it is not valid yet")
        if ends is not None and ends <= self._now():
            raise TokenRefused("it has expired")
        return ends

    def _check_audience(self, claims: Mapping[str, object]) -> None:
        expected = self._settings.resource_server_id
        if self._settings.verifies_audience and expected and expected not in _audiences(claims.get("aud")):
            raise TokenRefused(f"its audience does not include {expected!r}")

    def _name(self, claims: Mapping[str, object]) -> str:
        for claim in (*self._settings.name_claims, *_NAME_CLAIMS):
            value = claims.get(claim)
            if isinstance(value, str) and value:
                return value
        return ""

    def _scopes(self, claims: Mapping[str, object]) -> list[str]:
        """The scopes that begin with the configured prefix, without the prefix."""
        words = [*_words(claims.get("scope")), *_keycloak(claims)]
        for key in self._settings.additional_scopes_key.split():
            words.extend(self._additional(claims, key))
        aliases = self._settings.scope_aliases
        meant = [scope for word in words for scope in (aliases[word].split() if word in aliases else [word])]
        return [scope.removeprefix(self._prefix) for scope in meant if scope.startswith(self._prefix)]

    def _additional(self, claims: Mapping[str, object], key: str) -> list[str]:
        """The scopes in another claim, named by a path.

        If it is an object, those under the resource server's id.
        """
        value: object = claims
        for part in [key] if key in claims else key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, Mapping):
            server = self._settings.resource_server_id
            return [f"{self._prefix}{word}" for word in _words(value.get(server))]
        return _words(value)


def _keycloak(claims: Mapping[str, object]) -> list[str]:
    """The scopes of Keycloak's authorization services, which are in the permissions of the token."""
    authorization = claims.get("authorization")
    permissions = authorization.get("permissions") if isinstance(authorization, Mapping) else None
    found = permissions if isinstance(permissions, list) else []
    return [word for one in found if isinstance(one, Mapping) for word in _words(one.get("scopes"))]


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


def _audiences(value: object) -> list[object]:
    """The audiences of a token: a text is one, spaces included (RFC 7519 §4.1.3)."""
    return value if isinstance(value, list) else [value]


def _words(value: object) -> list[str]:
    """The words of a claim that is a space-separated text or a list of texts."""
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list):
        return [word for word in value if isinstance(word, str)]
    return []
