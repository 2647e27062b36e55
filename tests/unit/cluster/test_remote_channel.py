"""The far side of remote queues: metadata that come late, confirms, and the end of a session."""

import random

import pytest
from tests.unit.cluster.two_nodes import TwoNodes
from tests.unit.session.client import Client, call, publication

from warren.limits_cluster import REMOTE_PARKED_MAX, REMOTE_PARKED_MS_MAX
from warren.wire import methods

QUEUE = "b.queue"
DECLARE = methods.QueueDeclare(queue=QUEUE, durable=True)
PASSIVE = methods.QueueDeclare(queue=QUEUE, passive=True)


@pytest.fixture
def cluster() -> TwoNodes:
    return TwoNodes()


def client_of(cluster: TwoNodes) -> Client:
    """A client of node a in confirm mode."""
    client = cluster.client(cluster.a)
    client.ask(methods.ConfirmSelect())
    return client


def bodies(cluster: TwoNodes) -> list[bytes]:
    return [peeked.message.body for peeked in cluster.b.queue(QUEUE).peek(0, 1000)]


def test_what_names_a_queue_that_is_not_known_yet_waits_for_the_metadata(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    cluster.is_prompt = False
    cluster.ask(client, DECLARE)
    client.send(publication(QUEUE, b"one"))
    cluster.run()
    client.send(publication(QUEUE, b"two"), call(methods.BasicGet(queue=QUEUE)))
    cluster.run()
    assert client.hear() == []
    cluster.catch_up(cluster.b)
    cluster.run()
    assert client.names() == ["basic.get-ok", "basic.ack"]
    assert bodies(cluster) == [b"two"]
    cluster.wait(REMOTE_PARKED_MS_MAX)
    assert not cluster.b.channel.ended


def test_metadata_that_do_not_come_refuse_what_is_not_known(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    cluster.is_prompt = False
    cluster.ask(client, DECLARE)
    client.send(publication(QUEUE, b"one"))
    cluster.run()
    cluster.wait(REMOTE_PARKED_MS_MAX - 1)
    assert client.hear() == []
    cluster.wait(1)
    assert client.names() == ["basic.nack"]
    client.send(publication(QUEUE, b"two"))
    cluster.run()
    assert client.names() == ["basic.nack"]
    cluster.catch_up(cluster.b)
    client.send(publication(QUEUE, b"three"))
    cluster.run()
    assert client.names() == ["basic.ack"]
    assert bodies(cluster) == [b"three"]


@pytest.mark.parametrize(
    ("is_durable", "method"),
    [
        *(
            (True, method)
            for method in (
                PASSIVE,
                DECLARE,
                methods.QueueDelete(queue=QUEUE),
                methods.QueueDelete(queue=QUEUE, if_unused=True),
                methods.QueuePurge(queue=QUEUE),
                methods.BasicGet(queue=QUEUE),
                methods.BasicConsume(queue=QUEUE, consumer_tag="t"),
            )
        ),
        (False, methods.QueueDelete(queue=QUEUE)),
    ],
    ids=repr,
)
def test_a_queue_of_which_its_home_has_not_heard_is_inaccessible_and_not_missing(
    cluster: TwoNodes, *, is_durable: bool, method: methods.Method
) -> None:
    client = client_of(cluster)
    cluster.is_prompt = False
    cluster.ask(client, methods.QueueDeclare(queue=QUEUE, durable=is_durable))
    cluster.ask(client, method)
    cluster.wait(REMOTE_PARKED_MS_MAX)
    [answer] = client.hear()
    kind = "durable queue" if is_durable else "queue"
    assert answer.method.reply_text == (  # type: ignore[attr-defined]
        f"NOT_FOUND - home node 'b' of {kind} '{QUEUE}' in vhost '/' is down or inaccessible"
    )


@pytest.mark.parametrize(
    ("method", "verb"),
    [
        (methods.QueueDelete(queue=QUEUE), "delete"),
        (methods.QueueDelete(queue=QUEUE, if_empty=True), "delete"),
        (DECLARE, "declare"),
    ],
)
def test_a_queue_that_only_its_home_knows_to_be_gone_is_not_missing_without_a_majority(
    cluster: TwoNodes, method: methods.Method, verb: str
) -> None:
    """Another queue may have its name since."""
    client, other = client_of(cluster), cluster.client(cluster.b)
    cluster.ask(client, DECLARE)
    cluster.is_prompt = False
    cluster.ask(other, methods.QueueDelete(queue=QUEUE))
    cluster.has_majority = False
    answer = cluster.ask(client, method)[-1]
    assert answer.method.reply_text == (  # type: ignore[attr-defined]
        f"INTERNAL_ERROR - Could not {verb} queue '{QUEUE}' in vhost '/' on node 'warren@test' because the"
        " metadata store operation timed out"
    )


def test_a_consumer_has_its_turn_when_its_client_hears_that_it_consumes(cluster: TwoNodes) -> None:
    client, publisher = client_of(cluster), cluster.client(cluster.b)
    cluster.ask(client, DECLARE, methods.BasicConsume(queue=QUEUE, consumer_tag="one"))
    client.send(call(methods.BasicConsume(queue=QUEUE, consumer_tag="two")))
    cluster.a.turn()
    cluster.pass_one(cluster.a)
    cluster.b.turn()
    cluster.pass_one(cluster.b)
    assert client.names() == ["basic.consume-ok"]
    # Nothing more of the client's node arrives before this.
    publisher.send(publication(QUEUE, b"first"), publication(QUEUE, b"second"))
    cluster.run()
    tags = [one.method.consumer_tag for one in client.hear()]  # type: ignore[attr-defined]
    assert tags == ["one", "two"]


def test_too_many_payloads_do_not_wait(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    cluster.is_prompt = False
    cluster.ask(client, DECLARE)
    for number in range(REMOTE_PARKED_MAX):
        client.send(publication(QUEUE, b"%d" % number))
        cluster.run()
    assert client.hear() == []
    client.send(publication(QUEUE, b"last"))
    cluster.run()
    [answer] = client.hear()
    assert answer.method == methods.BasicNack(REMOTE_PARKED_MAX + 1, True, True)


def test_what_is_published_to_a_queue_that_was_deleted_counts_as_routed(cluster: TwoNodes) -> None:
    client, other = client_of(cluster), cluster.client(cluster.b)
    cluster.ask(client, DECLARE)
    cluster.is_prompt = False
    cluster.ask(other, methods.QueueDelete(queue=QUEUE))
    client.send(publication(QUEUE, b"one"))
    cluster.run()
    assert client.names() == ["basic.ack"]
    found = cluster.ask(client, methods.BasicGet(queue=QUEUE))
    assert found[0].method.reply_text == f"NOT_FOUND - no queue '{QUEUE}' in vhost '/'"  # type: ignore[attr-defined]


def test_a_queue_that_was_declared_again_is_another_one(cluster: TwoNodes) -> None:
    client, other = client_of(cluster), cluster.client(cluster.b)
    cluster.ask(client, DECLARE)
    client.send(publication(QUEUE, b"one"))
    cluster.run()
    cluster.ask(other, methods.QueueDelete(queue=QUEUE), DECLARE)
    client.send(publication(QUEUE, b"two"))
    cluster.run()
    assert bodies(cluster) == [b"two"]
    assert [one.method for one in client.hear()] == [methods.BasicAck(2, True)]


def test_a_persistent_message_is_confirmed_when_the_home_has_written_it(cluster: TwoNodes) -> None:
    cluster.b.attach_store(random.Random(1))
    client = client_of(cluster)
    cluster.ask(client, DECLARE)
    client.send(publication(QUEUE, b"one", delivery_mode=2), publication(QUEUE, b"two"))
    cluster.a.turn()
    cluster.pass_one(cluster.a)
    while cluster.b.turns:
        cluster.b.turn()
    assert not cluster.b.channel.payloads
    cluster.run()
    [answer] = client.hear()
    assert answer.method == methods.BasicAck(2, True)


def test_a_home_that_cannot_send_delivers_nothing(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    cluster.ask(client, DECLARE)
    cluster.ask(client, methods.BasicConsume(queue=QUEUE, consumer_tag="t"))
    cluster.b.channel.is_writable = False
    client.send(publication(QUEUE, b"one"))
    cluster.run()
    queue = cluster.b.queue(QUEUE)
    assert (queue.message_count, queue.unacked_count) == (1, 0)
    other = cluster.client(cluster.b)
    [got] = cluster.ask(other, methods.BasicGet(queue=QUEUE, no_ack=True))
    assert got.body == b"one"  # type: ignore[attr-defined]
    client.send(publication(QUEUE, b"two"))
    cluster.run()
    cluster.b.channel.is_writable = True
    cluster.b.traffic.writable()
    cluster.run()
    assert client.names() == ["basic.deliver", "basic.ack"]


def test_deliveries_return_in_order_when_the_session_is_lost(cluster: TwoNodes) -> None:
    client, other = client_of(cluster), cluster.client(cluster.b)
    cluster.ask(client, DECLARE)
    client.send(*(publication(QUEUE, b"%d" % number) for number in range(5)))
    cluster.run()
    cluster.ask(client, methods.BasicQos(prefetch_count=3))
    cluster.ask(client, methods.BasicConsume(queue=QUEUE, consumer_tag="t"))
    cluster.ask(other, methods.BasicConsume(queue=QUEUE, consumer_tag="t"))
    other.hear()
    cluster.lose()
    cluster.run()
    received = other.hear()
    assert [one.body for one in received] == [b"0", b"1", b"2"]
    assert all(one.method.redelivered for one in received)  # type: ignore[attr-defined]


def test_a_message_of_basic_get_without_acknowledgement_is_not_there_again(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    cluster.ask(client, DECLARE)
    client.send(publication(QUEUE, b"one"), publication(QUEUE, b"two"))
    cluster.run()
    client.send(call(methods.BasicGet(queue=QUEUE, no_ack=True)))
    cluster.a.turn()
    cluster.pass_one(cluster.a)
    while cluster.b.turns:
        cluster.b.turn()
    cluster.pass_one(cluster.b)
    assert client.names() == ["basic.get-ok", "basic.ack"]
    cluster.lose()
    assert bodies(cluster) == [b"two"]
    assert cluster.b.queue(QUEUE).unacked_count == 0
