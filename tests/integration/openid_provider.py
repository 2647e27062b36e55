"""A small OpenID provider on loopback: login form, token endpoint, key set and end of sessions."""

import html
import http.server
import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_urlsafe
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

_FORM = """<!doctype html><html lang="en"><title>Provider</title><link rel="icon" href="data:,">
<h1>Log in to the provider</h1>
<form method="post" action="/authorize?{query}">
<label>Account <input name="account"></label><label>Secret <input name="secret" type="password"></label>
<button>Log in</button></form>"""
_ASKED = ("client_id", "redirect_uri", "state", "nonce", "code_challenge", "code_challenge_method", "scope")


@dataclass
class _Grant:
    """An authorization, which its code or its refresh token stands for."""

    account: str
    asked: dict[str, str]


@dataclass
class OpenIdProvider:
    """A provider with accounts; tests change its attributes, and read what it has been asked."""

    # The client and its secret; empty for a public client.
    client_id: str = "warren-ui"
    client_secret: str = "of the client"
    # Where browsers may be sent back to, after a login and after a logout.
    redirect_uris: set[str] = field(default_factory=set)
    # Passwords and scopes of accounts.
    accounts: dict[str, tuple[str, str]] = field(
        default_factory=lambda: {
            "alice": ("wonderland", "rabbitmq.tag:administrator rabbitmq.read:*/*"),
            "mallory": ("malice", "rabbitmq.read:*/*"),
        }
    )
    audience: str = "rabbitmq"
    lives_s: float = 600
    # Claims of ID tokens that replace the true ones, and fields of the provider's description.
    id_claims: dict[str, object] = field(default_factory=dict)
    description: dict[str, object] = field(default_factory=dict)
    # If it is set, the token endpoint answers with this text.
    answer: str | None = None
    # The requests to the token endpoint, and the sessions that were ended with their hints.
    forms: list[dict[str, str]] = field(default_factory=list)
    ended: list[dict[str, str]] = field(default_factory=list)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "provider"}))

    def __post_init__(self) -> None:
        self._grants: dict[str, _Grant] = {}
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        # Another site than that of a broker at 127.0.0.1, as it is in earnest.
        self.issuer = f"http://localhost:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def described(self) -> dict[str, object]:
        """Its description of itself (OpenID Connect Discovery 1.0)."""
        paths = {
            "authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys",
            "end_session_endpoint": "logout",
        }  # fmt: skip
        own = {name: f"{self.issuer}/{path}" for name, path in paths.items()}
        return {"issuer": self.issuer, **own, **self.description}

    def authorized(self, query: dict[str, str], form: dict[str, str]) -> str | None:
        """Where a browser goes with a code; None if the account or the request is wrong."""
        if query.get("client_id") != self.client_id or query.get("redirect_uri") not in self.redirect_uris:
            return None
        if query.get("response_type") != "code" or query.get("code_challenge_method") != "S256":
            return None
        state = {"state": query["state"], "iss": self.issuer}
        known = self.accounts.get(form.get("account", ""))
        if known is None or known[0] != form.get("secret"):
            return f"{query['redirect_uri']}?{urlencode({'error': 'access_denied', **state})}"
        code = token_urlsafe()
        self._grants[code] = _Grant(form["account"], {name: query.get(name, "") for name in _ASKED})
        return f"{query['redirect_uri']}?{urlencode({'code': code, **state})}"

    def tokens(self, form: dict[str, str]) -> tuple[int, dict[str, object]]:
        """The answer of the token endpoint."""
        self.forms.append(form)
        if form.get("client_id") != self.client_id or form.get("client_secret", "") != self.client_secret:
            return 401, {"error": "invalid_client"}
        is_code = form.get("grant_type") == "authorization_code"
        grant = self._grants.pop(form.get("code" if is_code else "refresh_token", ""), None)
        if grant is None:
            return 400, {"error": "invalid_grant"}
        digest = sha256(form.get("code_verifier", "").encode()).digest()
        challenge = urlsafe_b64encode(digest).rstrip(b"=").decode()
        if is_code and (
            challenge != grant.asked["code_challenge"] or form["redirect_uri"] != grant.asked["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        refresh = token_urlsafe()
        self._grants[refresh] = grant
        claims = {
            "iss": self.issuer, "sub": grant.account, "aud": self.client_id, "nonce": grant.asked["nonce"],
            "exp": time.time() + 600, **self.id_claims,
        }  # fmt: skip
        return 200, {
            "access_token": self.access_token(grant.account),
            "token_type": "Bearer",
            "expires_in": self.lives_s,
            "refresh_token": refresh,
            "id_token": self._signed(claims),
        }

    def access_token(self, account: str) -> str:
        """A token of `account` for the broker."""
        scope, exp = self.accounts[account][1], time.time() + self.lives_s
        return self._signed({"sub": account, "aud": self.audience, "scope": scope, "exp": exp})

    def end_sessions(self) -> None:
        """Forget everybody who has logged in."""
        self._grants.clear()

    def _signed(self, claims: dict[str, object]) -> str:
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)


def _handler_of(provider: OpenIdProvider) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, query = self._asked()
            if path == "/.well-known/openid-configuration":
                self._json(200, provider.described())
            elif path == "/keys":
                self._json(200, KeySet([provider.key]).as_dict(private=False))
            elif path == "/authorize":
                self._answer(200, "text/html", _FORM.format(query=html.escape(urlencode(query))))
            elif path == "/logout":
                provider.ended.append(query)
                self._redirect(query.get("post_logout_redirect_uri"))
            else:
                self._answer(404, "text/plain", "nothing is here")

        def do_POST(self) -> None:
            path, query = self._asked()
            length = int(self.headers["content-length"] or 0)
            form = dict(parse_qsl(self.rfile.read(length).decode()))
            if path == "/authorize":
                self._redirect(provider.authorized(query, form))
            elif provider.answer is not None:
                self._answer(200, "application/json", provider.answer)
            else:
                self._json(*provider.tokens(form))

        def _asked(self) -> tuple[str, dict[str, str]]:
            parts = urlsplit(self.path)
            return parts.path, dict(parse_qsl(parts.query))

        def _redirect(self, location: str | None) -> None:
            if location is None or not any(location.startswith(one) for one in provider.redirect_uris):
                self._answer(400, "text/plain", "this client may not redirect there")
                return
            self.send_response(302)
            self.send_header("location", location)
            self.send_header("content-length", "0")
            self.end_headers()

        def _json(self, status: int, value: object) -> None:
            self._answer(status, "application/json", json.dumps(value))

        def _answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler


@contextmanager
def openid_provider() -> Iterator[OpenIdProvider]:
    """A provider that listens while the block runs."""
    provider = OpenIdProvider()
    try:
        yield provider
    finally:
        provider.close()


def oauth_settings(provider: OpenIdProvider, *more: str) -> str:
    """The configuration of a broker whose users log in at `provider`."""
    return "\n".join(
        (
            "auth_backends.1 = internal",
            "auth_backends.2 = oauth2",
            "auth_oauth2.resource_server_id = rabbitmq",
            f"auth_oauth2.issuer = {provider.issuer}",
            "management.oauth_enabled = true",
            f"management.oauth_client_id = {provider.client_id}",
            f"management.oauth_client_secret = {provider.client_secret}",
            "management.oauth_scopes = openid profile rabbitmq.tag:administrator",
            *more,
            "",
        )
    )
