"""The counters of a channel, its virtual host, the queue and the exchange are exact."""

from tests.unit.session.client import Broker, Client, call, publication

from warren.model.counters import Counters
from warren.queues.classic import ClassicQueue
from warren.wire import methods

NAMES = (
    "acknowledged", "confirmed", "delivered", "delivered_no_ack", "dropped", "got", "got_empty",
    "got_no_ack", "published", "redelivered", "returned",
)  # fmt: skip


def counted(*counters: Counters) -> dict[str, int]:
    """The counters that are not 0, of all objects together."""
    sums = {name: sum(getattr(one, name) for one in counters) for name in NAMES}
    return {name: count for name, count in sums.items() if count}


class Node:
    """A broker with a queue, and one channel of a client."""

    def __init__(self, **arguments: object) -> None:
        self.broker = Broker()
        self.client: Client = self.broker.client()
        self.client.ask(methods.QueueDeclare(queue="q", arguments=arguments))

    @property
    def queue(self) -> ClassicQueue:
        return self.broker.services.vhost.queues["q"]

    def counts(self) -> dict[str, int]:
        """The counters of the only channel, which equal those of the virtual host."""
        (connection,) = self.broker.server.connections
        channel = connection.channels[1]
        counts = counted(channel.publisher_counters, channel.subscriber)
        assert counts == counted(self.broker.services.vhost)
        return counts

    def exchange(self, name: str) -> tuple[int, int]:
        exchange = self.broker.services.vhost.router.exchanges[name]
        return exchange.published_in, exchange.published_out


def test_publishes_are_counted_at_the_exchange_and_at_the_queue() -> None:
    node = Node()
    node.client.ask(methods.QueueDeclare(queue="r"))
    for name in "qr":
        node.client.ask(methods.QueueBind(queue=name, exchange="amq.fanout"))
    node.client.send(*(publication("q", b"a") for _ in range(3)))
    node.client.send(*(publication("", b"b", exchange="amq.fanout") for _ in range(2)))
    node.client.send(publication("nobody", b"c"), publication("nobody", b"d", mandatory=True))
    assert node.counts() == {"published": 7, "dropped": 1, "returned": 1}
    assert (node.exchange(""), node.exchange("amq.fanout")) == ((5, 3), (2, 4))
    assert node.queue.published_count == 5


def test_a_message_to_several_queues_is_counted_once_as_published_and_once_per_queue() -> None:
    node = Node()
    node.client.ask(methods.QueueDeclare(queue="r"))
    node.client.send(publication("q", b"a", headers={"CC": ["r"]}))
    assert node.counts() == {"published": 1}
    assert node.exchange("") == (1, 2)


def test_confirms_are_counted_and_nacks_are_not() -> None:
    node = Node(**{"x-max-length": 2, "x-overflow": "reject-publish"})
    node.client.ask(methods.ConfirmSelect())
    node.client.send(*(publication("q", b"a") for _ in range(5)))
    node.client.hear()
    assert node.counts() == {"published": 5, "confirmed": 2}


def test_deliveries_are_counted_by_acknowledgement_mode() -> None:
    node = Node()
    node.client.ask(methods.BasicConsume(queue="q", consumer_tag="c"))
    node.client.send(*(publication("q", b"a") for _ in range(4)), call(methods.BasicNack(1, False, True)))
    node.client.send(call(methods.BasicAck(3, True)), call(methods.BasicReject(4, False)))
    assert node.counts() == {"published": 4, "delivered": 5, "redelivered": 1, "acknowledged": 2}
    queue = node.queue
    assert (queue.delivered_count, queue.redelivered_count, queue.acknowledged_count) == (5, 1, 2)
    node.client.ask(methods.BasicCancel(consumer_tag="c"))
    node.client.send(*(publication("q", b"b") for _ in range(2)))
    node.client.ask(methods.BasicConsume(queue="q", consumer_tag="d", no_ack=True))
    node.client.send(publication("q", b"c"))
    assert node.counts()["delivered_no_ack"] == queue.delivered_no_ack_count == 3


def test_gets_are_counted_by_acknowledgement_mode_and_empty_results() -> None:
    node = Node()
    node.client.send(publication("q", b"a"), publication("q", b"b"))
    node.client.send(call(methods.BasicGet(queue="q")), call(methods.BasicNack(1, False, True)))
    node.client.send(*(call(methods.BasicGet(queue="q", no_ack=True)) for _ in range(3)))
    assert node.counts() == {"published": 2, "got": 1, "got_no_ack": 2, "got_empty": 1, "redelivered": 1}
    queue = node.queue
    assert (queue.got_count, queue.got_no_ack_count, queue.got_empty_count) == (1, 2, 1)
    assert (queue.redelivered_count, queue.acknowledged_count, queue.unacked_count) == (1, 0, 0)


def test_a_transaction_is_counted_at_commit() -> None:
    node = Node()
    node.client.ask(methods.TxSelect())
    node.client.send(publication("q", b"a"), publication("nobody", b"b"))
    assert node.counts() == {}
    (connection,) = node.broker.server.connections
    assert connection.channels[1].uncommitted == (2, 0)
    node.client.ask(methods.TxCommit())
    assert node.counts() == {"published": 2, "dropped": 1}


def test_dead_letters_are_not_counted_as_published_by_clients() -> None:
    node = Node()
    node.client.ask(
        methods.QueueDeclare(
            queue="source",
            arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-max-length": 1},
        )
    )
    node.client.send(publication("q", b"a"), *(publication("source", b"b") for _ in range(3)))
    assert (node.queue.published_count, node.queue.broker_published_count) == (3, 2)
    assert node.counts() == {"published": 4}


def test_the_sampler_is_notified_once_of_each_active_object() -> None:
    node = Node()
    node.client.ask(methods.QueueDeclare(queue="idle"))
    vhost, server = node.broker.services.vhost, node.broker.server
    vhost.take_dirty()
    (moved,) = server.take_dirty()
    moved.is_dirty = False
    node.client.send(publication("q", b"a"), publication("q", b"b"))
    assert vhost.take_dirty() == [node.queue]
    assert server.take_dirty() == [moved]
    node.client.send(publication("q", b"c"))
    assert vhost.take_dirty() == []
    node.queue.is_dirty = False
    node.client.send(publication("q", b"c"))
    assert vhost.take_dirty() == [node.queue]


def test_closed_objects_are_not_sampled() -> None:
    node = Node()
    node.client.send(publication("q", b"a"))
    node.client.ask(methods.QueueDelete(queue="q"))
    assert node.broker.services.vhost.take_dirty() == []
    node.client.send(call(methods.ConnectionClose(200, "", 0, 0), channel=0))
    server = node.broker.server
    assert server.take_dirty() == []
    assert (server.connections_opened_count, server.connections_closed_count) == (1, 1)
    assert (server.channels_opened_count, server.channels_closed_count) == (1, 1)
