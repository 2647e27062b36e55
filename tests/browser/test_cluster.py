"""What the web interface shows of a cluster of three nodes, of which one has been killed."""

from collections.abc import Iterator

import pika
import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import expect
from tests.browser.browsing import AXE, Visit, api, visit
from tests.cluster.warren_cluster import WarrenCluster, warren_cluster
from tests.integration.broker_process import BrokerProcess

PAGES = [
    "", "nodes", "queues", "queues/%2F/on%20a", "queues/%2F/on%20c", "queues/%2F/replicated", "connections",
]  # fmt: skip
# A quorum queue.
REPLICATED = "/queues/%2F/replicated"
# Two have each theme and each width; the other combinations of both take as long again.
LOOKS = [
    ("light", 1440),
    ("dark", 390),
    pytest.param(("light", 390), marks=pytest.mark.long),
    pytest.param(("dark", 1440), marks=pytest.mark.long),
]
# Nodes agree after some seconds that one is down, and pages are current after five more.
AGREED_MS = 30_000


@pytest.fixture(scope="module")
def cluster(needed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarrenCluster]:
    """Three nodes, each with a queue and a connection."""
    with warren_cluster(tmp_path_factory.mktemp("cluster")) as formed:
        connections = []
        for name, node in formed.nodes.items():
            parameters = pika.ConnectionParameters("127.0.0.1", node.amqp, heartbeat=0)
            connections.append(pika.BlockingConnection(parameters))
            connections[-1].channel().queue_declare(f"on {name}", durable=True)
        arguments = {"x-queue-type": "quorum", "x-quorum-initial-group-size": 1}
        api(formed.nodes["a"], f"PUT {REPLICATED}", {"durable": True, "arguments": arguments})
        yield formed
        # The other nodes have been killed, and their connections with them.
        connections[0].close()


@pytest.fixture(scope="module")
def with_one_killed(cluster: WarrenCluster, chromium: Chromium) -> WarrenCluster:
    """The cluster without its third node, after the test of the whole one."""
    with visit(cluster.nodes["a"], chromium) as tab:
        whole(tab)
        add_replicas(tab)
    cluster.kill("c")
    first, last = cluster.nodes["a"], cluster.nodes["c"]
    cluster.wait(lambda: not cluster.sees(first, last), "c is down")
    return cluster


def whole(tab: Visit) -> None:
    """All nodes are there, and nothing is wrong."""
    page = tab.page
    tab.open("")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("group", name="Listeners").get_by_role("row")).to_have_count(1 + 3 * 5)
    page.get_by_role("link", name="Nodes").click()
    rows = page.get_by_role("group", name="Members").get_by_role("row")
    expect(rows).to_have_count(4)
    expect(rows.get_by_text("up", exact=True)).to_have_count(3)
    expect(rows.get_by_text("connected", exact=True)).to_have_count(2)
    expect(rows.get_by_role("cell", name="leader", exact=True)).to_have_count(1)
    expect(page.get_by_role("heading", name="Problems")).to_have_count(0)
    tab.open("queues?sort=node&reverse=1")
    shown = page.get_by_role("group", name="Queues").get_by_role("row")
    expect(shown.nth(1)).to_contain_text("c@localhost")
    expect(shown.nth(3)).to_contain_text("a@localhost")
    tab.open("connections?sort=node")
    shown = page.get_by_role("group", name="Connections").get_by_role("row")
    expect(shown.nth(1)).to_contain_text("a@localhost")
    assert tab.complaints == []


def add_replicas(tab: Visit) -> None:
    """A queue gets a replica on each other node, and then one less."""
    page = tab.page
    tab.open("queues/%2F/replicated")
    rows = page.get_by_role("group", name="Replicas").get_by_role("row")
    expect(rows.filter(has_text="a@localhost").locator(".good").first).to_have_text("leader")
    remove = page.get_by_role("button", name="Remove", exact=True)
    expect(remove).to_have_count(0)
    for node in ("b@localhost", "c@localhost"):
        page.get_by_role("button", name="Add replica").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Node").select_option(node)
        dialog.get_by_role("button", name="Add", exact=True).click()
        expect(rows.filter(has_text=node)).to_have_count(1)
    expect(page.get_by_role("button", name="Add replica")).to_have_count(0)
    rows.filter(has_text="b@localhost").get_by_role("button", name="Remove").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("goes on with the replicas on a@localhost, c@localhost")
    dialog.get_by_role("button", name="Remove").click()
    expect(rows).to_have_count(3)
    assert tab.complaints == []


