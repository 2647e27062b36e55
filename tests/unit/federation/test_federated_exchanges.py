"""Links of federated exchanges: which there are, what they declare at the upstream, and what they forward."""

import pytest
from tests.unit.federation.two_sites import TwoSites
from tests.unit.session.client import call

from warren.errors import AmqpError, CommandInvalid, PreconditionFailed
from warren.limits_relay import LINK_SETTLE_MS
from warren.metadata.commands import RemoveVhost, SetParameter, SetPolicy
from warren.model.coroutine_driver import drive
from warren.relay.status import LinkState
from warren.wire import methods

QUEUE = "federation: x -> c"


@pytest.fixture
def sites() -> TwoSites:
    """Two brokers whose exchange x is federated, with one binding."""
    sites = TwoSites().start()
    sites.federate()
    sites.declare()
    sites.bind("a")
    return sites


def test_a_message_published_at_the_upstream_arrives(sites: TwoSites) -> None:
    sites.publish_there("a", b"one", message_id="m")
    sites.publish_there("b", b"of no interest")
    ((body, headers),) = sites.messages_here()
    assert body == b"one"
    assert headers["x-received-from"] == [
        {"uri": "amqp://there", "exchange": "x", "redelivered": False, "vhost": "/"}
    ]


def test_nothing_is_left_unacknowledged_at_the_upstream(sites: TwoSites) -> None:
    for number in range(10):
        sites.publish_there("a", b"%d" % number)
    assert sites.bodies_here() == [b"%d" % number for number in range(10)]
    queue = sites.there.services.vhost.queues[QUEUE]
    assert (queue.message_count, queue.unacked_count) == (0, 0)


def test_the_queue_and_the_exchanges_are_declared_at_the_upstream() -> None:
    sites = TwoSites().start()
    sites.declare("x.y", "headers", **{"alternate-exchange": "amq.fanout"})
    sites.federate(expires=60_000, message_ttl=5_000, max_hops=3, exchange="z")
    vhost = sites.there.services.metadata.vhost("/")
    assert vhost is not None
    queue = vhost.topology.queues["federation: z -> c:x.y"]
    purpose = {"x-internal-purpose": "federation"}
    assert (queue.durable, queue.auto_delete, queue.owner) == (True, False, None)
    assert queue.arguments == {"x-expires": 60_000, "x-message-ttl": 5_000, **purpose}
    upstream = vhost.topology.exchanges["z"]
    assert (upstream.type, upstream.durable, upstream.arguments) == (
        "headers", True, {"alternate-exchange": "amq.fanout"},
    )  # fmt: skip
    internal = vhost.topology.exchanges["federation: z -> c:x.y A"]
    assert (internal.type, internal.durable, internal.auto_delete, internal.internal) == (
        "x-federation-upstream", True, True, True,
    )  # fmt: skip
    assert internal.arguments == {
        "x-max-hops": 3, "x-downstream-name": "c", "x-downstream-vhost": "/", **purpose,
    }  # fmt: skip


def test_an_exchange_that_exists_at_the_upstream_is_used_as_it_is() -> None:
    sites = TwoSites().start()
    sites.client_there.ask(methods.ExchangeDeclare(exchange="x", type="fanout"))
    sites.federate()
    sites.declare(kind="topic")
    assert sites.is_running
    assert sites.there.services.vhost.router.exchanges["x"].type_name == "fanout"


@pytest.mark.parametrize("answer", [CommandInvalid, PreconditionFailed])
def test_an_upstream_without_the_type_of_exchange_gets_a_fanout(
    monkeypatch: pytest.MonkeyPatch, answer: type[AmqpError]
) -> None:
    from warren.federation.exchange_run import FederationUpstreamExchange

    # RabbitMQ 3.10.8 closes the connection, as Warren does, and 4.3.6 the channel.
    monkeypatch.setattr("warren.routing.types.CommandInvalid", answer)
    monkeypatch.setattr(FederationUpstreamExchange, "type_name", "x-unknown")
    sites = TwoSites().start()
    sites.federate()
    sites.declare()
    sites.bind("a")
    assert sites.is_running
    (name,) = sites.internal_exchanges()
    assert sites.there.services.vhost.router.exchanges[name].type_name == "fanout"
    sites.publish_there("a", b"passed", headers={"x-received-from": [{"cluster-name": "c", "vhost": "/"}]})
    sites.publish_there("a", b"new")
    assert sites.bodies_here() == [b"new"]


