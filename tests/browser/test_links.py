"""Shovels and upstreams are created, changed and deleted with the forms of the web interface."""

import re

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import expect
from tests.browser.browsing import api, visit
from tests.integration.broker_process import BrokerProcess, broker


def test_a_shovel_is_created_seen_changed_and_deleted(node: BrokerProcess, chromium: Chromium) -> None:
    source = f"amqp://guest:guest@127.0.0.1:{node.port}"
    with visit(node, chromium) as tab:
        page = tab.page
        tab.open("shovels")
        page.get_by_role("button", name="New shovel").click()
        form = page.get_by_role("dialog")
        form.get_by_label("Name").fill("by form")
        form.get_by_label("Addresses").first.fill(source)
        form.locator('[name="src-queue"]').fill("from")
        form.locator('[name="src-exchange"]').fill("amq.topic")
        form.get_by_role("button", name="Create").click()
        expect(form.get_by_text("Name a queue or an exchange, and not both.")).to_be_visible()
        expect(form.locator('[name="src-queue"]')).to_be_focused()
        form.locator('[name="src-exchange"]').fill("")
        form.locator('[name="dest-queue"]').fill("to")
        form.locator('[name="src-delete-after"]').fill("sometimes")
        form.get_by_role("button", name="Create").click()
        expect(form.locator('[name="src-delete-after"]')).to_have_attribute("aria-invalid", "true")
        form.locator('[name="src-delete-after"]').fill("")
        form.locator('[name="src-prefetch-count"]').fill("7")
        form.get_by_role("button", name="Create").click()
        expect(page.get_by_role("group", name="Running shovels").get_by_text("running")).to_be_visible()
        definitions = page.get_by_role("group", name="Shovels", exact=True)
        expect(definitions.get_by_text("guest:***@")).to_be_visible()
        assert "guest:guest" not in page.content()

        definitions.get_by_role("button", name="Edit").click()
        expect(form.get_by_label("Addresses").first).to_have_value(re.compile(r"guest:\*\*\*@"))
        form.get_by_label("Acknowledgement").select_option("on-publish")
        form.get_by_role("button", name="Save").click()
        expect(definitions.get_by_text("on-publish")).to_be_visible()
        stored = api(node, "GET /parameters/shovel/%2F/by%20form")
        assert stored["value"] == {  # type: ignore[index,call-overload]
            "src-uri": source.replace(":guest@", ":***@"), "src-queue": "from", "src-prefetch-count": 7,
            "dest-uri": "amqp://", "dest-queue": "to", "ack-mode": "on-publish",
        }  # fmt: skip
        page.get_by_role("button", name="Restart").click()
        page.get_by_role("dialog").get_by_role("button", name="Restart").click()
        expect(page.get_by_text("connects again", exact=False).first).to_be_visible()

        definitions.get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_text("There are no shovels.")).to_be_visible()
        expect(page.get_by_text("This node runs no shovels.")).to_be_visible()
        assert [line for line in tab.complaints if "400 (Bad Request)" not in line] == []


def test_the_page_of_a_shovel_shows_its_rates_and_a_dry_run(node: BrokerProcess, chromium: Chromium) -> None:
    body = {"src-uri": "amqp://", "src-queue": "dry from", "dest-uri": "amqp://", "dest-queue": "dry to"}
    api(node, "PUT /parameters/shovel/%2F/dry", {"value": body})
    message = {"routing_key": "dry from", "payload": "x", "payload_encoding": "string", "properties": {}}
    with visit(node, chromium) as tab:
        page = tab.page
        tab.open("shovels")
        page.get_by_role("group", name="Running shovels").get_by_role("link", name="dry").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("dry")
        api(node, "POST /exchanges/%2F/amq.default/publish", message)
        expect(page.locator(".figure", has_text="Confirmed")).to_contain_text("1")
        expect(page.get_by_role("img", name=re.compile("Forwarded: .*, Confirmed: "))).to_be_visible()
        page.get_by_role("button", name="Dry run").click()
        expect(page.get_by_text("It would run. Nothing was changed.")).to_be_visible()
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Shovels")
        assert tab.complaints == []


def test_messages_are_moved_to_another_broker_by_its_address(node: BrokerProcess, chromium: Chromium) -> None:
    api(node, "PUT /queues/%2F/away", {"durable": True})
    message = {"routing_key": "away", "payload_encoding": "string", "properties": {}}
    for number in range(3):
        api(node, "POST /exchanges/%2F/amq.default/publish", {**message, "payload": str(number)})
    with broker() as other, visit(node, chromium) as tab:
        page = tab.page
        tab.open("queues/%2F/away?tab=move")
        page.locator("[name=uri]").fill("nowhere")
        page.get_by_role("button", name="Move to broker").click()
        expect(page.locator("[name=uri]")).to_have_attribute("aria-invalid", "true")
        tab.complaints.clear()
        page.locator("[name=uri]").fill(f"amqp://guest:guest@127.0.0.1:{other.port}")
        page.get_by_role("button", name="Move to broker").click()
        expect(page.get_by_text("Moved: the shovel has ended.")).to_be_visible()
        taking = {"count": 9, "ackmode": "ack_requeue_false", "encoding": "auto"}
        moved = api(other, "POST /queues/%2F/away/get", taking)
        assert [one["payload"] for one in moved] == ["0", "1", "2"]  # type: ignore[attr-defined]
        assert api(node, "GET /parameters/shovel") == []


def test_a_federated_exchange_shows_its_links_and_the_topology_shows_their_brokers(
    node: BrokerProcess, chromium: Chromium
) -> None:
    address = f"127.0.0.1:{node.port}"
    api(node, "PUT /vhosts/far", {})
    upstream = {"uri": f"amqp://guest:wrong@{address}/far", "reconnect-delay": 60}
    api(node, "PUT /parameters/federation-upstream/%2F/far", {"value": upstream})
    api(node, "PUT /exchanges/%2F/linked", {"type": "topic"})
    api(
        node,
        "PUT /policies/%2F/linked",
        {"pattern": "^linked$", "definition": {"federation-upstream": "far"}},
    )
    with visit(node, chromium) as tab:
        page = tab.page
        tab.open("exchanges/%2F/linked")
        links = page.get_by_role("group", name="Federation links")
        expect(links.get_by_text("The login was refused")).to_be_visible()
        links.get_by_role("link", name="far").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("linked from far")
        page.get_by_role("button", name="Dry run").click()
        expect(page.get_by_role("group", name="Steps")).to_be_visible()
        tab.open("topology?vhost=%2F&kind=exchange&name=linked")
        expect(page.get_by_role("group", name="Topology diagram")).to_contain_text(f"{address}, far"[:17])
        table = page.get_by_role("group", name="Shovels and federation links")
        expect(table.get_by_role("link", name="linked from far")).to_be_visible()
        expect(table.get_by_text("error", exact=True)).to_be_visible()
        assert "wrong" not in page.content()
        assert tab.complaints == []
    api(node, "DELETE /policies/%2F/linked")
    api(node, "DELETE /parameters/federation-upstream/%2F/far")
    api(node, "DELETE /vhosts/far")
