"""What people do in the web interface is done by the broker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect
from tests.browser.browsing import Visit, api, visit
from tests.integration.process import Broker


@pytest.fixture
def tab(node: Broker, chromium: Chromium) -> Iterator[Visit]:
    with visit(node, chromium) as tab:
        yield tab
        assert tab.complaints == []


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).last.click()


def confirm(page: Page, name: str) -> None:
    """Press what asks first, and say yes."""
    press(page, name)
    page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()


def fill(page: Page, **fields: str) -> None:
    for name, text in fields.items():
        field = page.locator(f"[name='{name.replace('_to', '-to')}']").last
        if field.evaluate("element => element.tagName") == "SELECT":
            field.select_option(text)
        else:
            field.fill(text)


def test_a_queue_is_made_filled_looked_into_emptied_and_deleted(node: Broker, tab: Visit) -> None:
    page = tab.page
    tab.open("queues")
    press(page, "New queue")
    fill(page, name="made here", arguments="x-max-length = 10")
    press(page, "Create")
    page.get_by_role("link", name="made here").click()
    page.get_by_role("tab", name="Publish").click()
    fill(page, payload='{"a": 1}', headers="tenant = acme")
    press(page, "Publish")
    expect(page.get_by_text("Published.")).to_be_visible()
    page.get_by_role("tab", name="Messages").click()
    expect(page.locator(".message pre")).to_contain_text('"a": 1')
    fill(page, conditions="headers.tenant=other")
    press(page, "Look")
    expect(page.get_by_text("None of 1 looked at")).to_be_visible()
    queue: Any = api(node, "GET /queues/%2F/made%20here")
    assert queue["arguments"]["x-max-length"] == 10
    page.get_by_role("tab", name="Take out").click()
    press(page, "Get messages")
    expect(page.locator(".message pre")).to_contain_text('"a": 1')
    confirm(page, "Purge")
    expect(page.get_by_text("Purged.")).to_be_visible()
    confirm(page, "Delete")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    names = [found["name"] for found in api(node, "GET /queues/%2F")]  # type: ignore[attr-defined]
    assert "made here" not in names


def test_an_exchange_is_made_bound_published_to_and_deleted(node: Broker, tab: Visit) -> None:
    page = tab.page
    api(node, "PUT /queues/%2F/bound", {})
    tab.open("exchanges")
    press(page, "New exchange")
    fill(page, name="made-here", type="topic")
    press(page, "Create")
    expect(page.get_by_text("The exchange “made-here” is there.")).to_be_visible()
    tab.open("exchanges/%2F/made-here")
    press(page, "Bind")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Called").fill("bound")
    dialog.get_by_label("Routing key").fill("a.#")
    dialog.get_by_role("button", name="Bind").click()
    expect(page.get_by_role("link", name="bound")).to_be_visible()
    fill(page, routing_key="b")
    press(page, "Publish")
    expect(page.get_by_text("routed to no queue")).to_be_visible()
    fill(page, routing_key="a.b")
    press(page, "Publish")
    expect(page.get_by_text("Published.", exact=True)).to_be_visible()
    confirm(page, "Unbind")
    expect(page.get_by_text("There are no bindings.").first).to_be_visible()
    confirm(page, "Delete")
    expect(page.get_by_role("heading", level=1)).to_have_text("Exchanges")


def test_a_user_is_made_permitted_and_deleted(node: Broker, tab: Visit) -> None:
    page = tab.page
    tab.open("users")
    press(page, "New user")
    fill(page, name="carol", password="secret", tags="management")
    press(page, "Create")
    expect(page.get_by_text("The user “carol” is there")).to_be_visible()
    page.get_by_role("link", name="carol").click()
    fill(
        page.locator("section", has=page.get_by_role("heading", name="Permissions", exact=True)),
        configure="^carol",
    )  # type: ignore[arg-type]
    page.get_by_role("button", name="Set").first.click()
    expect(page.get_by_text("^carol").first).to_be_visible()
    permission: Any = api(node, "GET /permissions/%2F/carol")
    assert permission["configure"] == "^carol"
    confirm(page, "Delete")
    expect(page.get_by_role("heading", level=1)).to_have_text("Users")


def test_what_the_broker_refuses_is_said_in_its_words(tab: Visit) -> None:
    page = tab.page
    tab.open("queues")
    press(page, "New queue")
    fill(page, name="refused", arguments="x-max-length = none")
    press(page, "Create")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("x-max-length")
    tab.complaints.clear()


def test_definitions_go_out_and_come_in(node: Broker, tab: Visit, tmp_path: Path) -> None:
    page = tab.page
    api(node, "PUT /queues/%2F/travels", {})
    tab.open("definitions")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    document = json.loads(download.value.path().read_text())
    assert "travels" in [queue["name"] for queue in document["queues"]]
    document["queues"] = [
        {"name": "arrived", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
    ]
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(document))
    page.get_by_label("File").set_input_files(file)
    press(page, "Import")
    expect(page.get_by_text("changed.json is imported.")).to_be_visible()
    assert api(node, "GET /queues/%2F/arrived")


def test_signing_out_ends_it_and_a_wrong_password_is_told(node: Broker, chromium: Chromium) -> None:
    with visit(node, chromium) as tab:
        press(tab.page, "Sign out")
        tab.page.get_by_label("User").wait_for()
        cookies = tab.page.context.cookies()
        assert cookies == []
        tab.sign_in(password="wrong")
        expect(tab.page.get_by_role("alert")).to_have_text("Login failed")


def test_the_keyboard_is_enough(tab: Visit) -> None:
    page = tab.page
    tab.open("")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    tab.open("vhosts")
    page.get_by_role("button", name="New virtual host").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