def test_bindings_follow_those_of_the_exchange(sites: TwoSites) -> None:
    (binding,) = sites.bindings_there()
    assert binding.destination == f"{QUEUE} A"
    assert binding.arguments["x-bound-from"] == [
        {"cluster-name": "c", "vhost": "/", "exchange": "/:x A", "hops": 1}
    ]
    sites.bind("b")
    sites.bind("b", "other")
    assert sites.keys_there() == ["a", "b"]
    sites.unbind("a")
    sites.unbind("b")
    assert sites.keys_there() == ["b"]
    sites.ask_here(methods.QueueDelete(queue="other"))
    assert sites.keys_there() == []


def test_many_bindings_are_made_and_removed_in_order(sites: TwoSites) -> None:
    keys = [f"k{number:03}" for number in range(250)]
    sites.ask_here(*(methods.QueueBind(queue="q", exchange="x", routing_key=key) for key in keys))
    assert sites.keys_there() == ["a", *keys]
    again = [
        method(queue="q", exchange="x", routing_key=key)
        for key in keys
        for method in (methods.QueueUnbind, methods.QueueBind, methods.QueueUnbind)
    ]
    sites.ask_here(*again)
    assert sites.keys_there() == ["a"]


def test_bindings_that_change_while_the_link_is_down_are_right_afterwards(sites: TwoSites) -> None:
    sites.bind("b")
    sites.network.refusals["there"] = "down"
    sites.network.cut("there")
    assert not sites.is_running
    sites.unbind("a")
    sites.bind("c")
    assert sites.keys_there() == ["a", "b"]
    del sites.network.refusals["there"]
    sites.network.pass_time(60_000)
    assert sites.is_running
    assert sites.keys_there() == ["b", "c"]


def test_messages_of_a_time_without_a_link_arrive_afterwards(sites: TwoSites) -> None:
    sites.network.refusals["there"] = "down"
    sites.network.cut("there")
    sites.publish_there("a", b"meanwhile")
    assert sites.bodies_here() == []
    del sites.network.refusals["there"]
    sites.network.pass_time(60_000)
    assert sites.bodies_here() == [b"meanwhile"]


def test_each_start_has_the_other_internal_exchange(sites: TwoSites) -> None:
    for suffix in "ABAB":
        assert sites.internal_exchanges() == [f"{QUEUE} {suffix}"]
        sites.network.cut("there")
        sites.network.pass_time(60_000)
        assert sites.is_running


@pytest.mark.parametrize("found", ["A", "B", "AB"])
def test_what_an_interrupted_start_has_left_is_replaced(sites: TwoSites, found: str) -> None:
    sites.network.refusals["there"] = "down"
    sites.network.cut("there")
    client = sites.client_there
    for suffix in "AB":
        client.ask(methods.ExchangeDelete(exchange=f"{QUEUE} {suffix}"))
    for suffix in found:
        name = f"{QUEUE} {suffix}"
        client.ask(
            methods.ExchangeDeclare(exchange=name, type="fanout"),
            methods.ExchangeBind(destination=name, source="x", routing_key="stale"),
        )
    del sites.network.refusals["there"]
    sites.network.pass_time(60_000)
    assert sites.is_running
    assert sites.keys_there() == ["a"]
    assert len(sites.internal_exchanges()) == 1
    sites.publish_there("a", b"one")
    assert sites.bodies_here() == [b"one"]


def test_a_link_that_is_removed_removes_what_it_declared(sites: TwoSites) -> None:
    sites.clear_policy()
    assert sites.links.all() == []
    assert sites.internal_exchanges() == []
    assert QUEUE not in sites.there.services.vhost.queues
    assert "x" in sites.there.services.vhost.router.exchanges


def test_a_link_that_is_removed_while_it_waits_connects_once_more_to_remove_what_it_declared(
    sites: TwoSites,
) -> None:
    sites.network.cut("there")
    assert not sites.is_running
    assert sites.internal_exchanges()
    sites.clear_policy()
    assert sites.internal_exchanges() == []
    assert QUEUE not in sites.there.services.vhost.queues


def test_a_link_that_is_removed_while_it_starts_removes_what_it_has_declared_till_then() -> None:
    sites = TwoSites().start()
    sites.federate()
    sites.declare()
    assert sites.is_running
    sites.network.cut("there")
    sites.network.hold("there")
    sites.network.pass_time(6_000)
    assert sites.link.state is LinkState.STARTING
    sites.clear_policy()
    sites.network.release("there")
    assert sites.internal_exchanges() == []
    assert QUEUE not in sites.there.services.vhost.queues


