"""Clients of a node that applies late what the other one was answered: nothing is refused that exists."""

import pytest
from tests.unit.cluster.two_nodes import TwoNodes
from tests.unit.session.client import Client, call, publication

from warren.metadata.commands import Bind, DeclareExchange, DeclareQueue, DeleteQueue, SetPermissions
from warren.wire import methods
from warren.wire.method import Method

QUEUE, OTHER, EXCHANGE = "a.queue", "b.queue", "a.exchange"
NOT_FOUND = "NOT_FOUND - no queue 'a.queue' in vhost '/'"
TIMED_OUT = "because the metadata store operation timed out"

LOOKUPS: list[tuple[Method, str]] = [
    (methods.QueueDeclare(queue=QUEUE, passive=True), "queue.declare-ok"),
    (methods.QueueBind(queue=QUEUE, exchange="amq.direct", routing_key="k"), "queue.bind-ok"),
    (methods.QueueBind(queue=OTHER, exchange=EXCHANGE, routing_key="k"), "queue.bind-ok"),
    (methods.QueuePurge(queue=QUEUE), "queue.purge-ok"),
    (methods.QueuePurge(queue=OTHER), "queue.purge-ok"),
    (methods.BasicConsume(queue=QUEUE, consumer_tag="t"), "basic.consume-ok"),
    (methods.BasicConsume(queue=OTHER, consumer_tag="t"), "basic.consume-ok"),
    (methods.BasicGet(queue=QUEUE), "basic.get-empty"),
    (methods.BasicGet(queue=OTHER), "basic.get-empty"),
    (methods.ExchangeDeclare(exchange=EXCHANGE, type="fanout", passive=True), "exchange.declare-ok"),
    (methods.ExchangeBind(destination=EXCHANGE, source="amq.direct", routing_key="k"), "exchange.bind-ok"),
    (methods.ExchangeBind(destination="amq.direct", source=EXCHANGE, routing_key="k"), "exchange.bind-ok"),
]
MISSING: list[tuple[Method, str]] = [
    (methods.QueueDeclare(queue=QUEUE, passive=True), f"no queue '{QUEUE}' in vhost '/'"),
    (methods.QueueBind(queue=QUEUE, exchange="amq.direct"), f"no queue '{QUEUE}' in vhost '/'"),
    (methods.QueuePurge(queue=QUEUE), f"no queue '{QUEUE}' in vhost '/'"),
    (methods.BasicConsume(queue=QUEUE, consumer_tag="t"), f"no queue '{QUEUE}' in vhost '/'"),
    (methods.BasicGet(queue=QUEUE), f"no queue '{QUEUE}' in vhost '/'"),
    (methods.ExchangeDeclare(exchange=EXCHANGE, type="fanout", passive=True), f"no exchange '{EXCHANGE}'"),
    (methods.ExchangeBind(destination="amq.direct", source=EXCHANGE), f"no exchange '{EXCHANGE}'"),
]


@pytest.fixture
def cluster() -> TwoNodes:
    """Two nodes, of which each applies what the other one proposes only when it must."""
    cluster = TwoNodes()
    cluster.is_prompt = False
    return cluster


def declared(cluster: TwoNodes) -> Client:
    """A client of b; one of a has declared queues of both homes and an exchange."""
    for command in (
        DeclareQueue(vhost="/", name=QUEUE, durable=True),
        DeclareQueue(vhost="/", name=OTHER, durable=True),
        DeclareExchange(vhost="/", name=EXCHANGE, type="fanout"),
    ):
        cluster.apply(command, "guest", cluster.a)
    return cluster.client(cluster.b)


def names(received: list[object]) -> list[str]:
    return [one.method.name for one in received]  # type: ignore[attr-defined]


def closed(received: list[object]) -> str:
    """The text with which the channel or the connection was closed."""
    (one,) = received
    assert isinstance(one.method, methods.ChannelClose | methods.ConnectionClose)  # type: ignore[attr-defined]
    return f"{one.method.name} {one.method.reply_text}"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("method", "answer"), LOOKUPS, ids=lambda one: getattr(one, "name", one))
def test_what_another_node_has_declared_is_found_at_once(
    cluster: TwoNodes, method: Method, answer: str
) -> None:
    client = declared(cluster)
    assert cluster.b.applied < len(cluster.commands)
    assert names(cluster.ask(client, method)) == [answer]


