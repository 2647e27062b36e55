"""Links of federated queues: which there are by policies and upstreams, and their common demand."""

import pytest
from tests.unit.federation.capable_broker import capable_broker
from tests.unit.relay.network import Network
from tests.unit.session.client import Broker, Client, call, publication

from warren.federation.federated_exchanges import FederationDependencies
from warren.federation.federated_queues import FederatedQueues
from warren.metadata.commands import ClearParameter, ClearPolicy, MetadataCommand, SetParameter, SetPolicy
from warren.queues.vhost_queue import VhostQueue
from warren.relay.links import Links
from warren.relay.status import LinkState
from warren.wire import methods


class Sites:
    """A broker `here` that federates queues with the brokers `first` and `second`."""

    def __init__(self) -> None:
        self.here, self.first, self.second = Broker(), capable_broker(), capable_broker()
        self.network = Network(first=self.first, second=self.second, **{"": self.here})
        self.links = Links("here")
        self.federated = FederatedQueues(
            FederationDependencies(
                metadata=self.here.services.metadata,
                links=self.links,
                link=self.network.dependencies,
                later=self.here.turns.append,
                cluster_name=lambda: "c",
            ),
            self.find,
        )
        self.client: Client = self.here.client()

    def find(self, vhost: str, name: str) -> VhostQueue | None:
        services = self.here.server.vhost_services.get(vhost)
        return None if services is None else services.vhost.queues.get(name)

    def start(self) -> "Sites":
        self.federated.start()
        self.network.exchange()
        return self

    def federate(self, pattern: str = "^fq", **definition: object) -> None:
        for name in ("first", "second"):
            self.set_upstream(name)
        definition = definition or {"federation-upstream-set": "all"}
        self.apply(SetPolicy(vhost="/", name="p", pattern=pattern, definition=definition))

    def set_upstream(self, name: str, **settings: object) -> None:
        value = {"uri": f"amqp://{name}", **settings}
        self.apply(SetParameter(vhost="/", component="federation-upstream", name=name, value=value))

    def apply(self, command: MetadataCommand) -> None:
        self.here.proposals.apply(command)
        self.network.exchange()

    def declare(self, name: str = "fq", **more: object) -> None:
        self.client.ask(methods.QueueDeclare(queue=name, **more))
        self.network.exchange()

    def consume(self, name: str = "fq") -> None:
        self.client.ask(methods.BasicConsume(queue=name, consumer_tag=name, no_ack=True))
        self.network.exchange()

    def publish(self, broker: Broker, *bodies: bytes) -> None:
        broker.client().send(b"".join(publication("fq", body) for body in bodies))
        self.network.exchange()

    def received(self) -> list[bytes]:
        self.network.exchange()
        return self.client.bodies()

    def running(self) -> list[tuple[str, str, str]]:
        """The queue, the upstream and the name there of each link that runs."""
        found = [(link.key.name, link.key.upstream, link.key.upstream_name) for link in self.links.all()]
        assert all(link.state is LinkState.RUNNING for link in self.links.all()), self.network.log
        return found


BOTH = [("fq", "first", "fq"), ("fq", "second", "fq")]


@pytest.fixture
def sites() -> Sites:
    sites = Sites().start()
    sites.federate()
    sites.declare()
    return sites


def test_a_queue_that_matches_has_a_link_for_each_upstream(sites: Sites) -> None:
    sites.declare("other")
    assert sites.running() == BOTH
    assert "fq" in sites.first.services.vhost.queues
    assert "other" not in sites.first.services.vhost.queues


def test_links_are_the_same_whether_queue_policy_or_upstreams_come_first() -> None:
    sites = Sites()
    sites.declare()
    sites.federate()
    sites.start()
    assert sites.running() == BOTH
    late = Sites().start()
    late.declare()
    late.apply(SetPolicy(vhost="/", name="p", pattern="^fq", definition={"federation-upstream": "first"}))
    assert late.running() == []
    late.set_upstream("first")
    assert late.running() == BOTH[:1]


