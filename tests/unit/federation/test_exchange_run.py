"""What each setting of an upstream changes for a federated exchange, at the upstream and in messages."""

import pytest
from tests.unit.federation.two_sites import TwoSites

from warren.client.connection import ClientConnection
from warren.metadata.commands import SetParameter, SetPolicy
from warren.wire import methods
from warren.wire.table import Table

QUEUE = "federation: x -> c"
_BIND_OK = methods.ExchangeBindOk.index.to_bytes(4, "big")


def federated(**settings: object) -> TwoSites:
    """Two brokers whose exchange x is federated, with one binding."""
    sites = TwoSites().start()
    sites.declare()
    sites.bind("a")
    sites.federate(**settings)
    assert sites.is_running
    return sites


def queue_arguments(sites: TwoSites) -> Table:
    vhost = sites.there.services.metadata.vhost("/")
    assert vhost is not None
    return dict(vhost.topology.queues[QUEUE].arguments)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        ({"expires": 60_000}, {"x-expires": 60_000}),
        ({"message_ttl": 5_000}, {"x-message-ttl": 5_000}),
        ({"ha_policy": "all"}, {"x-ha-policy": "all"}),
        ({"queue_type": "classic"}, {"x-queue-type": "classic"}),
    ],
)
def test_settings_that_are_arguments_of_the_queue_at_the_upstream(
    settings: dict[str, object], expected: Table
) -> None:
    sites = federated(**settings)
    assert queue_arguments(sites) == {"x-internal-purpose": "federation", **expected}


def test_messages_wait_at_the_upstream_in_a_quorum_queue_if_it_says_so() -> None:
    sites = federated(queue_type="quorum")
    assert queue_arguments(sites)["x-queue-type"] == "quorum"
    sites.publish_there("a", b"one")
    assert sites.bodies_here() == [b"one"]


def test_expired_messages_at_the_upstream_do_not_arrive() -> None:
    sites = federated(message_ttl=5_000)
    sites.network.refusals["there"] = "down"
    sites.network.cut("there")
    sites.publish_there("a", b"old")
    sites.there.clock.now += 6_000
    del sites.network.refusals["there"]
    sites.network.pass_time(5_000)
    sites.publish_there("a", b"new")
    assert sites.bodies_here() == [b"new"]


@pytest.mark.parametrize(("bind_nowait", "answers"), [(False, 1), (True, 0)])
def test_bind_nowait_has_no_answer_to_a_binding(
    monkeypatch: pytest.MonkeyPatch, bind_nowait: bool, answers: int
) -> None:
    sites = federated(bind_nowait=bind_nowait)
    received: list[bytes] = []
    receive = ClientConnection.receive

    def recorded(connection: ClientConnection, data: bytes) -> None:
        received.append(data)
        receive(connection, data)

    monkeypatch.setattr(ClientConnection, "receive", recorded)
    sites.bind("b")
    assert sites.keys_there() == ["a", "b"]
    assert b"".join(received).count(_BIND_OK) == answers


@pytest.mark.parametrize(("mode", "channels"), [("multiple", 2), ("single", 1)])
def test_channel_use_mode_is_the_number_of_channels_at_the_upstream(mode: str, channels: int) -> None:
    sites = federated(channel_use_mode=mode)
    (connection,) = (pair.server for host, pair in sites.network.pairs if host == "there")
    assert len(connection.channels) == channels


@pytest.mark.parametrize(("is_trusted", "expected"), [(True, "guest"), (False, None)])
def test_trust_user_id_keeps_the_user_of_a_message(is_trusted: bool, expected: str | None) -> None:
    sites = federated(trust_user_id=is_trusted)
    sites.publish_there("a", b"one", user_id="guest")
    (answer,) = sites.client_here.ask(methods.BasicGet(queue="q", no_ack=True))
    assert answer.properties is not None
    assert answer.properties.user_id == expected


@pytest.mark.parametrize(("mode", "no_ack"), [("on-confirm", False), ("on-publish", False), ("no-ack", True)])
def test_the_consumer_at_the_upstream_acknowledges_as_the_mode_says(mode: str, no_ack: bool) -> None:
    sites = federated(ack_mode=mode, prefetch_count=7)
    (consumer,) = sites.there.services.vhost.queues[QUEUE].consumers()
    assert (consumer.no_ack, consumer.prefetch) == (no_ack, 0 if no_ack else 7)
    # As in RabbitMQ, the setting consumer-tag is for queues.
    assert consumer.tag.startswith("amq.ctag")


def test_max_hops_0_forwards_nothing_and_makes_no_bindings() -> None:
    sites = federated(max_hops=0)
    assert sites.keys_there() == []
    sites.publish_there("a", b"one")
    assert sites.bodies_here() == []


def test_members_of_a_set_replace_settings_of_their_upstreams() -> None:
    sites = TwoSites().start()
    sites.declare()
    sites.bind("a")
    sites.set_upstream(exchange="y", message_ttl=1_000)
    members = [
        {"upstream": "u", "exchange": "z", "message-ttl": 2_000},
        {"upstream": "u"},
        {"upstream": "none"},
    ]
    sites.apply(SetParameter(vhost="/", component="federation-upstream-set", name="s", value=members))
    sites.apply(SetPolicy(vhost="/", name="p", pattern="^x", definition={"federation-upstream-set": "s"}))
    assert [link.key.upstream_name for link in sites.links.all()] == ["y", "z"]
    vhost = sites.there.services.metadata.vhost("/")
    assert vhost is not None
    times = {name: queue.arguments.get("x-message-ttl") for name, queue in vhost.topology.queues.items()}
    assert times == {"federation: y -> c:x": 1_000, "federation: z -> c:x": 2_000}
    for exchange in ("y", "z"):
        sites.publish_there("a", exchange.encode(), exchange=exchange)
    assert sites.bodies_here() == [b"y", b"z"]


def test_a_pattern_federates_with_the_upstreams_whose_names_it_matches() -> None:
    sites = TwoSites().start()
    sites.declare()
    sites.set_upstream()
    definition = {"federation-upstream-pattern": "^u$"}
    sites.apply(SetPolicy(vhost="/", name="p", pattern="^x", definition=definition))
    assert sites.is_running
    definition = {"federation-upstream-pattern": "^v"}
    sites.apply(SetPolicy(vhost="/", name="p", pattern="^x", definition=definition))
    assert sites.links.all() == []
