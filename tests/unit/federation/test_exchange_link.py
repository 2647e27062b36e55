"""What the link of a federated exchange leaves at its upstream: after a rename of the cluster, after a change
of the address, and when somebody deletes it there."""

import pytest
from tests.unit.federation.two_sites import TwoSites
from tests.unit.session.client import Broker, call, publication

from warren.limits_relay import FORMER_QUEUE_CHECKED_MS, INTERNAL_EXCHANGE_CHECKED_MS
from warren.relay.status import LinkState
from warren.wire import methods

QUEUE = "federation: x -> c"
RENAMED = "federation: x -> d"


@pytest.fixture
def sites() -> TwoSites:
    """Two brokers whose exchange x is federated, with one binding."""
    sites = TwoSites().start()
    sites.federate()
    sites.declare()
    sites.bind("a")
    return sites


def queues_of(broker: Broker) -> dict[str, int]:
    """The queues of links at `broker`, and how many messages each has."""
    queues = broker.services.vhost.queues
    return {name: queue.message_count for name, queue in queues.items() if " -> " in name}


def test_a_link_begins_anew_under_a_new_name_of_the_cluster(sites: TwoSites) -> None:
    sites.rename_cluster("d")
    assert sites.is_running
    assert queues_of(sites.there) == {RENAMED: 0}
    assert sites.internal_exchanges() == [f"{RENAMED} A"]
    (binding,) = sites.bindings_there()
    assert binding.arguments["x-bound-from"][0]["cluster-name"] == "d"  # type: ignore[index]
    sites.publish_there("a", b"one")
    assert sites.bodies_here() == [b"one"]


def test_what_waits_under_the_old_name_is_forwarded_first(sites: TwoSites) -> None:
    sites.network.refusals["there"] = "down"
    sites.network.cut("there")
    for number in range(5):
        sites.publish_there("a", b"%d" % number)
    sites.rename_cluster("d")
    sites.rename_cluster("e")
    del sites.network.refusals["there"]
    sites.network.pass_time(30_000)
    sites.publish_there("a", b"5")
    sites.network.pass_time(5 * FORMER_QUEUE_CHECKED_MS)
    assert sites.is_running
    assert queues_of(sites.there) == {"federation: x -> e": 0}
    assert sites.internal_exchanges() == ["federation: x -> e A"]
    assert sites.bodies_here() == [b"%d" % number for number in range(6)]


def test_the_old_queue_is_not_deleted_before_all_of_it_is_confirmed(sites: TwoSites) -> None:
    sites.bind("#")
    other = sites.there.client()
    other.ask(methods.BasicQos(prefetch_count=1))
    sites.network.refusals["there"] = "down"
    sites.network.cut("there")
    # Somebody else holds the first message, so that the link goes on with the old queue.
    other.ask(methods.BasicConsume(queue=QUEUE))
    sites.publish_there("a", b"held")
    sites.rename_cluster("d")
    del sites.network.refusals["there"]
    sites.network.pass_time(10_000)
    assert sites.is_running
    # From here on the destination confirms nothing.
    sites.network.hold("")
    sites.publish_there(QUEUE, b"unconfirmed", exchange="")
    sites.network.pass_time(3 * FORMER_QUEUE_CHECKED_MS)
    other.hear()
    other.send(call(methods.BasicAck(delivery_tag=1)))
    other.ask(methods.ChannelClose(reply_code=200, reply_text=""))
    sites.network.pass_time(3 * FORMER_QUEUE_CHECKED_MS)
    assert QUEUE in queues_of(sites.there)
    sites.network.release("")
    sites.network.pass_time(3 * FORMER_QUEUE_CHECKED_MS)
    assert queues_of(sites.there) == {RENAMED: 0}
    assert sites.bodies_here() == [b"unconfirmed"]


def test_what_the_destination_refuses_returns_to_the_old_queue_and_is_not_lost() -> None:
    sites = TwoSites().start()
    sites.federate()
    sites.declare()
    limits = {"x-max-length": 1, "x-overflow": "reject-publish"}
    sites.ask_here(
        methods.QueueDeclare(queue="q", arguments=limits),
        methods.QueueBind(queue="q", exchange="x", routing_key="a"),
    )
    sites.network.refusals["there"] = "down"
    sites.network.cut("there")
    for number in range(5):
        sites.publish_there("a", b"%d" % number)
    sites.rename_cluster("d")
    del sites.network.refusals["there"]
    found = []
    for _ in range(20):
        sites.network.pass_time(10_000)
        found += sites.bodies_here()
    assert sorted(found) == [b"%d" % number for number in range(5)]
    assert queues_of(sites.there) == {RENAMED: 0}


