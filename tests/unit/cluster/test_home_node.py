"""The near side of remote queues: turns, interruptions, limits, and the end of a session."""

import pytest
from tests.unit.cluster.two_nodes import VHOST, TwoNodes
from tests.unit.session.client import Client, call, publication

from warren.limits import REMOVAL_RETRY_MS
from warren.limits_cluster import REMOTE_HELD_SIZE_MAX, REMOTE_WINDOW_MESSAGES, REMOTE_WINDOW_SIZE
from warren.metadata.commands import INTERNAL_USER, DeclareQueue
from warren.metadata.member_commands import MemberDown, RemoveMember
from warren.wire import methods

QUEUE = "b.queue"
OTHER = "b.other"


@pytest.fixture
def cluster() -> TwoNodes:
    return TwoNodes()


def declared(cluster: TwoNodes, *queues: str, durable: bool = True) -> Client:
    """A client of node a, in confirm mode, with these queues."""
    client = cluster.client(cluster.a)
    for queue in queues or (QUEUE,):
        cluster.ask(client, methods.QueueDeclare(queue=queue, durable=durable))
    cluster.ask(client, methods.ConfirmSelect())
    return client


def texts(received: list[object]) -> list[str]:
    return [one.method.reply_text for one in received]  # type: ignore[attr-defined]


def test_what_a_turn_does_is_one_payload_in_each_direction(cluster: TwoNodes) -> None:
    client = declared(cluster)
    client.send(*(publication(QUEUE, b"%d" % number) for number in range(100)))
    before = cluster.a.channel.count, cluster.b.channel.count
    cluster.run()
    assert (cluster.a.channel.count, cluster.b.channel.count) == (before[0] + 1, before[1] + 1)
    [answer] = client.hear()
    assert answer.method == methods.BasicAck(100, True)
    cluster.ask(client, methods.BasicConsume(queue=QUEUE, consumer_tag="t"))
    before = cluster.a.channel.count, cluster.b.channel.count
    client.send(*(call(methods.BasicAck(tag)) for tag in range(1, 101)))
    cluster.run()
    assert (cluster.a.channel.count, cluster.b.channel.count) == (before[0] + 1, before[1])
    assert not cluster.b.queue(QUEUE).unacked_count


@pytest.mark.parametrize(
    "method",
    [
        methods.BasicGet(queue=QUEUE),
        methods.BasicConsume(queue=QUEUE),
        methods.QueuePurge(queue=QUEUE),
        methods.QueueDelete(queue=QUEUE),
        methods.QueueDelete(queue=QUEUE, if_empty=True),
        methods.QueueDeclare(queue=QUEUE, passive=True),
        methods.QueueDeclare(queue=QUEUE, durable=True),
    ],
)
def test_a_durable_queue_whose_home_is_down_is_not_found(cluster: TwoNodes, method: methods.Method) -> None:
    client = declared(cluster)
    cluster.lose()
    assert texts(cluster.ask(client, method)) == [
        f"NOT_FOUND - home node 'b' of durable queue '{QUEUE}' in vhost '/' is down or inaccessible"
    ]


def test_a_transient_queue_whose_home_is_down_does_not_exist(cluster: TwoNodes) -> None:
    client = declared(cluster, durable=False)
    cluster.lose()
    found = texts(cluster.ask(client, methods.BasicGet(queue=QUEUE)))
    assert found == [f"NOT_FOUND - no queue '{QUEUE}' in vhost '/'"]


@pytest.mark.parametrize("only", [{}, {"if_unused": True}, {"if_empty": True}])
def test_a_queue_whose_home_was_forgotten_can_be_deleted(cluster: TwoNodes, only: dict[str, bool]) -> None:
    declare = DeclareQueue(vhost=VHOST, name=QUEUE, durable=True, home=2)
    cluster.apply(declare, INTERNAL_USER, cluster.b)
    client = cluster.client(cluster.a)
    cluster.lose()
    delete = methods.QueueDelete(queue=QUEUE, **only)
    assert texts(cluster.ask(client, delete)) == [
        f"NOT_FOUND - home node 'b' of durable queue '{QUEUE}' in vhost '/' is down or inaccessible"
    ]
    for command in (MemberDown(id=2, incarnation=1), RemoveMember(id=2)):
        cluster.apply(command, INTERNAL_USER, cluster.a)
    other = cluster.client(cluster.a)
    [answer] = cluster.ask(other, delete)
    assert answer.method == methods.QueueDeleteOk(0)  # type: ignore[attr-defined]
    assert QUEUE not in cluster.a.services.vhost.queues


