"""Links log in as somebody whose password their URI has: where their node is makes nobody guest."""

from collections.abc import Iterator

import pytest
from tests.integration.api import HttpClient
from tests.integration.broker_process import BrokerProcess, broker
from tests.integration.shovels import await_state, confirming, put_shovel, ready, wait_until

POL = {"configure": "^pol", "write": "^pol", "read": "^pol"}


@pytest.fixture(scope="module")
def node() -> Iterator[BrokerProcess]:
    """A broker with a policymaker, at which guest may log in from its own machine only."""
    with broker(WARREN_LOOPBACK_USERS_GUEST="true") as started:
        guest = HttpClient(started)
        assert guest.status("PUT /users/pol", {"password": "pw", "tags": "policymaker"}) == 201
        assert guest.status("PUT /permissions/%2F/pol", POL) == 201
        for queue in ("secret", "polq"):
            assert guest.status(f"PUT /queues/%2F/{queue}", {"durable": True}) == 201
        with confirming(started.port) as channel:
            channel.basic_publish("", "secret", b"1")
        yield started


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("amqp://127.0.0.1:{}/%2f", "its URI has no user and password, and a link has no default ones"),
        ("amqp://guest:guest@127.0.0.1:{}/%2f", "403 ACCESS_REFUSED"),
        ("amqp://guest:guest@localhost:{}/%2f", "403 ACCESS_REFUSED"),
        ("amqp://guest:guest@/%2f", "403 ACCESS_REFUSED"),
    ],
)
def test_a_policymaker_does_not_become_guest_by_a_shovel_of_the_node_itself(
    node: BrokerProcess, uri: str, reason: str
) -> None:
    put_shovel(
        HttpClient(node, "pol:pw"), "s", src_protocol="amqp091", src_uri=uri.format(node.port),
        src_queue="secret", dest_protocol="amqp091", dest_uri="amqp:///%2f", dest_queue="polq",
    )  # fmt: skip
    assert reason in await_state(HttpClient(node), "s", "terminated")["reason"]
    with confirming(node.port) as channel:
        assert (ready(channel, "secret"), ready(channel, "polq")) == (1, 0)
    assert HttpClient(node).status("DELETE /parameters/shovel/%2F/s") == 204


def test_a_policymaker_does_not_become_guest_by_an_upstream(node: BrokerProcess) -> None:
    guest, pol = HttpClient(node), HttpClient(node, "pol:pw")
    assert guest.status("PUT /vhosts/other") == 201
    value = {"uri": f"amqp://guest:guest@127.0.0.1:{node.port}/other"}
    assert pol.status("PUT /parameters/federation-upstream/%2F/up", {"value": value}) == 201
    assert pol.status("PUT /exchanges/%2F/polx", {"type": "topic"}) == 201
    policy = {"pattern": "^polx$", "definition": {"federation-upstream": "up"}, "apply-to": "exchanges"}
    assert pol.status("PUT /policies/%2F/fed", policy) == 201
    wait_until(lambda: any("403" in str(one.get("error")) for one in guest.get("/federation-links")))
    assert guest.get("/queues/other") == []
    assert pol.status("DELETE /policies/%2F/fed") == 204


def test_a_shovel_that_guest_has_set_has_the_rights_of_guest(node: BrokerProcess) -> None:
    guest = HttpClient(node)
    put_shovel(
        guest, "mine", src_protocol="amqp091", src_uri="amqp:///%2f", src_queue="secret",
        dest_protocol="amqp091", dest_uri="amqp:///%2f", dest_queue="polq",
    )  # fmt: skip
    await_state(guest, "mine", "running")
    assert guest.status("DELETE /parameters/shovel/%2F/mine") == 204