def test_an_interrupted_change_of_the_name_is_continued(sites: TwoSites) -> None:
    sites.network.refusals["there"] = "down"
    sites.network.cut("there")
    for number in range(3_000):
        sites.publish_there("a", b"%d" % number)
    sites.rename_cluster("d")
    del sites.network.refusals["there"]
    for _ in range(4):
        sites.network.pass_time(5_200)
        sites.network.cut("there")
    sites.network.pass_time(30_000)
    assert queues_of(sites.there) == {RENAMED: 0}
    found = sites.bodies_here()
    assert list(dict.fromkeys(found)) == [b"%d" % number for number in range(3_000)]


def test_a_link_removed_while_it_changes_its_name_removes_both_queues(sites: TwoSites) -> None:
    sites.publish_there("a", b"none")
    other = sites.there.client()
    other.send(b"")
    sites.network.refusals["there"] = "down"
    sites.network.cut("there")
    sites.publish_there("a", b"waits")
    # Somebody else consumes from the old queue, so that it cannot be emptied.
    other.ask(methods.BasicConsume(queue=QUEUE))
    sites.rename_cluster("d")
    del sites.network.refusals["there"]
    sites.network.pass_time(30_000)
    assert queues_of(sites.there).keys() == {QUEUE, RENAMED}
    sites.clear_policy()
    assert queues_of(sites.there) == {}
    assert sites.internal_exchanges() == []


def test_a_name_of_the_cluster_that_was_too_long_for_the_upstream_is_forgotten(sites: TwoSites) -> None:
    sites.rename_cluster("long" * 80)
    assert not sites.is_running
    sites.rename_cluster("d")
    assert sites.is_running
    assert queues_of(sites.there) == {RENAMED: 0}


def test_an_upstream_that_is_not_cleaned_up_keeps_the_old_queue() -> None:
    sites = TwoSites().start()
    sites.federate(resource_cleanup_mode="never")
    sites.declare()
    sites.rename_cluster("d")
    assert sites.is_running
    assert queues_of(sites.there).keys() == {QUEUE, RENAMED}


def test_another_address_has_the_old_broker_cleaned_up(sites: TwoSites) -> None:
    elsewhere = sites.network.brokers["elsewhere"] = Broker()
    sites.set_upstream(uri="amqp://elsewhere")
    assert sites.is_running
    assert (queues_of(sites.there), queues_of(elsewhere)) == ({}, {QUEUE: 0})
    assert sites.internal_exchanges() == []
    elsewhere.client().send(publication("a", b"one", exchange="x"))
    sites.network.exchange()
    assert sites.bodies_here() == [b"one"]


@pytest.mark.parametrize("uri", ["amqp://alias", ["amqp://alias", "amqp://there"], "amqp://u:p@there"])
def test_another_address_of_the_same_broker_loses_nothing(sites: TwoSites, uri: object) -> None:
    sites.network.brokers["alias"] = sites.there
    client = sites.client_there
    client.ask(methods.QueueBind(queue=QUEUE, exchange="amq.direct", routing_key="mark"))
    sites.set_upstream(uri=uri)
    assert sites.is_running
    vhost = sites.there.services.metadata.vhost("/")
    assert vhost is not None
    assert vhost.topology.bindings_from("amq.direct")
    assert sites.internal_exchanges() == [f"{QUEUE} B"]


def test_an_address_that_is_not_reached_has_nothing_deleted_and_says_so(sites: TwoSites) -> None:
    sites.set_upstream(uri="amqp://nowhere")
    assert queues_of(sites.there) == {QUEUE: 0}
    (line,) = (line for line in sites.network.log if "torn down" in line)
    assert "what it has declared at amqp://there stays there" in line
    assert "connection refused" in line


def test_an_internal_exchange_that_was_deleted_is_declared_again(sites: TwoSites) -> None:
    sites.client_there.ask(methods.ExchangeDelete(exchange=f"{QUEUE} A"))
    sites.network.exchange()
    assert sites.is_running
    sites.network.pass_time(INTERNAL_EXCHANGE_CHECKED_MS)
    assert sites.link.status().last_error == f"source: the exchange '{QUEUE} A' was deleted"
    sites.network.pass_time(5_000)
    assert sites.is_running
    sites.publish_there("a", b"one")
    assert sites.bodies_here() == [b"one"]


def test_a_link_whose_internal_exchange_exists_goes_on(sites: TwoSites) -> None:
    sites.network.pass_time(10 * INTERNAL_EXCHANGE_CHECKED_MS)
    assert sites.is_running
    assert sites.link.status().counters.restarts == 0
    assert [state for _, state in sites.network.states].count(LinkState.RUNNING) == 1
