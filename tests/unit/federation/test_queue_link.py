"""The link of a federated queue: two brokers in one thread, and consumers at both."""

from tests.unit.federation.capable_broker import capable_broker
from tests.unit.relay.network import Network, endpoint
from tests.unit.session.client import Broker, Client, call, publication

from warren.federation.queue_link import FederatedQueue, QueueLink
from warren.limits_relay import SOURCE_COUNTED_MS
from warren.metadata.federation_definition import Upstream
from warren.metadata.records import QueueRecord
from warren.queues.classic import ClassicQueue
from warren.queues.demand import QueueDemand
from warren.relay.forwarder import AckMode
from warren.relay.link import Link, LinkSettings
from warren.relay.status import LinkKey, LinkKind, LinkState
from warren.session.handshake import HandshakeSettings, Offer
from warren.session.server import Server
from warren.wire import methods
from warren.wire.table import Table

QUEUE = "fq"
URI = "amqp://source"


def live(broker: Broker, name: str = QUEUE) -> ClassicQueue:
    """The queue `name` of `broker`."""
    server: Server = broker.server
    queue = server.vhost_services["/"].vhost.queues[name]
    assert isinstance(queue, ClassicQueue)
    return queue


class Site:
    """A queue of the broker `here` that is federated with that of the broker `source`."""

    def __init__(self, arguments: Table | None = None, **settings: object) -> None:
        self.network = Network(source=capable_broker(), destination=Broker())
        self.there, self.here = self.network.brokers["source"], self.network.brokers["destination"]
        self.client = self.here.client()
        self.client.ask(methods.QueueDeclare(queue=QUEUE, arguments=arguments or {}))
        assert QUEUE in self.here.server.vhost_services["/"].vhost.queues
        self.upstream = Upstream(
            name="u", **{"queue": QUEUE, "consumer_tag": "federation-link-u", **settings}
        )
        self.demand = QueueDemand(live(self.here), self.here.server.later, self.demand_changed)
        record = QueueRecord(
            name=QUEUE, durable=False, auto_delete=False, owner=None, arguments=arguments or {}, user="guest"
        )
        federated = FederatedQueue(
            record=record, upstream=self.upstream, observe=lambda: self.demand, check_rights=lambda: None
        )
        self.plan = QueueLink(federated)
        self.link = Link(
            LinkKey(LinkKind.QUEUE, "/", QUEUE, "u", QUEUE),
            self.plan,
            LinkSettings(
                source=endpoint("source"),
                destination=endpoint("destination"),
                ack_mode=AckMode(self.upstream.ack_mode),
                prefetch_count=self.upstream.prefetch_count,
                reconnect_delay_ms=1000,
            ),
            self.network.dependencies,
        )

    def demand_changed(self) -> None:
        self.plan.demand_changed()

    def start(self) -> "Site":
        self.link.start()
        self.network.exchange()
        assert self.link.state is LinkState.RUNNING, self.network.log
        return self

    def publish(self, count: int, **properties: object) -> None:
        """Publish messages 0, 1 … at the upstream."""
        client = self.there.client()
        client.send(b"".join(publication(QUEUE, b"%d" % number, **properties) for number in range(count)))
        self.network.exchange()

    def consume(self, prefetch: int = 0, **more: object) -> "Consumer":
        return Consumer(self, self.here, prefetch, **more)

    def consumers_there(self) -> list[tuple[str, int, int]]:
        """The tag, the priority and the prefetch of the consumers at the upstream."""
        return [(one.tag, one.priority, one.prefetch) for one in live(self.there).consumers()]  # type: ignore[attr-defined]


class Consumer:
    """A client that consumes the queue of a broker."""

    def __init__(self, site: Site, broker: Broker, prefetch: int, **more: object) -> None:
        self.site = site
        self.client: Client = broker.client()
        if prefetch:
            self.client.ask(methods.BasicQos(prefetch_count=prefetch))
        self.client.send(call(methods.BasicConsume(queue=QUEUE, consumer_tag="c", **more)))
        self.bodies: list[bytes] = []
        self.headers: list[Table | None] = []
        self.tag = 0
        self.receive()

    def receive(self) -> list[bytes]:
        """Receive what there is; returns all bodies so far."""
        self.site.network.exchange()
        for received in self.client.hear():
            if isinstance(received.method, methods.BasicDeliver):
                self.bodies.append(received.body)
                assert received.properties is not None
                self.headers.append(received.properties.headers)
                self.tag = received.method.delivery_tag
        return self.bodies

    def acknowledge(self) -> None:
        """Acknowledge everything."""
        self.client.send(call(methods.BasicAck(delivery_tag=self.tag, multiple=True)))
        self.receive()

    def cancel(self) -> None:
        self.client.send(call(methods.BasicCancel(consumer_tag="c")))
        self.site.network.exchange()