def test_publishes_are_refused_when_the_session_is_lost_and_after_that(cluster: TwoNodes) -> None:
    client = declared(cluster)
    client.send(publication(QUEUE, b"on its way"))
    cluster.a.turn()
    cluster.lose()
    client.send(publication(QUEUE, b"too late"))
    assert [one.method for one in client.hear()] == [
        methods.BasicNack(2, True, True),
    ]
    cluster.begin()
    client.send(publication(QUEUE, b"in time"))
    cluster.run()
    assert [one.method for one in client.hear()] == [methods.BasicAck(3, False)]
    assert [peeked.message.body for peeked in cluster.b.queue(QUEUE).peek(0, 9)] == [b"in time"]


@pytest.mark.parametrize("durable", [True, False])
def test_a_mandatory_message_for_a_home_that_is_down_is_returned_and_not_confirmed(
    cluster: TwoNodes, durable: bool
) -> None:
    client = declared(cluster, durable=durable)
    client.send(publication(QUEUE, b"before"))
    cluster.run()
    cluster.lose()
    client.hear()
    client.send(
        publication("k", b"unrouted", exchange="amq.direct"), publication(QUEUE, b"away", mandatory=True)
    )
    returned, refused = client.hear()[-2:]
    assert returned.method == methods.BasicReturn(312, "NO_ROUTE", "", QUEUE)
    assert returned.body == b"away"
    assert refused.method == methods.BasicNack(3, True, True)
    client.send(publication(QUEUE, b"away"))
    assert [one.method for one in client.hear()] == [methods.BasicNack(4, True, True)]
    assert (cluster.a.services.vhost.returned, cluster.a.services.vhost.dropped) == (1, 1)


def test_without_confirms_a_message_for_a_home_that_is_down_is_returned_or_counted_as_dropped(
    cluster: TwoNodes,
) -> None:
    declared(cluster)
    client = cluster.client(cluster.a)
    cluster.lose()
    client.send(publication(QUEUE, b"dropped"), publication(QUEUE, b"returned", mandatory=True))
    assert [(type(one.method), one.body) for one in client.hear()] == [(methods.BasicReturn, b"returned")]
    assert (cluster.a.services.vhost.returned, cluster.a.services.vhost.dropped) == (1, 1)


@pytest.mark.parametrize(("others", "is_returned"), [(("b.other",), True), (("b.other", "a.here"), False)])
def test_a_mandatory_message_is_returned_only_if_all_its_queues_are_on_nodes_that_are_down(
    cluster: TwoNodes, others: tuple[str, ...], is_returned: bool
) -> None:
    queues = (QUEUE, *others)
    client = declared(cluster, *queues)
    for queue in queues:
        cluster.ask(client, methods.QueueBind(queue=queue, exchange="amq.fanout"))
    cluster.lose()
    client.send(publication("k", b"m", exchange="amq.fanout", mandatory=True))
    expected = [methods.BasicReturn] * is_returned + [methods.BasicNack]
    assert [type(one.method) for one in client.hear()] == expected


def test_a_transaction_returns_mandatory_messages_for_a_home_that_is_down_and_fails(
    cluster: TwoNodes,
) -> None:
    declared(cluster)
    client = cluster.client(cluster.a)
    cluster.ask(client, methods.TxSelect())
    cluster.lose()
    client.send(publication(QUEUE, b"refused"), publication(QUEUE, b"returned", mandatory=True))
    returned, failed = cluster.ask(client, methods.TxCommit())
    assert returned.body == b"returned"  # type: ignore[attr-defined]
    assert texts([failed]) == ["PRECONDITION_FAILED - partial tx completion"]


def test_a_lost_session_cancels_consumers_and_passes_over_acknowledgements(cluster: TwoNodes) -> None:
    client = declared(cluster)
    client.send(publication(QUEUE, b"a"))
    cluster.ask(client, methods.BasicConsume(queue=QUEUE, consumer_tag="t"))
    cluster.lose()
    assert [one.method for one in client.hear()] == [methods.BasicCancel("t", True)]
    cluster.begin()
    assert cluster.ask(client, methods.BasicAck(1)) == []
    assert cluster.b.queue(QUEUE).message_count == 1
    _, again = cluster.ask(client, methods.BasicConsume(queue=QUEUE, consumer_tag="u"))
    assert again.method.redelivered  # type: ignore[attr-defined]


