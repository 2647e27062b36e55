"""Federation links whose user has other rights from one moment to the next, here and at the upstream."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.federation import channel_at, eventually, messages

EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}
KINDS = ["exchange", "queue"]


@pytest.fixture(scope="module")
def upstream() -> Iterator[BrokerProcess]:
    with broker() as started:
        yield started


@pytest.fixture
def node(upstream: BrokerProcess) -> Iterator[BrokerProcess]:
    """A broker with a federated exchange and a federated queue, whose upstream the user `maker` has set."""
    with broker() as started:
        client, there = HttpClient(started), HttpClient(upstream)
        there.ask("PUT /users/away", {"password": "secret", "tags": ""})
        there.ask("PUT /permissions/%2F/away", EVERYTHING)
        client.ask("PUT /cluster-name", {"name": "c"})
        client.ask("PUT /users/maker", {"password": "secret", "tags": "policymaker"})
        client.ask("PUT /permissions/%2F/maker", EVERYTHING)
        for site in (client, there):
            site.ask("PUT /exchanges/%2F/fx", {"type": "topic", "durable": True})
            site.ask("PUT /queues/%2F/fq", {"durable": True})
        client.ask("PUT /queues/%2F/q", {"durable": True})
        client.ask("POST /bindings/%2F/e/fx/q/q", {"routing_key": "#"})
        set_upstream(started, upstream)
        policy = {"pattern": "^f", "definition": {"federation-upstream": "up"}, "apply-to": "all"}
        assert client.status("PUT /policies/%2F/p", policy) == 201
        await_all(client, "running")
        yield started
        client.close()
        there.close()


@pytest.fixture
def client(node: BrokerProcess) -> HttpClient:
    return HttpClient(node)


def set_upstream(node: BrokerProcess, upstream: BrokerProcess, password: str = "secret") -> None:
    """Set the upstream as `maker`; its address has the user `away`."""
    maker = HttpClient(node, f"maker:{password}")
    value = {"uri": f"amqp://away:secret@127.0.0.1:{upstream.port}/%2f", "reconnect-delay": 1}
    assert maker.status("PUT /parameters/federation-upstream/%2F/up", {"value": value}) in (201, 204)
    maker.close()


def links(client: HttpClient) -> dict[str, Any]:
    return {link["type"]: link for link in client.get("/federation-links")}


def await_all(client: HttpClient, status: str) -> dict[str, Any]:
    """Wait until both links have `status`."""
    eventually(lambda: {link["status"] for link in links(client).values()} == {status})
    return links(client)


def has_error(client: HttpClient, kind: str, text: str) -> bool:
    link = links(client)[kind]
    return link["status"] != "running" and text in link["last_error"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_link_stops_when_its_user_may_not_publish_and_starts_when_they_may(
    client: HttpClient, kind: str
) -> None:
    entity = "fx" if kind == "exchange" else "amq.default"
    other = "queue" if kind == "exchange" else "exchange"
    client.ask("PUT /permissions/%2F/maker", {**EVERYTHING, "write": f"^(?!{entity}$)"})
    refused = f"access to exchange '{entity}' in vhost '/' refused for user 'maker'"
    eventually(lambda: has_error(client, kind, refused))
    assert links(client)[other]["status"] == "running"
    assert "a permission is missing" in links(client)[kind]["why"]
    client.ask("PUT /permissions/%2F/maker", EVERYTHING)
    await_all(client, "running")


def test_links_end_with_all_permissions_of_their_user(client: HttpClient) -> None:
    assert client.status("DELETE /permissions/%2F/maker") == 204
    eventually(lambda: all(has_error(client, kind, "refused for user 'maker'") for kind in KINDS))
    client.ask("PUT /permissions/%2F/maker", EVERYTHING)
    await_all(client, "running")


def test_links_end_with_their_user_until_another_of_that_name_sets_the_upstream_again(
    client: HttpClient, node: BrokerProcess, upstream: BrokerProcess
) -> None:
    deleted = "user 'maker', who has set it, is deleted: it has to be set again"
    assert client.status("DELETE /users/maker") == 204
    eventually(lambda: all(has_error(client, kind, deleted) for kind in KINDS))
    client.ask("PUT /users/maker", {"password": "other", "tags": "policymaker"})
    client.ask("PUT /permissions/%2F/maker", EVERYTHING)
    for link in client.get("/federation-links"):
        client.ask(f"POST /warren/federation-links/%2F/{link['id']}/restart")
    eventually(lambda: all(links(client)[kind]["why"].startswith(deleted) for kind in KINDS))
    set_upstream(node, upstream, "other")
    await_all(client, "running")


def test_a_topic_permission_refuses_a_message_until_it_is_given(
    client: HttpClient, node: BrokerProcess, upstream: BrokerProcess
) -> None:
    topics = {"exchange": "fx", "write": "^public", "read": ".*"}
    assert client.status("PUT /topic-permissions/%2F/maker", topics) == 201
    with channel_at(node.port) as here, channel_at(upstream.port) as there:
        there.basic_publish("fx", "public.a", b"one")
        assert messages(here, "q", 1)[0][2] == b"one"
        there.basic_publish("fx", "secret.a", b"two")
        refused = "access to topic 'secret.a' in exchange 'fx' in vhost '/' refused for user 'maker'"
        eventually(lambda: has_error(client, "exchange", refused))
        assert links(client)["queue"]["status"] == "running"
        assert client.status("DELETE /topic-permissions/%2F/maker") == 204
        assert messages(here, "q", 1)[0][2] == b"two"
    await_all(client, "running")


@pytest.mark.parametrize(
    ("permissions", "kind", "what"),
    [
        ({**EVERYTHING, "configure": ""}, "exchange", "queue 'federation: fx -> c'"),
        ({**EVERYTHING, "write": "^fx$"}, "exchange", "queue 'federation: fx -> c'"),
        ({**EVERYTHING, "read": "^fx$"}, "exchange", "exchange 'federation: fx -> c A'"),
        ({"configure": "^x", "write": "^x", "read": "^x"}, "queue", "queue 'fq'"),
    ],
)
def test_what_the_user_of_the_address_may_not_do_at_the_upstream_is_the_reason(
    client: HttpClient, upstream: BrokerProcess, permissions: dict[str, str], kind: str, what: str
) -> None:
    there = HttpClient(upstream)
    there.ask("PUT /permissions/%2F/away", permissions)
    for link in client.get("/federation-links"):
        client.ask(f"POST /warren/federation-links/%2F/{link['id']}/restart")
    eventually(lambda: has_error(client, kind, "refused for user 'away'"))
    expected = f"source: 403 ACCESS_REFUSED - access to {what} in vhost '/' refused for user 'away'"
    assert links(client)[kind]["last_error"] in (expected, expected.replace(" A'", " B'"))
    there.ask("PUT /permissions/%2F/away", EVERYTHING)
    await_all(client, "running")
    there.close()
