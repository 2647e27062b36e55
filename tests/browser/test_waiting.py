"""What pages show while a request is pending, and which answer they show."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Route, expect
from tests.browser.browsing import Visit, api, visit
from tests.integration.broker_process import BrokerProcess

MESSAGES = "**/api/warren/queues/**/messages?*"


@pytest.fixture
def tab(node: BrokerProcess, chromium: Chromium) -> Iterator[Visit]:
    with visit(node, chromium) as tab:
        yield tab
        assert tab.complaints == []


def publish(node: BrokerProcess, queue: str, count: int) -> None:
    api(node, f"PUT /queues/%2F/{queue}", {"durable": True})
    for number in range(count):
        properties = {"headers": {"parity": "odd" if number % 2 else "even"}}
        body = {"routing_key": queue, "properties": properties, "payload": f"number {number}"}
        api(node, "POST /exchanges/%2F/amq.default/publish", body | {"payload_encoding": "string"})


def test_a_search_shows_that_it_is_pending_and_ignores_a_late_answer(node: BrokerProcess, tab: Visit) -> None:
    page = tab.page
    publish(node, "searched", 4)
    tab.open("queues/%2F/searched")
    page.get_by_role("tab", name="Peek").click()
    expect(page.locator(".message")).to_have_count(4)
    expect(page.get_by_text("4 shown, end of the queue")).to_be_visible()
    held: list[Route] = []
    page.route(
        MESSAGES, lambda route: held.append(route) if "even" in route.request.url else route.continue_()
    )
    page.locator("[name=conditions]").fill("headers.parity=even")
    with page.expect_request(MESSAGES):
        page.get_by_role("button", name="Peek", exact=True).click()
    # Earlier results are not an answer to this search.
    expect(page.get_by_text("Searching …")).to_be_visible()
    expect(page.locator(".message")).to_have_count(0)
    page.locator("[name=conditions]").fill("headers.parity=odd")
    page.get_by_role("button", name="Peek", exact=True).click()
    expect(page.locator(".message")).to_have_count(2)
    held[0].continue_()
    page.evaluate("() => new Promise((done) => setTimeout(done, 300))")
    expect(page.locator(".message pre").first).to_have_text("number 1")
    expect(page.locator(".message")).to_have_count(2)
    expect(page.get_by_text("2 shown, 4 scanned, end of the queue")).to_be_visible()
    page.unroute(MESSAGES)


def test_a_search_shows_its_progress_and_can_be_stopped_and_continued(
    node: BrokerProcess, tab: Visit
) -> None:
    page = tab.page
    publish(node, "long", 3)
    tab.open("queues/%2F/long")
    page.get_by_role("tab", name="Peek").click()
    expect(page.locator(".message")).to_have_count(3)
    held: list[Route] = []

    def answer(route: Route) -> None:
        if held:
            held.append(route)
            return
        held.append(route)
        found = route.fetch().json()
        route.fulfill(json=found | {"messages": found["messages"][:1], "next": 20_000, "examined": 20_000})

    page.route(MESSAGES, answer)
    page.locator("[name=conditions]").fill("headers.parity=even")
    page.get_by_role("button", name="Peek", exact=True).click()
    expect(page.get_by_text("Searching … 1 found, 20,000 scanned")).to_be_visible()
    expect(page.locator(".message")).to_have_count(1)
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("1 shown, 20,000 scanned")).to_be_visible()
    expect(page.get_by_role("button", name="Load more")).to_be_visible()
    page.unroute(MESSAGES)
    page.get_by_role("button", name="Load more").click()
    expect(page.get_by_text("end of the queue")).to_be_visible()


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("policies", 2),
        ("limits", 2),
        ("users", 1),
        ("vhosts", 1),
        ("users/guest", 1),
        ("flags", 1),
        ("queues", 1),
    ],
)
def test_no_list_is_shown_as_empty_before_it_is_loaded(tab: Visit, where: str, count: int) -> None:
    page = tab.page
    # No list is followed, so no answer arrives.
    page.route("**/api/warren/live?*", lambda route: route.abort())
    page.goto(page.url.partition("#")[0] + f"#/{where}")
    page.reload()
    expect(page.get_by_text("Loading …")).to_have_count(count)
    for nothing in ("There are no ", "No limits are set.", "No permissions", "No topic permissions"):
        expect(page.get_by_text(nothing)).to_have_count(0)
    page.unroute("**/api/warren/live?*")
    expect(page.get_by_text("Loading …")).to_have_count(0)
    tab.complaints.clear()


def test_an_object_deleted_meanwhile_is_reported_and_its_actions_disappear(
    node: BrokerProcess, tab: Visit
) -> None:
    page = tab.page
    publish(node, "goes", 1)
    tab.open("queues/%2F/goes")
    expect(page.get_by_role("button", name="Delete", exact=True)).to_be_visible()
    api(node, "DELETE /queues/%2F/goes")
    expect(page.get_by_role("alert")).to_be_visible(timeout=20_000)
    expect(page.get_by_role("button", name="Delete", exact=True)).to_have_count(0)
    expect(page.get_by_role("button", name="Purge", exact=True)).to_have_count(0)


def test_messages_are_moved_within_their_virtual_host_by_default(node: BrokerProcess, tab: Visit) -> None:
    page = tab.page
    api(node, "PUT /vhosts/shop", {})
    api(node, "PUT /queues/shop/there", {"durable": True})
    tab.open("queues/shop/there")
    page.get_by_role("tab", name="Move").click()
    expect(page.locator("[name=destination_vhost]")).to_have_value("shop")
    api(node, "DELETE /vhosts/shop")