def bodies(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def test_the_queue_is_declared_at_the_upstream_and_not_consumed_without_consumers_here() -> None:
    site = Site({"x-max-priority": 4}).start()
    assert site.there.services.vhost.queues[QUEUE].settings.priority_max == 4
    site.publish(3)
    assert site.consumers_there() == []
    assert live(site.there).message_count == 3
    assert site.link.status().paused_since
    site.consume()
    assert not site.link.status().paused_since


def test_a_queue_with_other_properties_is_used_as_it_is() -> None:
    site = Site({"x-max-priority": 4})
    site.there.client().ask(methods.QueueDeclare(queue=QUEUE, durable=True))
    site.start()
    assert site.consume().receive() == []
    assert len(site.consumers_there()) == 1


def test_a_consumer_here_has_the_link_consume_with_a_negative_priority() -> None:
    site = Site().start()
    consumer = site.consume()
    assert site.consumers_there() == [("federation-link-u", -1, 1)]
    site.publish(100)
    assert consumer.receive() == bodies(100)
    assert live(site.there).message_count == live(site.there).unacked_count == 0
    assert consumer.headers[0] == {
        "x-original-exchange": "",
        "x-original-routing-key": QUEUE,
        "x-received-from": [{"uri": URI, "queue": QUEUE, "redelivered": False, "visit-count": 1}],
    }


def test_the_prefetch_of_a_fast_consumer_grows_to_that_of_the_upstream() -> None:
    site = Site(prefetch_count=50).start()
    site.consume(no_ack=True)
    site.publish(1000)
    assert [one[1:] for one in site.consumers_there()] == [(-1, 50)]


def test_no_consumer_has_the_tag_of_one_that_was_cancelled_with_deliveries() -> None:
    site = Site(prefetch_count=4).start()
    tags = {tag for tag, _, _ in site.consumers_there()}
    consumer = site.consume(no_ack=True)
    for _ in range(3):
        tags |= {tag for tag, _, _ in site.consumers_there()}
        site.publish(4)
        consumer.receive()
    assert tags == {"federation-link-u", "federation-link-u-3"}


def test_a_slow_consumer_has_few_messages_brought_for_each_that_it_acknowledges() -> None:
    site = Site().start()
    consumer = site.consume(prefetch=1)
    site.publish(1000)
    here = live(site.here)
    for _ in range(20):
        assert here.message_count <= 4
        assert here.unacked_count == 1
        consumer.acknowledge()
    assert consumer.receive() == bodies(21)
    assert live(site.there).message_count + live(site.there).unacked_count + here.message_count == 979


def test_a_message_that_has_come_back_to_the_upstream_is_taken_and_no_other_after_it() -> None:
    site = Site().start()
    site.consume(prefetch=1)
    site.publish(1)
    assert site.consumers_there()
    entry = {"uri": URI, "queue": QUEUE, "redelivered": False, "visit-count": 1}
    site.publish(1, headers={"x-received-from": [entry]})
    assert live(site.here).message_count == 1
    assert site.consumers_there() == []


def test_the_end_of_the_last_consumer_returns_what_was_not_forwarded() -> None:
    site = Site().start()
    consumer = site.consume(no_ack=True)
    site.publish(100)
    assert len(consumer.receive()) == 100
    assert site.consumers_there()[0][2] > 1
    # The consumer goes while messages of the upstream are on their way.
    site.there.client().send(b"".join(publication(QUEUE, b"%d" % number) for number in range(100, 120)))
    assert live(site.there).unacked_count > 1
    consumer.client.send(call(methods.BasicCancel(consumer_tag="c")))
    while site.here.turns:
        site.here.turn()
    site.network.exchange()
    assert site.consumers_there() == []
    assert live(site.here).message_count == 0
    assert live(site.there).message_count == 20
    assert live(site.there).unacked_count == 0
    again = site.consume(no_ack=True)
    assert again.receive() == bodies(20, 100)


def test_consumers_of_the_upstream_come_first() -> None:
    site = Site().start()
    away = site.consume(no_ack=True)
    local = Consumer(site, site.there, 5)
    site.publish(8)
    assert local.receive() == bodies(5)
    assert away.receive() == bodies(3, 5)


def test_a_consumer_of_negative_priority_has_nothing_brought() -> None:
    site = Site().start()
    site.publish(5)
    site.consume(arguments={"x-priority": -1})
    assert site.consumers_there() == []
    site.consume(arguments={"x-priority": 0})
    assert len(site.consumers_there()) == 1


def test_a_lost_connection_ends_the_run_and_the_next_forwards_what_is_left() -> None:
    site = Site().start()
    consumer = site.consume(prefetch=1)
    site.publish(10)
    site.network.cut("source")
    assert site.link.state is LinkState.TERMINATED
    site.network.pass_time(1000)
    assert site.link.state is LinkState.RUNNING
    for _ in range(15):
        consumer.acknowledge()
    assert consumer.receive() == bodies(10)
    assert live(site.there).message_count == live(site.there).unacked_count == 0


def test_a_queue_deleted_at_the_upstream_is_declared_again() -> None:
    site = Site().start()
    consumer = site.consume()
    site.there.client().ask(methods.QueueDelete(queue=QUEUE))
    site.network.exchange()
    assert site.link.state is LinkState.TERMINATED
    site.network.pass_time(1000)
    assert site.link.state is LinkState.RUNNING
    site.publish(3)
    assert consumer.receive() == bodies(3)


def test_without_acknowledgements_everything_is_forwarded() -> None:
    site = Site(ack_mode="no-ack").start()
    consumer = site.consume(no_ack=True)
    site.publish(50)
    assert consumer.receive() == bodies(50)
    consumer.cancel()
    assert site.consumers_there() == []


def test_an_upstream_without_priorities_of_consumers_is_refused() -> None:
    site = Site()
    site.there.server.offer = Offer(HandshakeSettings(server_properties={}))
    site.link.start()
    site.network.exchange()
    assert site.link.status().last_error == "source: the broker does not support priorities of consumers"


def test_a_demand_that_changes_while_the_link_is_down_is_followed_when_it_is_up() -> None:
    site = Site()
    consumer = site.consume()
    site.start()
    site.publish(2)
    assert consumer.receive() == bodies(2)


def test_the_messages_that_wait_at_the_upstream_are_counted() -> None:
    site = Site().start()
    site.publish(7)
    site.network.pass_time(SOURCE_COUNTED_MS)
    assert site.link.status().source_ready == 7
