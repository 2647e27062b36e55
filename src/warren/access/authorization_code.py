"""The login with an authorization code at an OAuth 2 provider (RFC 6749 §4.1), with PKCE (RFC 7636).

    browser ──▶ authorization endpoint   ?client_id&redirect_uri&scope&state&nonce&code_challenge
    browser ◀── redirection URI          ?code&state
    node    ──▶ token endpoint           code, redirect_uri, client_id, client_secret, code_verifier
    node    ◀── access_token, refresh_token, id_token

1. A code is used only by the browser that began the login: it returns the sealed login and its state.
2. A sealed login was made by this node, and ends after `LOGIN_LIFETIME_MS`.
3. Nothing that a browser sends changes where it is sent, or to whom a code is given.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct

from warren.limits_access import LOGIN_LIFETIME_MS

# A state, a nonce and a verifier have 256 random bits each.
_RANDOM_SIZE = 32
# The response type of the authorization code flow, the only one of OAuth 2.1.
_CODE = "code"
# Characters of another issuer in the log.
_ISSUER_SHOWN = 200
# The path of the redirection URI below the web interface, as in RabbitMQ, whose registration can be kept.
CALLBACK_PATH = "/js/oidc-oauth/login-callback.html"


class CodeRefused(Exception):
    """A login ends without a user; the message gives the reason for the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationClient:
    """How this broker is registered with a provider, and what it asks of it."""

    client_id: str
    # Empty for a public client.
    client_secret: str = field(default="", repr=False)
    scopes: str = "openid profile"
    # Further parameters of requests to the authorization endpoint and the token endpoint.
    authorization_parameters: Mapping[str, str] = field(default_factory=dict)
    token_parameters: Mapping[str, str] = field(default_factory=dict)


class ProviderEndpoints(Struct, frozen=True, kw_only=True):
    """The addresses of a provider; the issuer and the end of sessions are empty if it has not told them."""

    authorization: str
    token: str
    end_session: str = ""
    issuer: str = ""


class PendingLogin(Struct, frozen=True, array_like=True):
    """A login for which the browser was sent to its provider."""

    # The id of the resource server, which says what the provider is.
    server: str
    # The address of the web interface as the browser has it, without a slash at the end.
    base: str
    state: str
    nonce: str
    verifier: str
    # Unix time in milliseconds.
    expires_at: int


@dataclass(frozen=True, slots=True)
class ProviderTokens:
    """What a token endpoint answers (RFC 6749 §5.1); tokens that it does not give are empty."""

    access_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)
    id_token: str = field(default="", repr=False)


class SealedLogins:
    """Seals logins, so that the browsers of users can keep them while they are at the provider.

    The node itself keeps nothing, whatever the number of logins that are never finished.
    """

    def __init__(self, random_bytes: Callable[[int], bytes], now: Callable[[], int]) -> None:
        self._random_bytes = random_bytes
        self._now = now
        self._key = random_bytes(_RANDOM_SIZE)

    def begin(self, server: str, base: str) -> PendingLogin:
        """Begin a login of the resource server `server`, for a browser that is at `base`."""
        state, nonce, verifier = (_text(self._random_bytes(_RANDOM_SIZE)) for _ in range(3))
        return PendingLogin(server, base, state, nonce, verifier, self._now() + LOGIN_LIFETIME_MS)

    def seal(self, login: PendingLogin) -> str:
        """The text that the browser keeps as a cookie, for the callback only."""
        content = msgspec.json.encode(login)
        return f"{_text(content)}.{_text(self._code(content))}"

    def unseal(self, sealed: str, state: str) -> PendingLogin:
        """The login that was sealed, if it has `state`; raises CodeRefused if not, and if it is too old."""
        content, _, code = sealed.partition(".")
        try:
            encoded = _bytes(content)
            if not hmac.compare_digest(self._code(encoded), _bytes(code)):
                raise CodeRefused("it was not begun in this browser")
            login = msgspec.json.decode(encoded, type=PendingLogin)
        except ValueError:
            raise CodeRefused("it was not begun in this browser") from None
        if self._now() >= login.expires_at:
            raise CodeRefused("it took too long")
        if not hmac.compare_digest(login.state.encode(), state.encode("utf-8", "surrogateescape")):
            raise CodeRefused("its state is that of another login")
        return login

    def _code(self, content: bytes) -> bytes:
        return hmac.digest(self._key, content, "sha256")


def redirect_uri(base: str) -> str:
    """The address to which the provider returns the browser."""
    return base + CALLBACK_PATH