def test_a_removed_link_whose_upstream_cannot_be_reached_says_what_it_leaves(sites: TwoSites) -> None:
    sites.network.refusals["there"] = "down"
    sites.network.cut("there")
    sites.clear_policy()
    (line,) = (line for line in sites.network.log if "torn down" in line)
    assert line.endswith("what it has at the upstream stays there: amqp://there: down")
    # A new link of the same name need not wait.
    del sites.network.refusals["there"]
    sites.apply(SetPolicy(vhost="/", name="p", pattern="^x", definition={"federation-upstream": "u"}))
    assert sites.is_running


def test_a_removed_link_whose_upstream_says_nothing_does_not_disturb_the_next(sites: TwoSites) -> None:
    sites.network.cut("there")
    sites.network.hold("there")
    sites.clear_policy()
    sites.apply(SetPolicy(vhost="/", name="p", pattern="^x", definition={"federation-upstream": "u"}))
    assert sites.link.state is LinkState.STOPPED
    sites.network.pass_time(LINK_SETTLE_MS)
    sites.network.release("there")
    assert sites.is_running
    sites.publish_there("a", b"one")
    assert sites.bodies_here() == [b"one"]


def test_unless_its_upstream_says_never() -> None:
    sites = TwoSites().start()
    sites.federate(resource_cleanup_mode="never")
    sites.declare()
    sites.clear_policy()
    assert sites.internal_exchanges() == [f"{QUEUE} A"]
    assert QUEUE in sites.there.services.vhost.queues


def test_a_link_whose_upstream_has_changed_continues_with_its_queue(sites: TwoSites) -> None:
    client = sites.client_there
    client.ask(methods.QueueBind(queue=QUEUE, exchange="amq.direct", routing_key="mark"))
    sites.set_upstream(prefetch_count=5)
    assert sites.is_running
    assert sites.link.status().prefetch_count == 5
    client.send(call(methods.BasicPublish(exchange="amq.direct", routing_key="mark")))
    assert sites.there.services.metadata.vhost("/").topology.bindings_from("amq.direct")  # type: ignore[union-attr]


def test_a_link_is_not_disturbed_by_what_does_not_concern_it(sites: TwoSites) -> None:
    before = sites.link
    sites.apply(SetPolicy(vhost="/", name="q", pattern="^none$", definition={"max-length": 1}))
    sites.apply(SetParameter(vhost="/", component="federation-upstream", name="v", value={"uri": "amqp://n"}))
    assert sites.link is before


def test_links_exist_for_the_exchanges_that_the_policy_matches() -> None:
    sites = TwoSites().start()
    for name in ("x", "xy", "other"):
        sites.declare(name)
    sites.declare("x.internal")
    sites.federate("^x")
    assert [link.key.name for link in sites.links.all()] == ["x", "x.internal", "xy"]
    sites.declare("x2")
    sites.delete_exchange("xy")
    assert [link.key.name for link in sites.links.all()] == ["x", "x.internal", "x2"]
    sites.federate("^o")
    assert [link.key.name for link in sites.links.all()] == ["other"]
    sites.clear_upstream()
    assert sites.links.all() == []


def test_internal_exchanges_are_not_federated() -> None:
    sites = TwoSites().start()
    sites.federate()
    sites.ask_here(methods.ExchangeDeclare(exchange="x", internal=True))
    assert sites.links.all() == []


def test_the_links_of_a_vhost_that_is_removed_go(sites: TwoSites) -> None:
    sites.apply(RemoveVhost(name="/"))
    assert sites.links.all() == []


def test_a_set_has_a_link_for_each_upstream() -> None:
    sites = TwoSites().start()
    sites.declare()
    for name in ("one", "two"):
        value = {"uri": f"amqp://{name}"}
        sites.apply(SetParameter(vhost="/", component="federation-upstream", name=name, value=value))
    sites.apply(SetPolicy(vhost="/", name="p", pattern="^x", definition={"federation-upstream-set": "all"}))
    assert [link.key.upstream for link in sites.links.all()] == ["one", "two"]
    assert [link.status().state for link in sites.links.all()] == [LinkState.TERMINATED] * 2


def test_links_beyond_the_limit_are_reported_and_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.federation.federated_exchanges.FEDERATION_LINKS_MAX", 2)
    sites = TwoSites().start()
    sites.federate()
    for name in ("x1", "x2", "x3"):
        sites.declare(name)
    assert [link.key.name for link in sites.links.all()] == ["x1", "x2"]
    assert sites.network.log == [
        "error: exchange 'x3' of vhost '/' is not federated with upstream 'u': there are 2 links already"
    ]


