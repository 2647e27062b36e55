"""Actions in the web interface take effect in the broker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, Route, expect
from tests.browser.browsing import Visit, api, visit
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.stream_client import RawStreamClient

from warren.wire.streams import commands


@pytest.fixture
def tab(node: BrokerProcess, chromium: Chromium) -> Iterator[Visit]:
    with visit(node, chromium) as tab:
        yield tab
        assert tab.complaints == []


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).last.click()


def confirm(page: Page, name: str) -> None:
    """Press a button that asks for confirmation, and confirm."""
    press(page, name)
    page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()


def fill(page: Page, **fields: str) -> None:
    for name, text in fields.items():
        field = page.locator(f"[name='{name.replace('_to', '-to')}']").last
        if field.evaluate("element => element.tagName") == "SELECT":
            field.select_option(text)
        else:
            field.fill(text)


def test_a_queue_is_created_published_to_peeked_at_purged_and_deleted(
    node: BrokerProcess, tab: Visit
) -> None:
    page = tab.page
    tab.open("queues")
    press(page, "New queue")
    fill(page, name="made here", arguments="x-max-length = 10")
    press(page, "Create")
    page.get_by_role("link", name="made here").click()
    page.get_by_role("tab", name="Publish").click()
    fill(page, payload='{"a": 1}', headers="tenant = acme")
    press(page, "Publish")
    expect(page.get_by_text("Published and routed to at least one queue.")).to_be_visible()
    page.get_by_role("tab", name="Peek").click()
    expect(page.locator(".message pre")).to_contain_text('"a": 1')
    fill(page, conditions="headers.tenant=other")
    press(page, "Peek")
    expect(page.get_by_text("No messages, 1 scanned")).to_be_visible()
    queue: Any = api(node, "GET /queues/%2F/made%20here")
    assert queue["arguments"]["x-max-length"] == 10
    page.get_by_role("tab", name="Get messages").click()
    press(page, "Get messages")
    expect(page.locator(".message pre")).to_contain_text('"a": 1')
    confirm(page, "Purge")
    expect(page.get_by_text("Queue purged.")).to_be_visible()
    confirm(page, "Delete")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    names = [found["name"] for found in api(node, "GET /queues/%2F")]  # type: ignore[attr-defined]
    assert "made here" not in names


@pytest.fixture
def dead_letter_queue(node: BrokerProcess) -> Iterator[None]:
    """Three dead letters of one cause and one of another, in the queue `graveyard`."""
    for name in ("graveyard", "aside"):
        api(node, f"PUT /queues/%2F/{name}", {"durable": True})
    to_graveyard = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graveyard"}
    api(node, "PUT /queues/%2F/orders", {"durable": True, "arguments": to_graveyard})
    api(node, "PUT /queues/%2F/short", {"durable": True, "arguments": {**to_graveyard, "x-max-length": 0}})
    for key, count in (("orders", 3), ("short", 1)):
        for number in range(count):
            message = {"routing_key": key, "payload": f"{key} {number}", "payload_encoding": "string"}
            api(node, "POST /exchanges/%2F/amq.default/publish", {**message, "properties": {}})
    rejecting = {"count": 3, "ackmode": "reject_requeue_false", "encoding": "auto"}
    api(node, "POST /queues/%2F/orders/get", rejecting)
    yield
    for name in ("graveyard", "aside", "orders", "short"):
        api(node, f"DELETE /queues/%2F/{name}")


def bodies(node: BrokerProcess, queue: str) -> list[str]:
    """The bodies of its ready messages."""
    found: Any = api(node, f"GET /warren/queues/%2F/{queue}/messages")
    return [message["payload"] for message in found["messages"]]


@pytest.mark.usefixtures("dead_letter_queue")
def test_dead_letters_of_one_cause_are_redriven_and_the_redrive_is_undone(
    node: BrokerProcess, tab: Visit
) -> None:
    page = tab.page
    tab.open("dead-letters")
    page.get_by_role("link", name="orders").click()
    expect(page.locator(".message")).to_have_count(3)
    press(page, "Redrive")
    expect(page.get_by_role("dialog")).to_contain_text("all messages of this cause")
    press(page, "Preview")
    expect(page.get_by_text("3 would be moved, 0 would not")).to_be_visible()
    assert bodies(node, "orders") == []
    page.get_by_role("dialog").get_by_role("button", name="Redrive", exact=True).click()
    expect(page.get_by_text("3 moved")).to_be_visible()
    expect(page.locator(".message")).to_have_count(0)
    assert bodies(node, "orders") == ["orders 0", "orders 1", "orders 2"]
    press(page, "Undo")
    expect(page.get_by_text("3 moved back, 0 already delivered")).to_be_visible()
    expect(page.locator(".message")).to_have_count(3)
    assert bodies(node, "graveyard") == ["short 0", "orders 0", "orders 1", "orders 2"]
    tab.open("jobs")
    expect(page.get_by_text("undone")).to_be_visible()


@pytest.mark.usefixtures("dead_letter_queue")
def test_a_selected_dead_letter_is_edited_and_redriven_to_another_queue(
    node: BrokerProcess, tab: Visit
) -> None:
    page = tab.page
    tab.open("dead-letters/%2F/graveyard?died=orders&reason=rejected&exchange=")
    page.get_by_label("Select, in this queue for").nth(1).check()
    press(page, "Redrive")
    fill(page, to="other-queue")
    page.get_by_label("Queue", exact=True).fill("nowhere")
    press(page, "Preview")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("no queue 'nowhere'")
    tab.complaints.clear()
    page.get_by_label("Queue", exact=True).fill("aside")
    page.get_by_text("Edit messages").click()
    fill(page, headers="mended = true", payload="better")
    press(page, "Preview")
    page.get_by_role("dialog").get_by_role("button", name="Redrive", exact=True).click()
    expect(page.get_by_text("1 moved")).to_be_visible()
    found: Any = api(node, "GET /warren/queues/%2F/aside/messages")
    assert [message["payload"] for message in found["messages"]] == ["better"]
    assert found["messages"][0]["properties"]["headers"]["mended"] is True
    assert bodies(node, "graveyard") == ["short 0", "orders 0", "orders 2"]


@pytest.mark.usefixtures("dead_letter_queue")
def test_messages_are_moved_to_another_queue_and_a_job_is_stopped(node: BrokerProcess, tab: Visit) -> None:
    page = tab.page
    tab.open("queues/%2F/graveyard?tab=move")
    fill(page, destination="aside", conditions="body~short")
    press(page, "Preview")
    expect(page.get_by_text("1 would be moved, 0 would not; 4 scanned")).to_be_visible()
    press(page, "Move")
    expect(page.get_by_text("1 moved")).to_be_visible()
    assert bodies(node, "aside") == ["short 0"]
    fill(page, conditions="", rate="0.01")
    press(page, "Preview")
    press(page, "Move")
    expect(page.get_by_role("heading", name="Job progress")).to_be_visible()
    press(page, "Stop")
    expect(page.get_by_text("stopped by user 'guest'")).to_be_visible()
    assert len(bodies(node, "graveyard")) == 2


def test_an_exchange_is_created_bound_published_to_and_deleted(node: BrokerProcess, tab: Visit) -> None:
    page = tab.page
    api(node, "PUT /queues/%2F/bound", {})
    tab.open("exchanges")
    press(page, "New exchange")
    fill(page, name="made-here", type="topic")
    press(page, "Create")
    expect(page.get_by_text("Exchange “made-here” created.")).to_be_visible()
    tab.open("exchanges/%2F/made-here")
    press(page, "Bind")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Destination", exact=True).fill("bound")
    dialog.get_by_label("Routing key").fill("a.#")
    dialog.get_by_role("button", name="Bind").click()
    expect(page.get_by_role("link", name="bound")).to_be_visible()
    fill(page, routing_key="b")
    press(page, "Publish")
    expect(page.get_by_text("Not routed: no queue is bound with this routing key")).to_be_visible()
    fill(page, routing_key="a.b")
    press(page, "Publish")
    expect(page.get_by_text("Published and routed to at least one queue.")).to_be_visible()
    expect(page.get_by_text("Not routed:")).to_have_count(0)
    confirm(page, "Unbind")
    expect(page.get_by_text("There are no bindings.").first).to_be_visible()
    confirm(page, "Delete")
    expect(page.get_by_role("heading", level=1)).to_have_text("Exchanges")


def test_a_message_is_shown_as_published_only_after_the_broker_has_confirmed_it(
    node: BrokerProcess, tab: Visit
) -> None:
    page = tab.page
    limits = {"durable": True, "arguments": {"x-max-length": 0, "x-overflow": "reject-publish"}}
    api(node, "PUT /queues/%2F/refuses", limits)
    api(node, "PUT /queues/%2F/takes", {"durable": True})
    tab.open("queues/%2F/refuses")
    page.get_by_role("tab", name="Publish").click()
    press(page, "Publish")
    expect(page.get_by_role("alert")).to_have_text(
        "not published: a queue rejected the message, because it is full or cannot write to disk"
    )
    expect(page.locator(".outcome.done")).to_have_count(0)
    held: list[Route] = []
    page.route("**/publish", lambda route: held.append(route))
    tab.open("queues/%2F/takes")
    page.get_by_role("tab", name="Publish").click()
    with page.expect_request("**/publish"):
        press(page, "Publish")
    expect(page.get_by_text("Waiting for the broker to confirm the message")).to_be_visible()
    expect(page.locator(".outcome.done")).to_have_count(0)
    held[0].abort()
    expect(page.get_by_role("alert")).to_contain_text("may or may not have been published")
    expect(page.get_by_text("Waiting for")).to_have_count(0)
    page.unroute("**/publish")
    press(page, "Publish")
    expect(page.get_by_text("Published and routed to at least one queue.")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    # The messages of the browser itself for both.
    assert all("Failed to load resource" in complaint for complaint in tab.complaints)
    tab.complaints.clear()


def test_a_user_is_created_given_permissions_and_deleted(node: BrokerProcess, tab: Visit) -> None:
    page = tab.page
    tab.open("users")
    press(page, "New user")
    fill(page, name="carol", password="secret", tags="management")
    press(page, "Create")
    expect(page.get_by_text("User “carol” created.")).to_be_visible()
    page.get_by_role("link", name="carol").click()
    fill(
        page.locator("section", has=page.get_by_role("heading", name="Permissions", exact=True)),
        configure="^carol",
    )  # type: ignore[arg-type]
    page.get_by_role("button", name="Set permission").first.click()
    expect(page.get_by_text("^carol").first).to_be_visible()
    permission: Any = api(node, "GET /permissions/%2F/carol")
    assert permission["configure"] == "^carol"
    confirm(page, "Delete")
    expect(page.get_by_role("heading", level=1)).to_have_text("Users")


def test_a_refusal_is_shown_in_the_words_of_the_broker(tab: Visit) -> None:
    page = tab.page
    tab.open("queues")
    press(page, "New queue")
    fill(page, name="refused", arguments="x-max-length = none")
    press(page, "Create")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("x-max-length")
    tab.complaints.clear()


def test_definitions_are_exported_and_imported(node: BrokerProcess, tab: Visit, tmp_path: Path) -> None:
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
    page.get_by_label("File", exact=True).set_input_files(file)
    press(page, "Import")
    expect(page.get_by_text("Imported changed.json.")).to_be_visible()
    assert api(node, "GET /queues/%2F/arrived")


def test_signing_out_ends_the_session_and_a_wrong_password_is_reported(
    node: BrokerProcess, chromium: Chromium
) -> None:
    with visit(node, chromium) as tab:
        press(tab.page, "Sign out")
        tab.page.get_by_label("User").wait_for()
        cookies = tab.page.context.cookies()
        assert cookies == []
        tab.sign_in(password="wrong")
        expect(tab.page.get_by_role("alert")).to_have_text("Login failed")


def test_an_ended_session_leads_to_the_sign_in_page_and_a_missing_permission_does_not(
    chromium: Chromium, node: BrokerProcess
) -> None:
    with visit(node, chromium) as tab:
        page = tab.page
        tab.open("queues")
        press(page, "New queue")
        fill(page, name="not mine")
        refusal = {"error": "not_authorised", "reason": "Access refused."}
        page.route("**/queues/%2F/not%20mine", lambda route: route.fulfill(status=401, json=refusal))
        with page.expect_response("**/api/whoami"):
            press(page, "Create")
        expect(page.get_by_role("alert")).to_have_text("Access refused.")
        page.unroute("**/queues/%2F/not%20mine")
        page.context.clear_cookies()
        press(page, "Create")
        expect(page.get_by_label("Password")).to_be_visible()


def test_a_session_survives_a_kill_and_restart_of_the_broker(chromium: Chromium, tmp_path: Path) -> None:
    data = "--data-dir", str(tmp_path)
    with broker(*data) as first:
        tab = Visit(first, chromium.new_page())
        tab.sign_in()
        tab.page.locator("#main").wait_for()
        tab.open("queues")
        # The broker is killed at the end of the block.
    with broker(*data, "--management-port", str(first.ports["http"])):
        tab.page.reload()
        expect(tab.page.get_by_role("heading", level=1)).to_have_text("Queues")
        expect(tab.page.locator(".user-name")).to_have_text("guest")
        press(tab.page, "Sign out")
        tab.page.get_by_label("User").wait_for()
    tab.page.close()


def test_pages_can_be_used_with_the_keyboard_alone(tab: Visit) -> None:
    page = tab.page
    tab.open("")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    tab.open("vhosts")
    page.get_by_role("button", name="New virtual host").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_route_is_traced_and_nothing_is_published(node: BrokerProcess, tab: Visit) -> None:
    page = tab.page
    api(node, "PUT /queues/%2F/tried", {})
    api(node, "PUT /exchanges/%2F/trying", {"type": "topic"})
    api(node, "POST /bindings/%2F/e/trying/q/tried", {"routing_key": "a.*.c"})
    tab.open("exchanges/%2F/trying")
    page.locator("[name=routing_key]").first.fill("a.b.d")
    press(page, "Trace")
    expect(page.get_by_text("Not routed to any queue")).to_be_visible()
    expect(page.get_by_text("wants 'c' as word 3, which is 'd'")).to_be_visible()
    page.locator("[name=routing_key]").first.fill("a.b.c")
    press(page, "Trace")
    expect(page.get_by_text("Routed to 1 queue")).to_be_visible()
    expect(page.locator(".found").get_by_role("link", name="tried")).to_be_visible()
    expect(page.get_by_text("accepted")).to_be_visible()
    queue: Any = api(node, "GET /queues/%2F/tried?disable_stats=true")
    assert "message_stats" not in queue


def test_a_queue_is_paused_and_resumed(node: BrokerProcess, tab: Visit) -> None:
    page = tab.page
    api(node, "PUT /queues/%2F/pausing", {})
    tab.open("queues/%2F/pausing")
    press(page, "Pause")
    expect(page.get_by_text("This queue is paused")).to_be_visible()
    assert api(node, "GET /warren/queues/%2F/pausing/pause") == {"paused": True}
    press(page, "Resume")
    expect(page.get_by_text("This queue is paused")).to_have_count(0)
    assert api(node, "GET /warren/queues/%2F/pausing/pause") == {"paused": False}


def test_quarantined_messages_of_a_quorum_queue_are_released_and_removed(
    node: BrokerProcess, tab: Visit
) -> None:
    page = tab.page
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        arguments = {"x-queue-type": "quorum", "x-delivery-limit": 0}
        channel.queue_declare("poisoned", durable=True, arguments=arguments)

        def quarantine_all() -> None:
            for _ in range(2):
                channel.basic_reject(channel.basic_get("poisoned")[0].delivery_tag)

        for body in (b"a", b"b"):
            channel.basic_publish("", "poisoned", body)
        quarantine_all()
        tab.open("queues/%2F/poisoned")
        expect(page.get_by_text("2 messages exceeded the delivery limit")).to_be_visible()
        expect(page.get_by_role("cell", name="whole")).to_be_visible()
        confirm(page, "Release all")
        expect(page.get_by_text("Quarantined messages released.")).to_be_visible()
        assert channel.queue_declare("poisoned", passive=True).method.message_count == 2
        quarantine_all()
        expect(page.get_by_text("2 messages exceeded the delivery limit")).to_be_visible()
        confirm(page, "Remove all")
        expect(page.get_by_text("Quarantined messages removed.")).to_be_visible()
        expect(page.get_by_text("exceeded the delivery limit")).to_have_count(0)
        assert channel.basic_get("poisoned") == (None, None, None)
        channel.queue_delete("poisoned")


def test_unacknowledged_messages_of_a_consumer_are_requeued(node: BrokerProcess, tab: Visit) -> None:
    page = tab.page
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.port)) as connection:
        channel = connection.channel()
        channel.queue_declare("held")
        for _ in range(3):
            channel.basic_publish("", "held", b"x")
        for _ in range(3):
            channel.basic_get("held")
        tab.open("queues/%2F/held?tab=messages")
        fill(page, state="unacknowledged")
        press(page, "Peek")
        expect(page.get_by_text("3 shown")).to_be_visible()
        page.get_by_role("button", name="Requeue", exact=True).first.click()
        expect(page.get_by_text("2 shown")).to_be_visible()
        confirm(page, "Requeue all")
        expect(page.get_by_text("2 messages requeued.")).to_be_visible()
        assert channel.queue_declare("held", passive=True).method.message_count == 3
        channel.queue_delete("held")


def test_a_plan_is_shown_and_applied(node: BrokerProcess, tab: Visit, tmp_path: Path) -> None:
    page = tab.page
    file = tmp_path / "planned.json"
    queue = {"name": "planned", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
    policy = {"name": "planned", "vhost": "/", "pattern": "^p", "definition": {"max-length": 5}}
    file.write_text(json.dumps({"queues": [queue], "policies": [policy]}))
    tab.open("definitions")
    page.get_by_label("Definitions file").set_input_files(file)
    press(page, "Plan")
    table = page.get_by_label("Entries of the plan")
    expect(table.get_by_role("row")).to_have_count(3)
    press(page, "Apply this plan")
    expect(page.get_by_text("planned.json: 2 applied.")).to_be_visible()
    assert api(node, "GET /queues/%2F/planned")
    press(page, "Plan")
    expect(page.get_by_text("There is nothing to change")).to_be_visible()
    api(node, "DELETE /policies/%2F/planned")


def test_the_topology_is_navigated_by_keyboard_and_searched_by_name(node: BrokerProcess, tab: Visit) -> None:
    page = tab.page
    api(node, "PUT /exchanges/%2F/hub", {"type": "fanout"})
    for number in range(20):
        api(node, f"PUT /queues/%2F/spoke-{number:02}", {})
        api(node, f"POST /bindings/%2F/e/hub/q/spoke-{number:02}", {})
    tab.open("topology?vhost=%2F&kind=exchange&name=hub")
    expect(page.locator("svg .node")).to_have_count(13)
    expect(page.locator("svg .more")).to_have_text("+8 more →")
    expect(page.get_by_label("Bindings").get_by_role("row")).to_have_count(13)
    page.get_by_role("link", name="queue spoke-03").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Topology of spoke-03")
    expect(page.locator("svg .middle")).to_have_count(1)
    page.get_by_label("Find an exchange or queue").fill("spoke-19")
    page.get_by_role("link", name="spoke-19 queue").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Topology of spoke-19")
    page.get_by_role("link", name="queue spoke-19").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("spoke-19")


def test_a_stream_is_created_and_peeked_at_from_any_position(node: BrokerProcess, tab: Visit) -> None:
    page = tab.page
    tab.open("queues")
    press(page, "New queue")
    fill(page, name="looked into", type="stream", arguments="x-max-age = 7D")
    press(page, "Create")
    expect(page.get_by_text("Queue “looked into” created.")).to_be_visible()
    client = RawStreamClient(node.ports["stream"])
    client.ask(commands.DeclarePublisher(1, "", "looked into"))
    client.publish(*range(50))
    client.confirmed(50)
    client.close()
    tab.open("streams")
    expect(page.get_by_role("row", name="looked into")).to_contain_text("7 d")
    page.get_by_role("link", name="looked into").click()
    expect(page.get_by_role("button", name="Purge")).to_have_count(0)
    page.get_by_role("tab", name="Peek").click()
    offsets = page.locator(".message dt:text-is('Offset') + dd")
    expect(offsets).to_have_text([str(number) for number in range(30, 50)])
    fill(page, start="first")
    press(page, "Peek")
    expect(offsets.first).to_have_text("0")
    press(page, "Load more")
    expect(offsets).to_have_count(40)
    fill(page, start="offset")
    fill(page, offset="48")
    press(page, "Peek")
    expect(offsets).to_have_text(["48", "49"])
    fill(page, start="time")
    fill(page, time="2020-01-01T00:00:00")
    press(page, "Peek")
    expect(offsets.first).to_have_text("0")
    fill(page, time="2100-01-01T00:00:00")
    press(page, "Peek")
    expect(page.get_by_text("No messages, end of the queue")).to_be_visible()
    stream: Any = api(node, "GET /warren/streams/%2F/looked%20into")
    assert (stream["first_offset"], stream["committed_offset"]) == (0, 50)
    confirm(page, "Delete")


def test_a_stream_connection_is_shown_and_closed(node: BrokerProcess, tab: Visit) -> None:
    page = tab.page
    api(node, "PUT /queues/%2F/watched", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    client = RawStreamClient(node.ports["stream"], connection_name="sensor 5")
    client.ask(commands.DeclarePublisher(3, "ref-5", "watched"))
    client.subscribe(4, "watched", name="audit")
    tab.open("connections")
    expect(page.get_by_role("row", name="sensor 5")).to_contain_text("stream")
    page.get_by_role("link", name=client.name).click()
    expect(page.get_by_role("group", name="Publishers")).to_contain_text("ref-5")
    expect(page.get_by_role("group", name="Subscriptions")).to_contain_text("watched")
    press(page, "Force close")
    page.get_by_role("dialog").locator("button.danger").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Connections")
    assert api(node, "GET /stream/connections") == []
    client.close()
    api(node, "DELETE /queues/%2F/watched")


def test_the_messages_of_a_lease_are_requeued(node: BrokerProcess, tab: Visit) -> None:
    page = tab.page
    api(node, "PUT /queues/%2F/leased", {"durable": True})
    message = {"routing_key": "leased", "payload": "m", "payload_encoding": "string", "properties": {}}
    for _ in range(3):
        api(node, "POST /exchanges/%2F/amq.default/publish", message)
    api(node, "POST /warren/queues/%2F/leased/leases", {"key": "batch 7", "messages": 2})
    tab.open("queues/%2F/leased?tab=leases")
    row = page.get_by_role("row", name="batch 7")
    expect(row).to_contain_text("guest")
    confirm(page, "Requeue")
    expect(page.get_by_text("2 messages requeued.")).to_be_visible()
    expect(page.get_by_role("group", name="Ended leases").get_by_text("requeued")).to_be_visible()
    (lease,) = api(node, "GET /warren/queues/%2F/leased/leases")  # type: ignore[misc]
    assert lease["state"] == "requeued"
    page.get_by_role("tab", name="Peek").click()
    expect(page.locator(".message pre")).to_have_count(3)
    api(node, "DELETE /queues/%2F/leased")
