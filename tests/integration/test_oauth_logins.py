"""Logins to the web interface at an OpenID provider, as a browser makes them."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import Cookie, CookieJar
from pathlib import Path
from typing import Any

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.openid_provider import OpenIdProvider, oauth_settings, openid_provider
from tests.patience import patient

TIMEOUT_S = patient(30)
CALLBACK = "/js/oidc-oauth/login-callback.html"
MARKED = {"x-warren-ui": "1", "sec-fetch-site": "same-origin"}


class Browser:
    """A user agent with cookies, which follows redirections."""

    def __init__(self, node: BrokerProcess) -> None:
        self.origin = f"http://127.0.0.1:{node.ports['http']}"
        self.jar = CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))

    def ask(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = {},
    ) -> tuple[int, str, bytes]:
        """Status, final address and body of a request; `url` may be a path of the broker."""
        whole = url if url.startswith("http") else self.origin + url
        request = urllib.request.Request(whole, body, dict(headers), method=method)
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as response:
                return response.status, response.url, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.url or "", error.read()

    def call(self, method: str, path: str, value: object = None, **more: str) -> tuple[int, Any]:
        """Status and JSON of a request that the page makes."""
        body = None if value is None else json.dumps(value).encode()
        headers = {**MARKED, "origin": self.origin, **more}
        status, _, data = self.ask(method, f"/api{path}", body, headers)
        return status, json.loads(data) if data else None

    def provider_page(self, server: str = "rabbitmq") -> str:
        """The address of the login form that the page is sent to."""
        status, told = self.call("POST", "/warren/session/provider", {"resource_server": server})
        assert status == 200, told
        return str(told["location"])

    def log_in(self, account: str = "alice", secret: str = "wonderland", server: str = "rabbitmq") -> str:
        """Log in at the provider; returns the address where the browser ends."""
        form = urllib.parse.urlencode({"account": account, "secret": secret}).encode()
        status, url, _ = self.ask("POST", self.provider_page(server), form)
        assert status == 200
        return url

    @property
    def user(self) -> str | None:
        """The user who is signed in."""
        status, body = self.call("GET", "/whoami")
        return str(body["name"]) if status == 200 else None

    def cookie(self, name: str) -> Cookie:
        """The cookie `name`."""
        return next(cookie for cookie in self.jar if cookie.name == name)


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenIdProvider]:
    with openid_provider() as started:
        yield started


@contextmanager
def served(provider: OpenIdProvider, folder: Path, *more: str) -> Iterator[BrokerProcess]:
    """A broker whose users log in at `provider`, which knows it."""
    config = folder / "warren.conf"
    config.write_text(oauth_settings(provider, *more))
    with broker(config=config) as started:
        provider.redirect_uris.add(f"http://127.0.0.1:{started.ports['http']}{CALLBACK}")
        provider.redirect_uris.add(f"http://127.0.0.1:{started.ports['http']}/")
        yield started


@pytest.fixture(scope="module")
def node(provider: OpenIdProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with served(provider, tmp_path_factory.mktemp("oauth")) as started:
        yield started


def test_a_user_of_the_provider_is_signed_in_with_the_rights_of_the_token(
    node: BrokerProcess, provider: OpenIdProvider
) -> None:
    browser = Browser(node)
    assert browser.user is None
    assert browser.log_in() == f"{browser.origin}/"
    assert browser.call("GET", "/whoami") == (200, {"name": "alice", "tags": ["administrator"]})
    assert browser.call("PUT", "/vhosts/of-alice")[0] == 201
    form = provider.forms[-1]
    assert form["grant_type"] == "authorization_code"
    assert form["redirect_uri"] == browser.origin + CALLBACK
    assert len(form["code_verifier"]) == 43


def test_the_browser_gets_no_token_and_its_cookies_are_not_for_scripts(node: BrokerProcess) -> None:
    browser = Browser(node)
    browser.provider_page()
    login = browser.cookie("warren_login")
    assert (login.path, login.has_nonstandard_attr("HttpOnly")) == (CALLBACK, True)
    assert login.get_nonstandard_attr("SameSite") == "Lax"
    browser.log_in()
    session = browser.cookie("warren_session")
    assert (session.path, session.has_nonstandard_attr("HttpOnly")) == ("/api", True)
    assert session.get_nonstandard_attr("SameSite") == "Strict"
    assert len(str(session.value)) == 64
    assert [cookie.name for cookie in browser.jar] == ["warren_session"]


def test_the_address_of_the_provider_has_state_nonce_and_challenge_of_each_login(
    node: BrokerProcess, provider: OpenIdProvider
) -> None:
    asked = [
        dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(Browser(node).provider_page()).query)) for _ in "ab"
    ]
    for query in asked:
        assert query["response_type"] == "code"
        assert query["client_id"] == provider.client_id
        assert query["scope"] == "openid profile rabbitmq.tag:administrator"
        assert query["code_challenge_method"] == "S256"
    for name in ("state", "nonce", "code_challenge"):
        assert asked[0][name] != asked[1][name]
        assert len(asked[0][name]) == 43


def test_a_user_without_a_tag_or_with_a_wrong_password_is_not_signed_in(node: BrokerProcess) -> None:
    browser = Browser(node)
    assert browser.log_in("mallory", "malice") == f"{browser.origin}/?error=Not_Authorized"
    assert browser.log_in("alice", "guess") == f"{browser.origin}/?error=login_failed"
    assert browser.user is None


def test_a_code_is_used_only_by_the_browser_that_began_the_login(
    node: BrokerProcess, provider: OpenIdProvider
) -> None:
    victim, attacker = Browser(node), Browser(node)
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(attacker.provider_page()).query))
    location = provider.authorized(query, {"account": "alice", "secret": "wonderland"})
    assert location is not None
    before = len(provider.forms)
    # A browser without a login, and one in the middle of another.
    assert victim.ask("GET", location)[1] == f"{victim.origin}/?error=login_failed"
    victim.provider_page()
    assert victim.ask("GET", location)[1] == f"{victim.origin}/?error=login_failed"
    forged = f"{CALLBACK}?{urllib.parse.urlencode({'code': 'x', 'state': 'é'})}"
    assert victim.ask("GET", forged)[1] == f"{victim.origin}/?error=login_failed"
    assert len(provider.forms) == before
    assert victim.user is None


def test_a_code_of_another_provider_is_not_sent_to_this_one(
    node: BrokerProcess, provider: OpenIdProvider
) -> None:
    browser = Browser(node)
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(browser.provider_page()).query))
    answer = urllib.parse.urlencode({"code": "x", "state": query["state"], "iss": "https://other.example"})
    before = len(provider.forms)
    assert browser.ask("GET", f"{CALLBACK}?{answer}")[1] == f"{browser.origin}/?error=login_failed"
    assert len(provider.forms) == before


@pytest.mark.parametrize(
    "claims", [{"nonce": "another"}, {"aud": "another"}, {"iss": "https://other.example"}, {"exp": 1}]
)
def test_an_id_token_of_another_login_is_refused(
    node: BrokerProcess, provider: OpenIdProvider, claims: dict[str, object]
) -> None:
    browser = Browser(node)
    provider.id_claims = claims
    try:
        assert browser.log_in() == f"{browser.origin}/?error=login_failed"
    finally:
        provider.id_claims = {}
    assert browser.user is None


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("nothing", "login_failed"),
        ('{"access_token": "opaque"}', "Not_Authorized"),
        ('{"access_token": "' + "x" * 70_000 + '"}', "provider_unavailable"),
    ],
)
def test_an_unusable_answer_of_the_provider_is_no_login(
    node: BrokerProcess, provider: OpenIdProvider, answer: str, error: str
) -> None:
    browser = Browser(node)
    provider.answer = answer
    try:
        assert browser.log_in() == f"{browser.origin}/?error={error}"
    finally:
        provider.answer = None


def test_only_the_page_itself_can_begin_a_login(node: BrokerProcess) -> None:
    browser = Browser(node)
    body = {"resource_server": "rabbitmq"}
    path = "/warren/session/provider"
    assert browser.ask("POST", f"/api{path}", json.dumps(body).encode())[0] == 403
    assert browser.call("POST", path, body, **{"sec-fetch-site": "same-site"})[0] == 403
    for origin in ("null", "ftp://127.0.0.1", "http://127.0.0.1/path", "http://", ""):
        assert browser.call("POST", path, body, origin=origin)[0] == 400
    assert browser.call("POST", path, {"resource_server": "another"})[0] == 404


def test_signing_out_ends_the_session_here_and_at_the_provider(
    node: BrokerProcess, provider: OpenIdProvider
) -> None:
    browser = Browser(node)
    browser.log_in()
    status, told = browser.call("DELETE", "/warren/session")
    assert status == 200
    assert browser.user is None
    assert browser.ask("GET", told["location"])[:2] == (200, f"{browser.origin}/")
    ended = provider.ended[-1]
    assert ended["client_id"] == provider.client_id
    assert ended["post_logout_redirect_uri"] == f"{browser.origin}/"
    assert ended["id_token_hint"].count(".") == 2


def test_a_password_is_no_login_to_the_page_but_one_to_the_api(node: BrokerProcess) -> None:
    browser = Browser(node)
    status, body = browser.call("POST", "/warren/session", {"username": "guest", "password": "guest"})
    assert (status, body["reason"]) == (403, "users log in to the web interface with OAuth 2")
    assert HttpClient(node).status("GET /whoami") == 200


def test_the_settings_are_told_without_the_secret(node: BrokerProcess, provider: OpenIdProvider) -> None:
    status, told = Browser(node).call("GET", "/auth")
    assert status == 200
    assert told["oauth_enabled"] is True
    assert told["oauth_disable_basic_auth"] is True
    assert told["oauth_client_id"] == provider.client_id
    assert told["oauth_resource_servers"] == {
        "rabbitmq": {
            "id": "rabbitmq",
            "oauth_provider_url": provider.issuer,
            "oauth_metadata_url": f"{provider.issuer}/.well-known/openid-configuration",
        }
    }
    assert provider.client_secret not in json.dumps(told)


def test_a_token_without_a_login_begun_here_is_refused(node: BrokerProcess, provider: OpenIdProvider) -> None:
    browser = Browser(node)
    form = urllib.parse.urlencode({"access_token": provider.access_token("alice")}).encode()
    assert browser.ask("POST", "/login", form)[1] == f"{browser.origin}/?error=Not_Authorized"
    assert browser.user is None
    assert browser.ask("GET", "/login")[:2] == (200, f"{browser.origin}/")
    assert browser.ask("GET", "/login?access_token=x")[0] == 405


def test_a_token_that_is_about_to_expire_is_renewed_by_the_next_request(
    node: BrokerProcess, provider: OpenIdProvider
) -> None:
    browser = Browser(node)
    # Within a minute of its expiry, and then not.
    provider.lives_s = 50
    browser.log_in()
    provider.lives_s = 600
    forms = len(provider.forms)
    assert browser.user == "alice"
    assert [form["grant_type"] for form in provider.forms[forms:]] == ["refresh_token"]
    provider.end_sessions()
    assert browser.user == "alice"
    assert len(provider.forms) == forms + 1


def test_a_session_ends_with_its_token_if_the_provider_does_not_renew_it(
    node: BrokerProcess, provider: OpenIdProvider
) -> None:
    browser = Browser(node)
    provider.lives_s = 2
    try:
        browser.log_in()
    finally:
        provider.lives_s = 600
    provider.end_sessions()
    ends = time.monotonic() + TIMEOUT_S
    forms = len(provider.forms)
    while browser.user is not None:
        assert time.monotonic() < ends
    # A provider that has refused it once is not asked again.
    assert len(provider.forms) <= forms + 1


def test_a_token_of_another_user_renews_nothing(node: BrokerProcess, provider: OpenIdProvider) -> None:
    browser = Browser(node)
    provider.lives_s = 50
    browser.log_in()
    provider.lives_s = 600
    provider.answer = json.dumps({"access_token": provider.access_token("mallory")})
    try:
        assert browser.call("GET", "/whoami") == (200, {"name": "alice", "tags": ["administrator"]})
    finally:
        provider.answer = None


def test_users_may_come_from_the_provider_with_a_token(provider: OpenIdProvider, tmp_path: Path) -> None:
    with served(provider, tmp_path, "management.oauth_initiated_logon_type = idp_initiated") as node:
        browser = Browser(node)
        assert browser.provider_page() == provider.issuer
        for secret, error in ((provider.access_token("mallory"), "Not_Authorized"), ("x", "Not_Authorized")):
            form = urllib.parse.urlencode({"access_token": secret}).encode()
            assert browser.ask("POST", "/login", form)[1] == f"{browser.origin}/?error={error}"
        form = urllib.parse.urlencode({"access_token": provider.access_token("alice")}).encode()
        assert browser.ask("POST", "/login", form)[1] == f"{browser.origin}/"
        assert browser.user == "alice"
        assert browser.call("DELETE", "/warren/session") == (200, {"location": provider.issuer})


def test_below_a_path_prefix_with_passwords_beside_it(provider: OpenIdProvider, tmp_path: Path) -> None:
    more = "management.path_prefix = /warren", "management.oauth_disable_basic_auth = false"
    with served(provider, tmp_path, *more) as node:
        browser = Browser(node)
        browser.origin += "/warren"
        origin = browser.origin.removesuffix("/warren")
        provider.redirect_uris.add(browser.origin + CALLBACK)
        asked = {"resource_server": "rabbitmq"}
        status, told = browser.call("POST", "/warren/session/provider", asked, origin=origin)
        assert status == 200
        form = urllib.parse.urlencode({"account": "alice", "secret": "wonderland"}).encode()
        assert browser.ask("POST", told["location"], form)[:2] == (200, f"{browser.origin}/")
        assert browser.user == "alice"
        other = Browser(node)
        other.origin = browser.origin
        password = {"username": "guest", "password": "guest"}
        assert other.call("POST", "/warren/session", password)[0] == 204
        assert other.call("DELETE", "/warren/session")[0] == 204


def test_several_resource_servers_have_a_login_each(provider: OpenIdProvider, tmp_path: Path) -> None:
    more = (
        "auth_oauth2.resource_servers.1.id = orders",
        "auth_oauth2.resource_servers.2.id = sensors",
        "management.oauth_resource_servers.1.id = orders",
        "management.oauth_resource_servers.1.label = Order desk",
        "management.oauth_resource_servers.1.oauth_authorization_endpoint_params.resource = orders",
        "management.oauth_resource_servers.2.id = sensors",
        "management.oauth_resource_servers.2.disabled = true",
        "management.oauth_authorization_endpoint_params.client_id = not-taken",
    )
    provider.audience = "orders"
    try:
        with served(provider, tmp_path, *more) as node:
            browser = Browser(node)
            servers = browser.call("GET", "/auth")[1]["oauth_resource_servers"]
            assert {name: server.get("label") for name, server in servers.items()} == {
                "rabbitmq": None,
                "orders": "Order desk",
            }
            assert "resource=orders&" in browser.provider_page("orders")
            assert f"client_id={provider.client_id}&" in browser.provider_page("rabbitmq")
            provider.accounts["carol"] = ("c", "orders.tag:monitoring")
            assert browser.log_in("carol", "c", "orders") == f"{browser.origin}/"
            assert browser.call("GET", "/whoami")[1]["tags"] == ["monitoring"]
    finally:
        provider.audience = "rabbitmq"


def test_a_provider_that_does_not_answer_is_told_to_the_user(tmp_path: Path) -> None:
    with openid_provider() as provider, served(provider, tmp_path) as node:
        provider.description["authorization_endpoint"] = "http://192.0.2.1/authorize"
        browser = Browser(node)
        asked = {"resource_server": "rabbitmq"}
        status, told = browser.call("POST", "/warren/session/provider", asked)
        reason = "the provider of 'rabbitmq' does not answer: see the log of the broker"
        assert (status, told["reason"]) == (503, reason)
        # What is wrong is asked again, not kept.
        del provider.description["authorization_endpoint"]
        assert browser.log_in() == f"{browser.origin}/"


def test_basic_authentication_can_be_refused(provider: OpenIdProvider, tmp_path: Path) -> None:
    with served(provider, tmp_path, "management.disable_basic_auth = true") as node:
        refused = HttpClient(node).ask("GET /whoami")
        assert (refused.status, refused.reason) == (401, "HTTP access denied: basic auth disabled")
        bare = HttpClient(node, user=None).ask("GET /whoami")
        assert (bare.status, bare.reason) == (401, "HTTP access denied: no credentials")
        assert "www-authenticate" not in {name.lower() for name in bare.headers}
        bearer = {"authorization": f"Bearer {provider.access_token('alice')}"}
        assert HttpClient(node, user=None).ask("GET /whoami", headers=bearer).status == 200