def test_an_upstream_that_refuses_a_binding_ends_the_run_with_its_reason(sites: TwoSites) -> None:
    sites.client_there.ask(methods.ExchangeDelete(exchange="x"))
    sites.network.exchange()
    sites.bind("b")
    status = sites.link.status()
    assert "NOT_FOUND - no exchange 'x' in vhost '/'" in status.last_error
    sites.network.pass_time(60_000)
    assert sites.is_running
    assert sites.keys_there() == ["a", "b"]


@pytest.mark.parametrize(
    "settings",
    [
        {"channel_use_mode": "single"},
        {"bind_nowait": True},
        {"bind_nowait": True, "channel_use_mode": "single"},
        {"ack_mode": "on-publish"},
        {"ack_mode": "no-ack"},
        {"prefetch_count": 0},
    ],
)
def test_messages_and_bindings_pass_with_any_settings(settings: dict[str, object]) -> None:
    sites = TwoSites().start()
    sites.declare()
    sites.bind("a")
    sites.federate(**settings)
    sites.bind("b")
    sites.unbind("a")
    assert sites.keys_there() == ["b"]
    for number in range(5):
        sites.publish_there("b", b"%d" % number)
    assert sites.bodies_here() == [b"%d" % number for number in range(5)]
    assert sites.there.services.vhost.queues[QUEUE].message_count == 0


def test_a_refused_binding_ends_the_run_also_if_nothing_waits_for_its_answer() -> None:
    sites = TwoSites().start()
    sites.declare()
    sites.federate(bind_nowait=True)
    sites.client_there.ask(methods.ExchangeDelete(exchange="x"))
    sites.network.exchange()
    sites.bind("a")
    assert "NOT_FOUND" in sites.link.status().last_error
    sites.network.pass_time(60_000)
    assert sites.keys_there() == ["a"]


def test_a_definition_that_cannot_be_used_is_the_reason_of_the_link() -> None:
    sites = TwoSites().start()
    sites.declare()
    sites.federate(uri=[])
    status = sites.link.status()
    assert status.state is LinkState.TERMINATED
    assert "uri has no address" in status.reason


def test_a_link_shows_the_address_as_it_was_written_also_while_it_cannot_connect(sites: TwoSites) -> None:
    assert sites.link.status().source_uri == "amqp://there"
    sites.network.refusals["there"] = "down"
    sites.set_upstream(uri=["amqp://guest:secret@there/%2f", "amqp://nowhere"])
    assert not sites.is_running
    assert sites.link.status().source_uri == "amqp://there/%2f"


def test_a_name_that_is_too_long_for_the_upstream_is_the_reason_of_the_link() -> None:
    sites = TwoSites().start()
    sites.declare("x" * 250)
    sites.federate()
    status = sites.link.status()
    assert status.state is LinkState.TERMINATED
    assert status.reason.endswith("have names of more than 255 bytes"), status.reason
    sites.clear_policy()
    assert [line for line in sites.network.log if "unexpected" in line or "torn down" in line] == []


def test_bindings_made_while_the_link_starts_are_not_missed() -> None:
    sites = TwoSites().start()
    sites.declare()
    for number in range(150):
        sites.bind(f"k{number}")
    sites.set_upstream()
    # The link stops between two exchanges of bytes, and bindings change meanwhile.
    definition = {"federation-upstream": "u"}
    sites.here.proposals.apply(SetPolicy(vhost="/", name="p", pattern="^x", definition=definition))
    for number in range(60):
        for _, pair in list(sites.network.pairs):
            pair.exchange()
        while sites.here.turns:
            sites.here.turn()
        while sites.there.turns:
            sites.there.turn()
        sites.client_here.ask(methods.QueueBind(queue="q", exchange="x", routing_key=f"n{number}"))
        sites.client_here.ask(methods.QueueUnbind(queue="q", exchange="x", routing_key=f"k{number}"))
    sites.network.exchange()
    expected = [f"k{number}" for number in range(60, 150)] + [f"n{number}" for number in range(60)]
    assert sites.is_running
    assert sorted(sites.keys_there()) == sorted(expected)


def test_the_stop_of_the_node_leaves_the_queue_at_the_upstream(sites: TwoSites) -> None:
    sites.federated.stop()
    drive(sites.links.stop())
    sites.network.exchange()
    assert sites.network.pairs == []
    sites.publish_there("a", b"meanwhile")
    assert sites.there.services.vhost.queues[QUEUE].message_count == 1
    assert sites.internal_exchanges() == [f"{QUEUE} A"]