def test_methods_wait_while_the_link_is_interrupted(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.a.channel.is_writable = False
    assert cluster.ask(client, methods.BasicGet(queue=QUEUE)) == []
    cluster.a.channel.is_writable = True
    cluster.a.traffic.writable()
    cluster.run()
    assert client.names() == ["basic.get-empty"]


def test_a_publisher_that_is_behind_waits_and_others_do_not(cluster: TwoNodes) -> None:
    behind, other = declared(cluster, QUEUE, "a.here"), declared(cluster)
    cluster.a.channel.is_writable = False
    body = bytes(1000)
    while not behind.connection.throttle.held_size:
        behind.send(publication(QUEUE, body))
        cluster.run()
    held = cluster.a.traffic.home_of(cluster.a.services.vhost)
    assert held.credit.is_spent
    other.send(publication("a.here", b"to another queue"), publication(QUEUE, b"taken still"))
    cluster.run()
    assert other.names() == ["basic.ack"]
    behind.send(*(publication(QUEUE, body) for _ in range(10)))
    cluster.a.channel.is_writable = True
    cluster.a.traffic.writable()
    cluster.run()
    assert not behind.connection.throttle.held_size
    count = REMOTE_HELD_SIZE_MAX // len(body)
    assert count <= cluster.b.queue(QUEUE).message_count <= count + 20
    assert {*behind.names()} == {"basic.ack"}
    assert cluster.a.channel.count > REMOTE_HELD_SIZE_MAX // 100_000, "the home takes it in several turns"


def test_a_publisher_that_is_behind_goes_on_when_the_session_is_lost(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.a.channel.is_writable = False
    while not client.connection.throttle.held_size:
        client.send(publication(QUEUE, bytes(100_000)[:3000]))
        cluster.run()
    cluster.lose()
    cluster.run()
    assert not client.connection.throttle.held_size
    assert {*client.names()} == {"basic.nack"}


def test_a_connection_that_waits_for_a_home_and_for_the_disk_goes_on_with_either(cluster: TwoNodes) -> None:
    client = declared(cluster, QUEUE, "a.here")
    client.ask(methods.ChannelOpen(), methods.ConfirmSelect(), channel=2)
    cluster.a.channel.is_writable = False
    while not client.connection.throttle.held_size:
        client.send(publication(QUEUE, bytes(3000)))
        cluster.run()
    cluster.a.services.credit.spend()
    client.send(publication("a.here", b"to the disk", channel=2))
    cluster.run()
    assert cluster.a.queue("a.here").message_count == 0
    cluster.a.services.credit.renew()
    cluster.run()
    assert cluster.a.queue("a.here").message_count == 1
    assert client.connection.throttle.is_waiting, "the other channel waits still"
    cluster.a.channel.is_writable = True
    cluster.a.traffic.writable()
    cluster.run()
    assert not client.connection.throttle.is_waiting
    assert not client.connection.throttle.held_size


def test_a_limit_of_the_channel_holds_over_queues_and_keeps_their_order(cluster: TwoNodes) -> None:
    client = declared(cluster, QUEUE, OTHER)
    for queue in (QUEUE, OTHER):
        cluster.ask(client, methods.BasicConsume(queue=queue, consumer_tag=queue))
    cluster.ask(client, methods.BasicQos(prefetch_count=2, is_global=True))
    client.send(*(publication(queue, b"%d" % number) for number in range(6) for queue in (QUEUE, OTHER)))
    cluster.run()
    seen: dict[str, list[bytes]] = {QUEUE: [], OTHER: []}
    unacked = 0
    tag = 0
    while True:
        for one in client.hear():
            if isinstance(one.method, methods.BasicDeliver):
                assert not one.method.redelivered
                unacked += 1
                seen[one.method.consumer_tag].append(one.body)
        assert unacked <= 2
        if not unacked:
            break
        tag += 1
        unacked -= 1
        client.send(call(methods.BasicAck(tag)))
        cluster.run()
    numbers = [b"%d" % number for number in range(6)]
    assert seen == {QUEUE: numbers, OTHER: numbers}


def test_a_client_that_does_not_read_gets_no_more_than_a_window(cluster: TwoNodes) -> None:
    client = declared(cluster)
    body = bytes(3000)
    for _ in range(60):
        client.send(*(publication(QUEUE, body) for _ in range(20)))
        cluster.run()
    client.hear()
    client.send(call(methods.BasicConsume(queue=QUEUE, consumer_tag="t")))
    cluster.run()
    queue = cluster.b.queue(QUEUE)
    assert 0 < queue.unacked_count * len(body) <= REMOTE_WINDOW_SIZE + len(body)
    count = 0
    for _ in range(20):
        count += len(client.bodies())
        cluster.run()
    assert count == 1200


def test_small_messages_are_bounded_by_their_number(cluster: TwoNodes) -> None:
    client = declared(cluster)
    client.send(*(publication(QUEUE, b"") for _ in range(3 * REMOTE_WINDOW_MESSAGES)))
    cluster.run()
    client.send(call(methods.BasicConsume(queue=QUEUE, consumer_tag="t")))
    cluster.a.turn()
    cluster.pass_one(cluster.a)
    while cluster.b.turns:
        cluster.b.turn()
    assert cluster.b.queue(QUEUE).unacked_count == REMOTE_WINDOW_MESSAGES
    cluster.run()
    client.hear()
    cluster.run()
    assert cluster.b.queue(QUEUE).unacked_count == 3 * REMOTE_WINDOW_MESSAGES


@pytest.mark.parametrize(
    "method",
    [methods.BasicGet(queue=QUEUE), methods.BasicConsume(queue=QUEUE), methods.QueuePurge(queue=QUEUE)],
)
def test_what_waits_for_a_queue_that_is_deleted_fails(cluster: TwoNodes, method: methods.Method) -> None:
    client, other = declared(cluster), cluster.client(cluster.b)
    client.send(publication(QUEUE, b"a"))
    cluster.run()
    client.hear()
    client.send(call(method))
    cluster.a.turn()
    other.send(call(methods.QueueDelete(queue=QUEUE)))
    while cluster.a.turns:
        cluster.a.turn()
    assert texts(client.hear()) == [f"NOT_FOUND - no queue '{QUEUE}' in vhost '/'"]
    cluster.run()
    assert not cluster.a.channel.ended


@pytest.mark.parametrize(
    ("method", "is_marked"),
    [
        (methods.BasicGet(queue=QUEUE), False),
        # What its consumer got before it was gone was delivered to it, as RabbitMQ has it.
        (methods.BasicConsume(queue=QUEUE, consumer_tag="t", exclusive=True), True),
    ],
)
def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind(
    cluster: TwoNodes, *, method: methods.Method, is_marked: bool
) -> None:
    leaving, client = declared(cluster), declared(cluster)
    client.send(publication(QUEUE, b"a"), publication(QUEUE, b"b"))
    cluster.run()
    leaving.send(call(method))
    cluster.a.turn()
    leaving.connection.lost()
    cluster.run()
    queue = cluster.b.queue(QUEUE)
    assert (queue.message_count, queue.unacked_count, queue.consumer_count) == (2, 0, 0)
    client.hear()
    [got] = cluster.ask(client, methods.BasicGet(queue=QUEUE))
    assert got.method.redelivered == is_marked  # type: ignore[attr-defined]


def test_a_message_without_acknowledgement_that_is_on_its_way_at_a_cancel_arrives(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.ask(client, methods.BasicConsume(queue=QUEUE, consumer_tag="t", no_ack=True))
    client.send(publication(QUEUE, b"a"))
    client.send(call(methods.BasicCancel("t")))
    cluster.run()
    assert client.names() == ["basic.deliver", "basic.cancel-ok", "basic.ack"]


def test_a_server_cancels_nothing_that_its_client_is_cancelling(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.ask(client, methods.BasicConsume(queue=QUEUE, consumer_tag="t"))
    client.send(call(methods.BasicCancel("t")))
    cluster.lose()
    cluster.run()
    assert client.names() == ["basic.cancel-ok"]


def test_a_touched_queue_does_not_expire(cluster: TwoNodes) -> None:
    client = cluster.client(cluster.a)
    declare = methods.QueueDeclare(queue=QUEUE, arguments={"x-expires": 1000})
    cluster.ask(client, declare)
    for _ in range(3):
        cluster.wait(900)
        cluster.ask(client, declare)
    assert cluster.b.queue(QUEUE).used_at == cluster.b.clock.now


def test_exclusive_queues_of_a_closed_connection_are_deleted_as_soon_as_a_majority_is_there(
    cluster: TwoNodes,
) -> None:
    client = cluster.client(cluster.a)
    cluster.ask(client, methods.QueueDeclare(queue="a.private", exclusive=True))
    cluster.has_majority = False
    client.connection.lost()
    cluster.wait(REMOVAL_RETRY_MS)
    cluster.has_majority = True
    assert "a.private" in cluster.a.services.vhost.queues
    cluster.wait(REMOVAL_RETRY_MS)
    assert "a.private" not in cluster.a.services.vhost.queues
    assert "a.private" not in cluster.b.services.vhost.queues
    [answer] = cluster.ask(cluster.client(cluster.b), methods.QueueDeclare(queue="a.private"))
    assert answer.method == methods.QueueDeclareOk("a.private", 0, 0)  # type: ignore[attr-defined]
