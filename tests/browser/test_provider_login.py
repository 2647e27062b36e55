"""Logging in to the web interface at an OpenID provider of another site, and out of both."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect
from tests.browser.browsing import AXE, Visit
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.openid_provider import OpenIdProvider, oauth_settings, openid_provider

CALLBACK = "/js/oidc-oauth/login-callback.html"
SEVERAL = (
    "management.oauth_disable_basic_auth = false",
    "management.oauth_resource_servers.1.id = rabbitmq",
    "management.oauth_resource_servers.1.label = Staff",
    "auth_oauth2.resource_servers.2.id = sensors",
)


@pytest.fixture
def provider(needed: None) -> Iterator[OpenIdProvider]:
    with openid_provider() as started:
        yield started


@pytest.fixture(params=[(), SEVERAL], ids=["one provider", "two, and passwords"])
def node(provider: OpenIdProvider, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    config = tmp_path / "warren.conf"
    config.write_text(oauth_settings(provider, *request.param))
    with broker(config=config) as started:
        origin = f"http://127.0.0.1:{started.ports['http']}"
        provider.redirect_uris |= {origin + CALLBACK, f"{origin}/"}
        yield started


@pytest.fixture
def page(chromium: Chromium) -> Iterator[Page]:
    context = chromium.new_context()
    yield context.new_page()
    context.close()


def log_in(page: Page, account: str, secret: str) -> None:
    """Fill in the form of the provider."""
    page.get_by_label("Account").fill(account)
    page.get_by_label("Secret").fill(secret)
    page.get_by_role("button", name="Log in").click()


def test_a_user_logs_in_at_the_provider_and_out_of_both(
    node: BrokerProcess, provider: OpenIdProvider, page: Page
) -> None:
    visited = Visit(node, page)
    origin = f"http://127.0.0.1:{node.ports['http']}"
    page.goto(f"{origin}/#/queues?name=orders")
    choice = page.get_by_role("button", name=re.compile("^Sign in with (Staff|localhost:)"))
    choice.click()
    log_in(page, "mallory", "malice")
    expect(page.get_by_role("alert")).to_contain_text("you may not use this broker")
    expect(page).to_have_url(re.compile(rf"^{origin}/(#|$)"))
    choice.click()
    log_in(page, "alice", "wonderland")
    # The page is the one that the user wanted to see.
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    expect(page).to_have_url(re.compile("#/queues"))
    expect(page.locator(".user-name")).to_have_text("alice")
    # No script can read a token.
    readable = page.evaluate("document.cookie + JSON.stringify({...localStorage, ...sessionStorage})")
    assert "ey" not in readable
    page.get_by_role("button", name="Sign out").click()
    expect(choice).to_be_visible()
    assert provider.ended[-1]["post_logout_redirect_uri"] == f"{origin}/"
    assert visited.complaints == []


@pytest.mark.parametrize("palette", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_sign_in_page_is_accessible(
    node: BrokerProcess, chromium: Chromium, palette: str, width: int
) -> None:
    scheme = "dark" if palette == "dark" else "light"
    context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 850})  # type: ignore[arg-type]
    try:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{node.ports['http']}/?error=provider_unavailable")
        expect(page.get_by_role("alert")).to_contain_text("does not answer")
        page.evaluate(AXE.read_text())
        found = page.evaluate("axe.run()")
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        context.close()