@pytest.fixture(params=LOOKS, ids=str)
def tab(
    request: pytest.FixtureRequest, with_one_killed: WarrenCluster, chromium: Chromium
) -> Iterator[Visit]:
    palette, width = request.param
    with visit(with_one_killed.nodes["a"], chromium, palette=palette, width=width) as tab:
        yield tab


@pytest.mark.timeout(120)
def test_pages_say_which_node_is_down_and_what_is_missing_with_it(tab: Visit) -> None:
    page = tab.page
    tab.open("")
    expect(page.get_by_role("alert")).to_have_text("A node is down: c@localhost. See the nodes.")
    missing = page.get_by_role("status").filter(has_text="What is on c@localhost is not counted here")
    expect(missing).to_be_visible()
    page.get_by_role("alert").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Nodes")
    down = page.get_by_role("group", name="Members").get_by_role("row").filter(has_text="c@localhost")
    expect(down.locator(".bad")).to_have_text("down")
    problem = "'c@localhost' is down: start it; 1 queue on it is unavailable until then."
    expect(page.get_by_role("listitem").filter(has_text=problem)).to_be_visible()
    tab.open("queues")
    row = page.get_by_role("group", name="Queues").get_by_role("row").filter(has_text="on c")
    expect(row.locator(".bad")).to_have_text("down")
    tab.open("queues/%2F/on%20c")
    expect(page.get_by_role("alert")).to_contain_text("home node 'c@localhost' of durable queue 'on c'")
    tab.open("connections")
    expect(missing).to_be_visible()
    tab.open("queues/%2F/replicated")
    row = page.get_by_role("group", name="Replicas").get_by_role("row").filter(has_text="c@localhost")
    expect(row.locator(".bad").first).to_have_text("down")


@pytest.mark.timeout(120)
def test_pages_of_a_cluster_fit_the_window_log_no_errors_and_are_accessible(tab: Visit) -> None:
    for place in PAGES:
        tab.open(place)
        tab.page.wait_for_timeout(300)
        sizes = tab.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert sizes[0] <= sizes[1], f"the page {place!r} is wider than the window"
        tab.page.evaluate(AXE.read_text())
        result = tab.page.evaluate("axe.run()")
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in result["violations"]] == []
    assert tab.complaints == []


@pytest.mark.timeout(120)
def test_a_node_in_the_minority_says_so_and_shows_when_it_is_over(
    with_one_killed: WarrenCluster, chromium: Chromium
) -> None:
    with visit(with_one_killed.nodes["a"], chromium) as tab:
        tab.open("")
        minority = tab.page.get_by_role("alert").filter(has_text="Node a@localhost is in the minority")
        expect(minority).to_have_count(0)
        with_one_killed.kill("b")
        expect(minority).to_be_visible(timeout=AGREED_MS)
        with_one_killed.start("b")
        expect(minority).to_have_count(0, timeout=AGREED_MS)
        assert tab.complaints == []


def test_a_node_that_is_alone_shows_nothing_of_a_cluster(node: BrokerProcess, chromium: Chromium) -> None:
    api(node, "PUT /queues/%2F/alone", {"durable": True})
    with visit(node, chromium) as tab:
        tab.open("queues")
        headings = tab.page.get_by_role("columnheader")
        expect(headings.filter(has_text="State")).to_have_count(1)
        expect(headings.filter(has_text="Node")).to_have_count(0)
        expect(tab.page.get_by_role("link", name="Nodes")).to_have_count(0)
        assert tab.complaints == []
    api(node, "DELETE /queues/%2F/alone")