def test_a_consumer_gets_the_messages_of_all_upstreams(sites: Sites) -> None:
    sites.publish(sites.first, b"a1", b"a2", b"a3")
    sites.publish(sites.second, b"b1", b"b2", b"b3")
    assert sites.received() == []
    sites.consume()
    assert sorted(sites.received()) == [b"a1", b"a2", b"a3", b"b1", b"b2", b"b3"]
    sites.publish(sites.first, b"a4")
    sites.publish(sites.second, b"b4")
    assert sorted(sites.received()) == [b"a4", b"b4"]


def test_a_policy_that_is_cleared_stops_the_links_and_leaves_the_queues(sites: Sites) -> None:
    sites.apply(ClearPolicy(vhost="/", name="p"))
    assert sites.running() == []
    assert "fq" in sites.first.services.vhost.queues
    queue = sites.here.services.vhost.queues["fq"]
    assert queue.demand_listener is None
    sites.publish(sites.first, b"stays")
    sites.consume()
    assert sites.received() == []


def test_an_upstream_that_is_cleared_stops_its_link_alone(sites: Sites) -> None:
    sites.apply(ClearParameter(vhost="/", component="federation-upstream", name="first"))
    assert sites.running() == BOTH[1:]
    sites.consume()
    sites.publish(sites.second, b"b")
    assert sites.received() == [b"b"]


def test_an_upstream_that_is_changed_replaces_its_link(sites: Sites) -> None:
    sites.consume()
    sites.set_upstream("first", queue="elsewhere", **{"consumer-tag": "t"})
    assert sites.running() == [("fq", "first", "elsewhere"), BOTH[1]]
    (consumer,) = sites.first.services.vhost.queues["elsewhere"].consumers()
    assert consumer.tag == "t"
    assert not list(sites.first.services.vhost.queues["fq"].consumers())
    sites.first.client().send(publication("elsewhere", b"e"))
    assert sites.received() == [b"e"]


def test_a_change_of_something_else_leaves_the_links_alone(sites: Sites) -> None:
    before = sites.links.all()
    sites.apply(SetPolicy(vhost="/", name="q", pattern="^none", definition={"max-length": 1}))
    sites.set_upstream("first")
    assert sites.links.all() == before


def test_a_deleted_queue_has_no_links_and_one_declared_again_has(sites: Sites) -> None:
    sites.client.ask(methods.QueueDelete(queue="fq"))
    sites.network.exchange()
    assert sites.running() == []
    sites.declare()
    assert sites.running() == BOTH
    sites.publish(sites.first, b"m")
    sites.consume()
    assert sites.received() == [b"m"]


def test_exclusive_queues_are_federated_and_not_exclusive_at_the_upstream(sites: Sites) -> None:
    sites.declare("fq.exclusive", exclusive=True)
    assert {name for name, _, _ in sites.running()} == {"fq", "fq.exclusive"}
    assert sites.first.services.vhost.queues["fq.exclusive"].owner is None


def test_a_live_queue_that_is_replaced_is_observed_by_the_next_run(sites: Sites) -> None:
    """As after a restart of the virtual host, which closes the connections of the links."""
    del sites.here.services.vhost.queues["fq"]
    sites.network.cut("first")
    sites.network.pass_time(5000)
    (link, _) = sites.links.all()
    assert link.status().last_error == "destination: no queue 'fq' in vhost '/'"
    # The metadata have it, and a new live queue is made of them.
    from warren.model.arguments import DEFAULT_SETTINGS
    from warren.queues.classic import ClassicQueue

    vhost = sites.here.services.vhost
    new = ClassicQueue("fq", "/", vhost, DEFAULT_SETTINGS)
    vhost.queues["fq"] = new
    sites.network.pass_time(10_000)
    assert link.state is LinkState.RUNNING
    assert new.demand_listener is not None


def test_nothing_is_followed_after_a_stop(sites: Sites) -> None:
    sites.federated.stop()
    sites.declare("fq.later")
    assert sites.running() == BOTH
    sites.client.send(call(methods.QueueDelete(queue="fq.later")))
