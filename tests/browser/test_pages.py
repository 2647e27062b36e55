"""Every page, in the light and dark theme and at two widths, with axe-core."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pika
import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import expect
from tests.browser.browsing import AXE, Visit, api, segment, visit
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.stream_client import RawStreamClient

from warren.wire.streams import commands

PAGES = [
    "", "connections", "channels", "exchanges", "exchanges/%2F/amq.topic", "exchanges/%2F/amq.default",
    "queues", "queues/%2F/orders", "queues/%2F/orders?tab=messages", "queues/%2F/orders?tab=get",
    "queues/%2F/orders?tab=publish", "queues/%2F/orders?tab=consumers", "queues/%2F/orders?tab=bindings",
    "queues/%2F/orders?tab=move", "queues/%2F/orders?tab=leases", "queues/%2F/payments",
    "queues/%2F/payments?tab=messages", "streams", "queues/%2F/events",
    "queues/%2F/events?tab=messages", "queues/%2F/events?tab=clients", "dead-letters",
    "dead-letters/%2F/graveyard",
    "dead-letters/%2F/graveyard?died=died%20here&reason=rejected&exchange=amq.fanout", "jobs", "shovels",
    "shovels/%2F/steady", "federation", "exchanges/%2F/federated",
    "users", "users/guest", "vhosts", "vhosts/%2F", "policies", "limits", "definitions", "flags", "health",
    "topology", "topology?vhost=%2F&kind=queue&name=orders",
    "topology?vhost=%2F&kind=exchange&name=amq.topic",
]  # fmt: skip
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "\"'><script>alert(2)</script>",
    "a/b?c=d#e%2F&f",
    "{{7*7}}${7*7}",
    "x" * 250,
    "\u202eevil\u2028\t",
]


@pytest.fixture(scope="module", autouse=True)
def busy(node: BrokerProcess) -> Iterator[None]:
    """A broker with objects of every kind: queues, bindings, messages, a consumer and a connection."""
    # Its heartbeats are not answered while the pages are examined.
    parameters = pika.ConnectionParameters("127.0.0.1", node.port, heartbeat=0)
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.queue_declare("orders", durable=True, arguments={"x-max-length": 1000})
        channel.queue_bind("orders", "amq.topic", "orders.#")
        for number in range(30):
            properties = pika.BasicProperties(headers={"tenant": "acme"}, content_type="application/json")
            channel.basic_publish("amq.topic", "orders.eu", b'{"number": %d}' % number, properties)
        to_graveyard = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graveyard"}
        channel.queue_declare("graveyard")
        channel.queue_declare("died here", arguments=to_graveyard)
        channel.queue_bind("died here", "amq.fanout")
        for number in range(3):
            channel.basic_publish("amq.fanout", f"key {number}", b'{"total": 120}')
            channel.basic_reject(channel.basic_get("died here")[0].delivery_tag, requeue=False)
        quorum = {"x-queue-type": "quorum", "x-delivery-limit": 1}
        channel.queue_declare("payments", durable=True, arguments=quorum)
        channel.confirm_delivery()
        channel.basic_publish("", "payments", b"10 EUR")
        for _ in range(2):
            channel.basic_reject(channel.basic_get("payments")[0].delivery_tag)
        job = api(node, "POST /warren/queues/%2F/graveyard/redrive", {"limit": 1, "rate": 1})
        assert job["kind"] == "redrive"  # type: ignore[index]
        channel.basic_qos(prefetch_count=5)
        channel.basic_consume("orders", lambda *_: None)
        arguments = {"x-queue-type": "stream", "x-max-age": "7D", "x-max-length-bytes": 50_000_000}
        channel.queue_declare("events", durable=True, arguments=arguments)
        publisher = RawStreamClient(node.ports["stream"])
        publisher.ask(commands.DeclarePublisher(1, "sensors", "events"))
        publisher.publish(*range(1, 2_001))
        publisher.confirmed(2_000)
        reader = RawStreamClient(node.ports["stream"])
        reader.subscribe(1, "events", credit=1, name="audit")
        reader.say(commands.StoreOffset("audit", "events", 1_200).encode())
        channel.basic_consume("events", lambda *_: None, arguments={"x-stream-offset": 1_500})
        lease = {"key": "batch 7", "messages": 10, "ttl": 3_600}
        api(node, "POST /warren/queues/%2F/orders/leases", lease)
        local = {"src-uri": "amqp://", "src-queue": "steady from", "dest-uri": "amqp://"}
        api(node, "PUT /parameters/shovel/%2F/steady", {"value": {**local, "dest-queue": "steady to"}})
        upstream = {"uri": f"amqp://guest:guest@127.0.0.1:{node.port}"}
        api(node, "PUT /parameters/federation-upstream/%2F/site", {"value": upstream})
        api(node, "PUT /exchanges/%2F/federated", {"type": "topic"})
        federated = {"pattern": "^federated$", "definition": {"federation-upstream": "site"}}
        api(node, "PUT /policies/%2F/federated", federated)
        api(node, "PUT /policies/%2F/short", {"pattern": "^none", "definition": {"message-ttl": 60000}})
        api(node, "PUT /vhost-limits/%2F/max-queues", {"value": 1000})
        connection.process_data_events(1)
        yield
        reader.close()
        publisher.close()
        api(node, "DELETE /parameters/shovel/%2F/steady")
        api(node, "DELETE /policies/%2F/federated")
        api(node, "DELETE /parameters/federation-upstream/%2F/site")


# Two have each theme and each width; the other combinations of both take as long again.
LOOKS = [
    ("light", 1280),
    ("dark", 390),
    pytest.param(("light", 390), marks=pytest.mark.long),
    pytest.param(("dark", 1280), marks=pytest.mark.long),
]


@pytest.fixture(scope="module", params=LOOKS, ids=str)
def visited(request: pytest.FixtureRequest, node: BrokerProcess, chromium: Chromium) -> Iterator[Visit]:
    palette, width = request.param
    with visit(node, chromium, palette=palette, width=width) as tab:
        yield tab


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_the_window_logs_no_errors_and_is_accessible(visited: Visit, page: str) -> None:
    visited.complaints.clear()
    visited.open(page)
    visited.page.wait_for_timeout(300)
    assert visited.complaints == []
    assert visited.page.locator("[role=alert]").all_inner_texts() == []
    sizes = visited.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert sizes[0] <= sizes[1], "the page is wider than the window"
    visited.page.evaluate(AXE.read_text())
    result = visited.page.evaluate("axe.run()")
    found = [(rule["id"], rule["nodes"][0]["html"]) for rule in result["violations"]]
    assert found == []


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_shown_as_text_whatever_they_contain(
    node: BrokerProcess, chromium: Chromium, name: str
) -> None:
    api(node, f"PUT /vhosts/{segment(name)}", {"description": name, "tags": name})
    api(node, f"PUT /permissions/{segment(name)}/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    api(node, f"PUT /queues/{segment(name)}/{segment(name)}", {"arguments": {"x-dead-letter-exchange": name}})
    api(node, f"PUT /exchanges/{segment(name)}/{segment(name)}", {"type": "topic"})
    body = {"routing_key": name, "arguments": {name: name}}
    path = f"{segment(name)}/e/{segment(name)}/q/{segment(name)}"
    api(node, f"POST /bindings/{path}", body)
    stream = {"durable": True, "arguments": {"x-queue-type": "stream"}}
    api(node, f"PUT /queues/{segment(name)}/{segment(name[:240] + ' s')}", stream)
    message = {"routing_key": name, "payload": name, "payload_encoding": "string", "properties": {}}
    api(node, f"POST /exchanges/{segment(name)}/amq.default/publish", message)
    streaming = RawStreamClient(node.ports["stream"], name, connection_name=name)
    streaming.ask(commands.DeclarePublisher(1, name[:200], name[:240] + " s"))
    streaming.subscribe(1, name[:240] + " s", name=name)
    api(node, f"POST /warren/queues/{segment(name)}/{segment(name)}/leases", {"key": name})
    api(node, f"POST /exchanges/{segment(name)}/amq.default/publish", message)
    with visit(node, chromium) as tab:
        for address in (
            "connections",
            f"connections/{segment(streaming.name)}",
            f"streams?{urlencode({'vhost': name})}",
            f"queues/{segment(name)}/{segment(name[:240] + ' s')}",
            f"queues/{segment(name)}/{segment(name[:240] + ' s')}?tab=clients",
            f"queues/{segment(name)}/{segment(name)}?tab=leases",
            "vhosts", f"vhosts/{segment(name)}", "queues", "exchanges",
            f"exchanges/{segment(name)}/{segment(name)}",
            f"queues/{segment(name)}/{segment(name)}",
            f"queues/{segment(name)}/{segment(name)}?tab=bindings",
            f"dead-letters/{segment(name)}/{segment(name)}",
            "topology?" + urlencode({"vhost": name}),
            "topology?" + urlencode({"vhost": name, "kind": "queue", "name": name}),
            f"queues/{segment(name)}/{segment(name)}?tab=move",
            f"queues/{segment(name)}/{segment(name)}?tab=messages",
        ):  # fmt: skip
            tab.open(address)
        tab.page.locator(".message pre").wait_for()
        assert tab.page.locator(".message pre").inner_text().strip() == name.strip()
        assert tab.page.get_by_role("heading", level=1).text_content() == name
        assert tab.page.locator("img:not([src='icon.svg'])").count() == 0
        assert tab.complaints == []
    streaming.close()
    api(node, f"DELETE /vhosts/{segment(name)}")


def test_an_address_that_changes_while_the_page_is_built_is_followed(
    node: BrokerProcess, chromium: Chromium
) -> None:
    tab = Visit(node, chromium.new_page())
    tab.sign_in()
    # A reload before the answer would give up signing in.
    tab.page.locator("#main").wait_for()
    tab.open("queues")
    # The first rendering is complete, and none of its effects has run.
    tab.page.add_init_script(
        """new MutationObserver((_, observer) => {
            if (!document.querySelector("main h1")) return;
            observer.disconnect();
            location.hash = "#/exchanges";
        }).observe(document, { childList: true, subtree: true });"""
    )
    tab.page.reload()
    expect(tab.page.get_by_role("heading", name="Exchanges", level=1)).to_be_visible()
    tab.page.close()


def test_the_interface_works_behind_a_path_prefix(chromium: Chromium, tmp_path: Path) -> None:
    config = tmp_path / "warren.conf"
    config.write_text("management.path_prefix = /rmq/x\n")
    with broker(config=config) as node:
        tab = Visit(node, chromium.new_page(), "/rmq/x")
        # The path prefix is found from the port alone.
        tab.page.goto(f"http://127.0.0.1:{node.ports['http']}/")
        expect(tab.page).to_have_url(re.compile(r"/rmq/x/"))
        tab.sign_in()
        tab.page.locator("#main").wait_for()
        tab.open("queues")
        tab.page.reload()
        tab.open("exchanges")
        expect(tab.page.get_by_text("amq.topic")).to_be_visible()
        assert tab.page.locator("header img").first.evaluate("one => one.naturalWidth") > 0
        assert tab.complaints == []
        tab.page.close()