def test_a_publish_to_an_exchange_of_another_node_waits_for_it_with_all_behind_it(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.apply(Bind(vhost="/", source=EXCHANGE, destination=OTHER, routing_key="k"), "guest", cluster.a)
    client.ask(methods.ConfirmSelect())
    client.send(
        publication("k", b"one", exchange=EXCHANGE, delivery_mode=2),
        publication("k", b"two", exchange=EXCHANGE, delivery_mode=2),
        call(methods.BasicGet(queue=OTHER)),
    )
    assert client.hear() == []
    cluster.run()
    assert client.names() == ["basic.get-ok", "basic.ack"]
    assert [peeked.message.body for peeked in cluster.b.queue(OTHER).peek(0, 9)] == [b"two"]


def test_a_publish_before_the_end_of_the_connection_is_not_lost(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.apply(Bind(vhost="/", source=EXCHANGE, destination=OTHER, routing_key="k"), "guest", cluster.a)
    client.send(publication("k", b"one", exchange=EXCHANGE), call(methods.ConnectionClose(200, "", 0, 0), 0))
    assert client.hear() == []
    cluster.run()
    assert client.names() == ["connection.close-ok"]
    assert cluster.b.queue(OTHER).message_count == 1


def test_a_publish_to_an_exchange_that_nobody_has_declared_is_refused_once_that_is_known(
    cluster: TwoNodes,
) -> None:
    client = cluster.client(cluster.b)
    client.send(publication("k", b"one", exchange="none"), publication("k", b"two", exchange="none"))
    assert client.hear() == []
    cluster.run()
    assert closed(client.hear()) == "channel.close NOT_FOUND - no exchange 'none' in vhost '/'"
    assert client.connection.throttle.held_size == 0


def test_a_channel_that_is_closed_while_its_publish_waits_holds_nothing(cluster: TwoNodes) -> None:
    client = declared(cluster)
    client.send(publication("k", b"one", exchange=EXCHANGE))
    assert client.connection.throttle.held_size
    client.connection.disconnect("over")
    assert client.connection.throttle.held_size == 0
    cluster.run()
    assert client.names() == ["connection.close"]


def test_permissions_that_another_node_has_just_given_are_enough(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.catch_up(cluster.b)
    none = SetPermissions(user="guest", vhost="/", configure="", write="", read="")
    cluster.apply(none, "guest", cluster.b)
    every = SetPermissions(user="guest", vhost="/", configure=".*", write=".*", read=".*")
    cluster.apply(every, "guest", cluster.a)
    client.send(publication(OTHER, b"one"))
    cluster.run()
    assert client.hear() == []
    assert names(cluster.ask(client, methods.BasicGet(queue=OTHER))) == ["basic.get-ok"]


def test_a_queue_that_another_node_has_just_deleted_is_declared_anew(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.catch_up(cluster.b)
    cluster.apply(DeleteQueue(vhost="/", name=OTHER), "guest", cluster.a)
    assert names(cluster.ask(client, methods.QueueDeclare(queue=OTHER, durable=True))) == ["queue.declare-ok"]
    cluster.catch_up(cluster.a)
    assert OTHER in cluster.a.services.vhost.queues
    assert OTHER in cluster.b.services.vhost.queues


def test_an_exchange_that_another_node_has_just_deleted_is_declared_anew(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.catch_up(cluster.b)
    other = cluster.client(cluster.a)
    cluster.ask(other, methods.ExchangeDelete(exchange=EXCHANGE))
    declare = methods.ExchangeDeclare(exchange=EXCHANGE, type="fanout")
    assert names(cluster.ask(client, declare)) == ["exchange.declare-ok"]
    assert EXCHANGE in cluster.b.services.vhost.router.exchanges


def test_other_properties_are_compared_with_what_exists_now(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.catch_up(cluster.b)
    cluster.apply(DeleteQueue(vhost="/", name=OTHER), "guest", cluster.a)
    assert names(cluster.ask(client, methods.QueueDeclare(queue=OTHER))) == ["queue.declare-ok"]


def test_a_queue_that_another_node_has_just_declared_is_deleted(cluster: TwoNodes) -> None:
    client = declared(cluster)
    assert names(cluster.ask(client, methods.QueueDelete(queue=OTHER))) == ["queue.delete-ok"]
    cluster.catch_up(cluster.a)
    assert OTHER not in cluster.a.services.vhost.queues


@pytest.mark.parametrize(("method", "text"), MISSING, ids=lambda one: getattr(one, "name", one))
def test_without_a_majority_nothing_is_said_not_to_exist(
    cluster: TwoNodes, method: Method, text: str
) -> None:
    client = declared(cluster)
    cluster.has_majority = False
    said = closed(cluster.ask(client, method))
    assert said.startswith(f"connection.close INTERNAL_ERROR - {text}")
    assert TIMED_OUT in said


def test_a_publish_without_a_majority_ends_the_connection(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.has_majority = False
    client.send(publication("k", b"one", exchange=EXCHANGE))
    cluster.run()
    said = closed(client.hear())
    assert said.startswith("connection.close INTERNAL_ERROR - no exchange 'a.exchange' in vhost '/'")
    assert TIMED_OUT in said


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (methods.QueueDeclare(queue="b.new"), "Could not declare queue 'b.new' in vhost '/'"),
        (methods.QueueDelete(queue=OTHER), f"Could not delete queue '{OTHER}' in vhost '/'"),
        (methods.QueueDelete(queue="b.none"), "Could not delete queue 'b.none' in vhost '/'"),
        (
            methods.QueueBind(queue=OTHER, exchange="amq.direct"),
            f"Could not bind queue '{OTHER}' in vhost '/'",
        ),
        (
            methods.QueueUnbind(queue=OTHER, exchange="amq.direct"),
            f"Could not unbind queue '{OTHER}' in vhost '/'",
        ),
        (
            methods.ExchangeDeclare(exchange="new", type="fanout"),
            "Could not declare exchange 'new' in vhost '/'",
        ),
        (methods.ExchangeDelete(exchange=EXCHANGE), f"Could not delete exchange '{EXCHANGE}' in vhost '/'"),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_without_a_majority_a_change_ends_the_connection_as_in_rabbitmq(
    cluster: TwoNodes, method: Method, text: str
) -> None:
    client = declared(cluster)
    cluster.catch_up(cluster.b)
    other = cluster.client(cluster.b)
    cluster.has_majority = False
    said = closed(cluster.ask(client, method))
    assert said == f"connection.close INTERNAL_ERROR - {text} on node 'warren@test' {TIMED_OUT}"
    assert names(cluster.ask(other, methods.BasicGet(queue=OTHER))) == ["basic.get-empty"]


def test_without_a_majority_what_exists_here_is_used_and_may_be_declared_again(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.catch_up(cluster.b)
    cluster.has_majority = False
    for method, answer in (
        (methods.QueueDeclare(queue=OTHER, durable=True), "queue.declare-ok"),
        (methods.ExchangeDeclare(exchange=EXCHANGE, type="fanout"), "exchange.declare-ok"),
        (methods.BasicConsume(queue=OTHER, consumer_tag="t"), "basic.consume-ok"),
    ):
        assert names(cluster.ask(client, method)) == [answer]


def test_without_a_majority_every_other_refusal_closes_the_channel_only(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.catch_up(cluster.b)
    cluster.has_majority = False
    said = closed(cluster.ask(client, methods.QueueDeclare(queue=OTHER)))
    assert said.startswith("channel.close PRECONDITION_FAILED - inequivalent arg 'durable'")


HOME_DOWN = (
    "channel.close NOT_FOUND - home node 'a' of durable queue 'a.queue' in vhost '/' is down or inaccessible"
)


@pytest.mark.parametrize("has_majority", [True, False])
@pytest.mark.parametrize(
    "method",
    [
        methods.QueueDeclare(queue=QUEUE, durable=True),
        methods.QueueDeclare(queue=QUEUE),
        methods.QueueDeclare(queue=QUEUE, passive=True),
        methods.QueueBind(queue=QUEUE, exchange="amq.direct", routing_key="k"),
        methods.QueueUnbind(queue=QUEUE, exchange="amq.direct", routing_key="k"),
        methods.QueuePurge(queue=QUEUE),
        methods.QueueDelete(queue=QUEUE),
        methods.QueueDelete(queue=QUEUE, if_empty=True),
        methods.BasicConsume(queue=QUEUE, consumer_tag="t"),
        methods.BasicGet(queue=QUEUE),
        methods.BasicGet(queue=QUEUE, no_ack=True),
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_a_durable_queue_whose_home_is_down_has_the_404_of_rabbitmq_for_each_method(
    cluster: TwoNodes, method: Method, *, has_majority: bool
) -> None:
    client = declared(cluster)
    cluster.catch_up(cluster.b)
    cluster.lose()
    cluster.has_majority = has_majority
    assert closed(cluster.ask(client, method)) == HOME_DOWN
    assert QUEUE in cluster.b.services.vhost.queues
