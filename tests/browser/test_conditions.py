"""What pages show of the state of the broker, and of refused requests."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import expect
from tests.browser.browsing import Visit, api, visit
from tests.integration.broker_process import BrokerProcess, broker


@pytest.fixture
def in_memory() -> Iterator[BrokerProcess]:
    with broker() as started:
        yield started


def test_every_page_names_an_alarm_and_a_broker_in_memory_only(
    in_memory: BrokerProcess, chromium: Chromium
) -> None:
    with visit(in_memory, chromium) as tab:
        looked_at(in_memory, tab)


def looked_at(in_memory: BrokerProcess, tab: Visit) -> None:
    page = tab.page
    for where in ("", "queues"):
        tab.open(where)
        expect(page.get_by_role("status").filter(has_text="runs in memory only")).to_be_visible()
    api(in_memory, "PUT /warren/limits/memory", {"absolute": 1})
    expect(page.get_by_role("alert").filter(has_text="Resource alarm: memory on node")).to_be_visible(
        timeout=20_000
    )
    api(in_memory, "PUT /queues/%2F/filled", {})
    tab.open("queues/%2F/filled")
    page.get_by_role("tab", name="Publish").click()
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("despite the resource alarm (memory)")).to_be_visible()


@pytest.fixture
def tab(node: BrokerProcess, chromium: Chromium) -> Iterator[Visit]:
    with visit(node, chromium) as tab:
        yield tab


def test_an_invalid_pattern_is_reported_and_keeps_the_list(node: BrokerProcess, tab: Visit) -> None:
    api(node, "PUT /queues/%2F/stays", {"durable": True})
    tab.open("queues")
    page = tab.page
    expect(page.get_by_role("link", name="stays")).to_be_visible()
    page.get_by_label("Regular expression").check()
    page.get_by_label("Filter Queues by name").fill("stays[")
    expect(page.get_by_role("alert")).to_contain_text("'stays[' is not a regular expression")
    expect(page.get_by_role("link", name="stays")).to_be_visible()
    page.get_by_role("navigation", name="Main navigation").get_by_role("link", name="Queues").click()
    expect(page.get_by_label("Filter Queues by name")).to_have_value("")
    page.get_by_role("link", name="stays").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Delete the queue “stays”?")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")


def test_a_user_without_monitoring_sees_an_overview_of_their_own_objects(
    node: BrokerProcess, chromium: Chromium
) -> None:
    api(node, "PUT /users/plain", {"password": "plain", "tags": "management"})
    api(node, "PUT /permissions/%2F/plain", {"configure": ".*", "write": ".*", "read": ".*"})
    page = chromium.new_page()
    tab = Visit(node, page)
    tab.sign_in("plain", "plain")
    tab.open("")
    expect(page.get_by_role("heading", name="Queued messages")).to_be_visible()
    expect(page.get_by_role("heading", name="Listening ports")).to_have_count(0)
    assert tab.complaints == []
    page.close()
    api(node, "DELETE /users/plain")
