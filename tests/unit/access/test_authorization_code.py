"""The login with an authorization code: addresses, sealed logins, and the checks of what comes back."""

import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from itertools import count
from urllib.parse import parse_qsl, urlsplit

import pytest

from warren.access.authorization_code import (
    AuthorizationClient,
    CodeRefused,
    PendingLogin,
    ProviderEndpoints,
    SealedLogins,
    authorization_url,
    check_id_token,
    check_response_issuer,
    code_form,
    end_session_url,
    read_error,
    read_tokens,
    refresh_form,
)
from warren.limits_access import LOGIN_LIFETIME_MS

CLIENT = AuthorizationClient(client_id="ui", client_secret="s", scopes="openid a:b")
ENDPOINTS = ProviderEndpoints(
    authorization="https://id.example/a?tenant=1", token="https://id.example/t", issuer="https://id.example"
)
BASE = "https://broker.example/rabbit"


class Node:
    """A node whose random bytes are numbers, at the time `now`."""

    def __init__(self, first: int = 0) -> None:
        self.now = 1_000
        numbers = count(first)
        self.sealed = SealedLogins(lambda size: next(numbers).to_bytes(size, "big"), lambda: self.now)

    def login(self) -> PendingLogin:
        return self.sealed.begin("rabbitmq", BASE)


def query(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query, strict_parsing=True))


def test_an_authorization_request_has_a_challenge_and_keeps_the_query_of_the_endpoint() -> None:
    login = Node().login()
    digest = sha256(login.verifier.encode()).digest()
    assert query(authorization_url(CLIENT, ENDPOINTS, login)) == {
        "tenant": "1",
        "response_type": "code",
        "client_id": "ui",
        "redirect_uri": f"{BASE}/js/oidc-oauth/login-callback.html",
        "scope": "openid a:b",
        "state": login.state,
        "nonce": login.nonce,
        "code_challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    assert login.verifier not in authorization_url(CLIENT, ENDPOINTS, login)


def test_configured_parameters_do_not_replace_those_of_the_protocol() -> None:
    client = AuthorizationClient(
        client_id="ui",
        authorization_parameters={"resource": "r", "redirect_uri": "https://evil.example", "state": "x"},
        token_parameters={"audience": "r", "code": "x", "client_id": "x"},
    )
    login = Node().login()
    asked = query(authorization_url(client, ENDPOINTS, login))
    assert (asked["resource"], asked["state"]) == ("r", login.state)
    assert asked["redirect_uri"].startswith(BASE)
    assert code_form(client, login, "c") == {
        "grant_type": "authorization_code",
        "code": "c",
        "redirect_uri": f"{BASE}/js/oidc-oauth/login-callback.html",
        "code_verifier": login.verifier,
        "client_id": "ui",
        "audience": "r",
    }
    assert refresh_form(CLIENT, "r") == {
        "grant_type": "refresh_token",
        "refresh_token": "r",
        "client_id": "ui",
        "client_secret": "s",
    }


def test_a_sealed_login_is_opened_by_its_state_until_it_is_too_old() -> None:
    node = Node()
    login = node.login()
    sealed = node.sealed.seal(login)
    assert node.sealed.unseal(sealed, login.state) == login
    for state in ("", "x", "é\udc80", node.login().state):
        with pytest.raises(CodeRefused, match="state"):
            node.sealed.unseal(sealed, state)
    node.now += LOGIN_LIFETIME_MS
    with pytest.raises(CodeRefused, match="too long"):
        node.sealed.unseal(sealed, login.state)


def test_a_login_that_was_changed_or_is_of_another_node_is_refused() -> None:
    node = Node()
    login = node.login()
    sealed = node.sealed.seal(login)
    content, _, code = sealed.partition(".")
    forged = urlsafe_b64encode(json.dumps(["x", "https://evil.example", login.state]).encode()).decode()
    for text in ("", ".", "é", content, f"{forged}.{code}", f"{content}.", f"A{sealed}", f"{sealed}A"):
        with pytest.raises(CodeRefused, match="not begun"):
            node.sealed.unseal(text, login.state)
    with pytest.raises(CodeRefused, match="not begun"):
        Node(100).sealed.unseal(sealed, login.state)


def id_token(**claims: object) -> str:
    return f"x.{urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b'=').decode()}.x"


def test_an_id_token_is_for_this_client_and_this_login() -> None:
    login = Node().login()
    good = {"iss": "https://id.example", "aud": "ui", "exp": 2, "nonce": login.nonce}
    check_id_token(id_token(**good), CLIENT, ENDPOINTS, login, now=1_000)
    check_id_token(id_token(**good | {"aud": ["other", "ui"]}), CLIENT, ENDPOINTS, login, now=1_000)
    for wrong in ({"iss": "x"}, {"aud": "x"}, {"aud": []}, {"exp": 1}, {"nonce": "x"}, {"nonce": "\ud800"}):
        with pytest.raises(CodeRefused):
            check_id_token(id_token(**good | wrong), CLIENT, ENDPOINTS, login, now=1_000)
    for text in ("", "x", "x.é.x", "x.e30.x", id_token(), "x." + "W" * 9_999 + ".x"):
        with pytest.raises(CodeRefused, match="cannot be read"):
            check_id_token(text, CLIENT, ENDPOINTS, login, now=1_000)


def test_a_provider_of_many_tenants_tells_a_pattern_of_its_issuer() -> None:
    login = Node().login()
    tenants = ProviderEndpoints(authorization="", token="", issuer="https://id.example/{tenantid}/v2.0")
    claims = {"iss": "https://id.example/7/v2.0", "aud": "ui", "exp": 2, "nonce": login.nonce}
    check_id_token(id_token(**claims), CLIENT, tenants, login, now=1_000)


def test_the_browser_may_say_which_provider_sent_it() -> None:
    check_response_issuer(ENDPOINTS, None)
    check_response_issuer(ENDPOINTS, "https://id.example")
    with pytest.raises(CodeRefused, match="another provider"):
        check_response_issuer(ENDPOINTS, "https://evil.example")


def test_tokens_and_errors_are_read_from_answers_of_the_token_endpoint() -> None:
    answer = {"access_token": "a", "token_type": "Bearer", "refresh_token": None, "id_token": "i", "more": []}
    tokens = read_tokens(json.dumps(answer).encode())
    assert (tokens.access_token, tokens.refresh_token, tokens.id_token) == ("a", "", "i")
    assert "a" not in repr(tokens).removeprefix("ProviderTokens")
    for data in (b"", b"{}", b'{"access_token": 1}', b"\xff", b"[" * 100_000):
        with pytest.raises(CodeRefused):
            read_tokens(data)
        assert read_error(data) == ""
    assert read_error(b'{"error": "invalid_grant"}') == "invalid_grant"


def test_a_session_ends_at_the_provider_with_a_hint_if_there_is_one() -> None:
    assert query(end_session_url(CLIENT, "https://id.example/out", BASE, "i")) == {
        "client_id": "ui",
        "post_logout_redirect_uri": f"{BASE}/",
        "id_token_hint": "i",
    }
    assert "id_token_hint" not in end_session_url(CLIENT, "https://id.example/out", BASE, "")
