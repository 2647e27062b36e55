"""Running federation links as the API, the commands and the event exchange show them."""

from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.shovels import confirming, wait_until

from warren.cli.main import main


@pytest.fixture(scope="module")
def node() -> Iterator[BrokerProcess]:
    """A broker whose exchange `fx` and queue `fq` have an upstream, and `fx` one that cannot be reached."""
    with broker() as started, broker() as upstream:
        client = HttpClient(started)
        address = f"amqp://guest:guest@127.0.0.1:{upstream.port}"
        put = "PUT /parameters/federation-upstream/%2F/"
        assert client.status(f"{put}up", {"value": {"uri": address}}) == 201
        gone = {"uri": "amqp://guest:guest@127.0.0.1:1", "exchange": "other", "queue": "other"}
        assert client.status(f"{put}gone", {"value": gone}) == 201
        assert client.status("PUT /exchanges/%2F/fx", {"type": "topic", "durable": True}) == 201
        assert client.status("PUT /queues/%2F/fq", {"durable": True}) == 201
        policy = {"pattern": "^f", "definition": {"federation-upstream-set": "all"}, "apply-to": "all"}
        assert client.status("PUT /policies/%2F/p", policy) == 201
        wait_until(lambda: sorted(states(client).values()) == ["error", "error", "running", "running"])
        yield started


@pytest.fixture
def client(node: BrokerProcess) -> HttpClient:
    return HttpClient(node)


def states(client: HttpClient) -> dict[str, Any]:
    """The status of each link by type and upstream."""
    links = client.get("/federation-links")
    # A link that is away alternates between `starting` and `error`.
    return {f"{link['type']} {link['upstream']}": link["status"] for link in links}


def link(client: HttpClient, kind: str, upstream: str) -> dict[str, Any]:
    (found,) = (
        link
        for link in client.get("/federation-links")
        if (link["type"], link["upstream"]) == (kind, upstream)
    )
    return dict(found)


def test_links_are_listed_with_rabbitmqs_fields_exchanges_first(client: HttpClient) -> None:
    links = client.get("/federation-links")
    assert [found["type"] for found in links] == ["exchange", "exchange", "queue", "queue"]
    running = link(client, "exchange", "up")
    assert (running["exchange"], running["upstream_exchange"], running["vhost"]) == ("fx", "fx", "/")
    assert "guest" not in running["uri"]
    assert link(client, "queue", "up")["consumer_tag"] == "federation-link-up"


def test_the_fields_of_links_are_those_of_rabbitmq_in_its_order(client: HttpClient) -> None:
    wait_until(lambda: {link(client, kind, "gone")["status"] for kind in ("exchange", "queue")} == {"error"})
    ours = "why"
    for kind, names in (
        ("exchange", ["exchange", "upstream_exchange"]),
        ("queue", ["queue", "upstream_queue", "consumer_tag"]),
    ):
        identity = ["node", *names, "type", "vhost", "upstream", "id", "status"]
        running, away = list(link(client, kind, "up")), list(link(client, kind, "gone"))
        # Without local_connection and local_channel, which only running links have.
        assert running[: running.index(ours)] == [*identity, "uri", "timestamp"]
        if "error" in away:
            assert away[: away.index(ours)] == [*identity, "error", "uri", "timestamp"]


def test_a_dry_run_names_the_queue_for_the_virtual_host_that_an_address_without_one_means(
    client: HttpClient,
) -> None:
    assert client.status("PUT /vhosts/other", {}) == 201
    value = {"uri": "amqp://127.0.0.1:1"}
    assert client.status("PUT /parameters/federation-upstream/other/up", {"value": value}) == 201
    policy = {"pattern": "^dry$", "definition": {"federation-upstream": "up"}, "apply-to": "exchanges"}
    assert client.status("PUT /policies/other/p", policy) == 201
    client.ask("PUT /permissions/other/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    assert client.status("PUT /exchanges/other/dry", {"type": "topic"}) == 201
    cluster = client.get("/cluster-name")["name"]
    steps = client.get("/warren/federation/other/exchange/dry")["steps"]
    assert f"federation: dry -> {cluster}" in [step["name"] for step in steps]
    assert client.status("DELETE /vhosts/other") == 204


def test_a_link_that_cannot_connect_says_so_and_is_down(client: HttpClient) -> None:
    wait_until(lambda: link(client, "exchange", "gone")["status"] == "error")
    away = link(client, "exchange", "gone")
    assert away["error"]
    assert away["why"]
    assert (away["upstream_exchange"], away["last_error_at"] > 0) == ("other", True)
    assert away["uri"] == "amqp://127.0.0.1:1"
    wait_until(
        lambda: {found["upstream"] for found in client.get("/federation-links/state/down")} == {"gone"}
    )
    assert {found["upstream"] for found in client.get("/federation-links/%2F/state/down")} <= {"gone"}


def test_a_page_of_links_has_the_links_of_that_page(client: HttpClient) -> None:
    everything = client.get("/federation-links")
    pages = [client.get(f"/federation-links?page={number}&page_size=1") for number in (1, 2)]
    assert [page["total_count"] for page in pages] == [len(everything)] * 2
    assert [[found["id"] for found in page["items"]] for page in pages] == [
        [everything[0]["id"]],
        [everything[1]["id"]],
    ]


def test_a_restart_by_command_connects_again_and_is_an_event(
    node: BrokerProcess, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARREN_URI", f"http://127.0.0.1:{node.ports['http']}")
    before = link(client, "exchange", "up")
    with confirming(node.port) as channel:
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, "amq.rabbitmq.event", "federation.link.status")
        result = CliRunner().invoke(main, ["restart_federation_link", before["id"]], prog_name="warren")
        assert result.exit_code == 0, result.output
        heard: list[str] = []

        def is_running_again() -> bool:
            while (found := channel.basic_get(queue, auto_ack=True))[0] is not None:
                if found[1].headers["id"] == before["id"]:
                    heard.append(found[1].headers["status"])
            return "running" in heard

        wait_until(is_running_again)
    assert "starting" in heard
    assert link(client, "exchange", "up")["restarts"] == before["restarts"] + 1


@pytest.mark.parametrize(("words", "prints"), [
    (("federation", "links"), "exchange"),
    (("federation_status",), "gone"),
    (("federation", "links", "--only-down"), "gone"),
    (("federation", "upstreams"), "guest:***@"),
    (("federation", "show-upstream", "up"), "guest:***@"),
    (("federation", "set-upstream-set", "pair", "up,gone"), "set"),
    (("federation", "sets"), "pair"),
    (("federation", "delete-upstream-set", "pair"), "deleted"),
    (("federation", "explain", "fx"), "federation: fx -> "),
    (("federation", "explain", "fq", "--queue"), "consume"),
])  # fmt: skip
def test_commands_of_federation(
    node: BrokerProcess, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], prints: str
) -> None:
    monkeypatch.setenv("WARREN_URI", f"http://127.0.0.1:{node.ports['http']}")
    result = CliRunner().invoke(main, words, prog_name="warren")
    assert result.exit_code == 0, result.output
    assert prints in result.output
