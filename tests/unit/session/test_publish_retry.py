"""Publishes on a node that applies late what another one was answered: none is lost that names a queue."""

import pytest
from tests.unit.cluster.two_nodes import TwoNodes
from tests.unit.session.client import Client, call, publication

from warren.metadata.commands import Bind, DeclareExchange, DeclareQueue
from warren.wire import methods

QUEUE, OTHER, EXCHANGE = "a.queue", "b.queue", "a.exchange"
STREAM = (("x-queue-type", "stream"),)


@pytest.fixture
def cluster() -> TwoNodes:
    """Two nodes, of which each applies what the other one proposes only when it must."""
    cluster = TwoNodes()
    cluster.is_prompt = False
    return cluster


def declared(cluster: TwoNodes, *names: str, arguments: object = ()) -> Client:
    """A client of b in confirm mode; one of a has declared the queues `names`, of which b knows nothing."""
    client = cluster.client(cluster.b)
    client.ask(methods.ConfirmSelect())
    for name in names:
        command = DeclareQueue(vhost="/", name=name, durable=True, arguments=dict(arguments))  # type: ignore[call-overload]
        cluster.apply(command, "guest", cluster.a)
    assert not any(name in cluster.b.services.vhost.queues for name in names)
    return client


def said(client: Client) -> list[str]:
    return [f"{one.method.name} {getattr(one.method, 'delivery_tag', '')}".strip() for one in client.hear()]


def bodies(cluster: TwoNodes, name: str) -> list[bytes]:
    node = cluster.a if name.startswith("a") else cluster.b
    return [peeked.message.body for peeked in node.queue(name).peek(0, 9)]


@pytest.mark.parametrize("name", [QUEUE, OTHER])
@pytest.mark.parametrize("arguments", [(), STREAM], ids=["classic", "stream"])
def test_what_is_published_to_a_queue_that_another_node_has_just_declared_is_there(
    cluster: TwoNodes, name: str, arguments: object
) -> None:
    client = declared(cluster, name, arguments=arguments)
    client.send(*(publication(name, b"%d" % number, delivery_mode=2) for number in range(3)))
    assert client.hear() == []
    cluster.run()
    assert bodies(cluster, name) == [b"0", b"1", b"2"]
    assert said(client)[-1] == "basic.ack 3"


def test_a_message_without_confirms_is_there_as_well(cluster: TwoNodes) -> None:
    declared(cluster, QUEUE)
    client = cluster.client(cluster.b)
    client.send(publication(QUEUE, b""), call(methods.ConnectionClose(200, "", 0, 0), 0))
    assert client.hear() == []
    cluster.run()
    assert client.names() == ["connection.close-ok"]
    assert bodies(cluster, QUEUE) == [b""]


def test_confirms_of_earlier_publishes_do_not_wait_for_it(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.apply(DeclareQueue(vhost="/", name="b.known", durable=True), "guest", cluster.b)
    cluster.apply(DeclareQueue(vhost="/", name=QUEUE, durable=True), "guest", cluster.a)
    client.send(publication("b.known", b"0"), publication(QUEUE, b"1"), publication("b.known", b"2"))
    cluster.b.clock.turn.begin()
    assert said(client) == ["basic.ack 1"]
    cluster.run()
    assert said(client)[-1] == "basic.ack 3"
    assert bodies(cluster, QUEUE) == [b"1"]
    assert bodies(cluster, "b.known") == [b"0", b"2"]


def test_a_mandatory_message_is_not_returned_for_a_binding_that_another_node_has_just_made(
    cluster: TwoNodes,
) -> None:
    client = declared(cluster)
    cluster.apply(DeclareExchange(vhost="/", name=EXCHANGE, type="direct"), "guest", cluster.b)
    cluster.apply(DeclareQueue(vhost="/", name=OTHER, durable=True), "guest", cluster.b)
    cluster.apply(Bind(vhost="/", source=EXCHANGE, destination=OTHER, routing_key="k"), "guest", cluster.a)
    client.send(publication("k", b"one", exchange=EXCHANGE, mandatory=True))
    cluster.run()
    assert said(client) == ["basic.ack 1"]
    assert bodies(cluster, OTHER) == [b"one"]


def test_what_is_for_no_queue_at_all_is_returned_and_confirmed_once_that_is_known(cluster: TwoNodes) -> None:
    client = declared(cluster)
    client.send(publication("nowhere", b"one", mandatory=True), publication("nowhere", b"two"))
    assert client.hear() == []
    cluster.run()
    assert said(client) == ["basic.return", "basic.ack 2"]
    vhost = cluster.b.services.vhost
    assert (vhost.published, vhost.returned, vhost.dropped) == (2, 1, 1)


def test_a_message_that_no_binding_takes_waits_for_nothing(cluster: TwoNodes) -> None:
    client = declared(cluster)
    client.send(publication("k", b"one", exchange="amq.topic"))
    assert said(client) == ["basic.ack 1"]


def test_a_message_that_waits_is_counted_once(cluster: TwoNodes) -> None:
    client = declared(cluster, OTHER)
    client.send(publication(OTHER, b"one"))
    cluster.run()
    vhost = cluster.b.services.vhost
    default = vhost.router.exchanges[""]
    assert (vhost.published, vhost.dropped) == (1, 0)
    assert (default.published_in, default.published_out) == (1, 1)
    assert bodies(cluster, OTHER) == [b"one"]


def test_without_a_majority_a_message_for_a_queue_that_is_not_known_is_refused(cluster: TwoNodes) -> None:
    client = declared(cluster, QUEUE)
    cluster.has_majority = False
    client.send(publication(QUEUE, b"one", mandatory=True), publication(QUEUE, b"two"))
    cluster.run()
    assert said(client) == ["basic.return", "basic.nack 2"]


def test_a_publish_that_had_to_wait_for_its_permission_waits_once(cluster: TwoNodes) -> None:
    client = cluster.client(cluster.b)
    client.ask(methods.ConfirmSelect())
    cluster.apply(DeclareExchange(vhost="/", name=EXCHANGE, type="fanout"), "guest", cluster.a)
    client.send(publication("k", b"one", exchange=EXCHANGE, mandatory=True))
    cluster.run()
    assert said(client) == ["basic.return", "basic.ack 1"]


def test_a_channel_that_ends_while_its_message_waits_holds_nothing(cluster: TwoNodes) -> None:
    client = declared(cluster, QUEUE)
    client.send(publication(QUEUE, b"one"))
    assert client.connection.throttle.held_size
    client.connection.disconnect("over")
    assert client.connection.throttle.held_size == 0
    cluster.run()
    assert client.names() == ["connection.close"]


def test_a_transaction_publishes_to_a_queue_that_another_node_has_just_declared(cluster: TwoNodes) -> None:
    declared(cluster, QUEUE)
    client = cluster.client(cluster.b)
    client.ask(methods.TxSelect())
    client.send(publication(QUEUE, b"one"), publication(QUEUE, b"two"), call(methods.TxCommit()))
    cluster.run()
    assert client.names() == ["tx.commit-ok"]
    assert bodies(cluster, QUEUE) == [b"one", b"two"]