def authorization_url(client: AuthorizationClient, endpoints: ProviderEndpoints, login: PendingLogin) -> str:
    """The address to which the browser is sent to log in."""
    return _with_query(
        endpoints.authorization,
        {
            **client.authorization_parameters,
            "response_type": _CODE,
            "client_id": client.client_id,
            "redirect_uri": redirect_uri(login.base),
            "scope": client.scopes,
            "state": login.state,
            "nonce": login.nonce,
            "code_challenge": _text(sha256(login.verifier.encode()).digest()),
            "code_challenge_method": "S256",
        },
    )


def code_form(client: AuthorizationClient, login: PendingLogin, code: str) -> dict[str, str]:
    """The request for the tokens of `code`."""
    return _form(
        client,
        grant_type="authorization_code",
        code=code,
        redirect_uri=redirect_uri(login.base),
        code_verifier=login.verifier,
    )


def refresh_form(client: AuthorizationClient, refresh_token: str) -> dict[str, str]:
    """The request for new tokens in place of those that expire (RFC 6749 §6)."""
    return _form(client, grant_type="refresh_token", refresh_token=refresh_token)


def end_session_url(client: AuthorizationClient, endpoint: str, base: str, id_token: str) -> str:
    """The address that ends the session at the provider (OpenID Connect RP-Initiated Logout 1.0)."""
    hint = {"id_token_hint": id_token} if id_token else {}
    return _with_query(
        endpoint, {"client_id": client.client_id, "post_logout_redirect_uri": f"{base}/", **hint}
    )


def read_tokens(data: bytes) -> ProviderTokens:
    """The tokens in the answer of a token endpoint; raises CodeRefused if it has none."""
    try:
        found = msgspec.json.decode(data, type=_TokenAnswer)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise CodeRefused("the token endpoint gave no tokens") from None
    return ProviderTokens(found.access_token, found.refresh_token or "", found.id_token or "")


def read_error(data: bytes) -> str:
    """The error code in the answer of a token endpoint (RFC 6749 §5.2); empty if it has none."""
    try:
        return msgspec.json.decode(data, type=_ErrorAnswer).error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""


def check_response_issuer(endpoints: ProviderEndpoints, issuer: str | None) -> None:
    """Raise CodeRefused if the browser brings the code of another provider (RFC 9207)."""
    if issuer is not None and endpoints.issuer and issuer != endpoints.issuer:
        raise CodeRefused(f"the code is of another provider, {issuer[:_ISSUER_SHOWN]!r}")


def check_id_token(
    id_token: str,
    client: AuthorizationClient,
    endpoints: ProviderEndpoints,
    login: PendingLogin,
    *,
    now: int,
) -> None:
    """Raise CodeRefused unless the ID token is for this login (OpenID Connect Core §3.1.3.7).

    Its signature is not verified: it comes from the token endpoint itself. It proves no identity here, which
    is that of the access token.
    """
    try:
        claims = msgspec.json.decode(_bytes(id_token.split(".")[1]), type=_IdClaims)
    except (ValueError, IndexError, RecursionError):
        raise CodeRefused("the ID token cannot be read") from None
    audience = claims.aud if isinstance(claims.aud, list) else [claims.aud]
    if not hmac.compare_digest(claims.nonce.encode("utf-8", "surrogatepass"), login.nonce.encode()):
        raise CodeRefused("the ID token has the nonce of another login")
    if client.client_id not in audience:
        raise CodeRefused("the ID token is for another client")
    # Providers with many tenants have a placeholder in the issuer that they tell.
    if endpoints.issuer and "{" not in endpoints.issuer and claims.iss != endpoints.issuer:
        raise CodeRefused(f"the ID token is of another issuer, {claims.iss[:_ISSUER_SHOWN]!r}")
    if claims.exp * 1000 <= now:
        raise CodeRefused("the ID token has expired")


class _TokenAnswer(Struct):
    access_token: str
    refresh_token: str | None = None
    id_token: str | None = None


class _ErrorAnswer(Struct):
    error: str


class _IdClaims(Struct):
    iss: str
    aud: str | list[str]
    exp: float
    nonce: str = ""


def _form(client: AuthorizationClient, **fields: str) -> dict[str, str]:
    secret = {"client_secret": client.client_secret} if client.client_secret else {}
    return {**client.token_parameters, **fields, "client_id": client.client_id, **secret}


def _with_query(url: str, parameters: Mapping[str, str]) -> str:
    """`url`, which may have a query already (RFC 6749 §3.1), with more parameters."""
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(parameters)}"


def _text(data: bytes) -> str:
    """`data` in base64url without padding, as PKCE writes it."""
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _bytes(text: str) -> bytes:
    """The data that `text` is; raises ValueError, also for what is not ASCII."""
    return urlsafe_b64decode(text.encode("ascii", "strict") + b"=" * (-len(text) % 4))
