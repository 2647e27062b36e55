"""Shovels and upstreams are created, changed and deleted with the forms of the web interface."""

import re

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import expect
from tests.browser.browsing import api, visit
from tests.integration.broker_process import BrokerProcess


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
        expect(page.get_by_text("connects again")).to_be_visible()

        definitions.get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_text("There are no shovels.")).to_be_visible()
        expect(page.get_by_text("This node runs no shovels.")).to_be_visible()
        assert [line for line in tab.complaints if "400 (Bad Request)" not in line] == []
