"""A quorum queue as a node has it: clients do not notice that its leader goes and comes back."""

from collections.abc import Callable

import pytest
from tests.unit.cluster.client_script import Script
from tests.unit.cluster.test_remote_queue import SCRIPTS
from tests.unit.cluster.two_nodes import VHOST, ClusterNode, TwoNodes
from tests.unit.session.client import Client, call, publication

from warren.cluster.replicated.replicated_queue import ReplicatedQueue
from warren.limits_cluster import (
    CLAIMS_MS_MAX,
    DISCONNECTED_MS,
    LEADER_ABSENCE_MS_MAX,
    REMOTE_PARKED_MS_MAX,
)
from warren.metadata.commands import INTERNAL_USER, DeclareQueue, DeleteQueue, GrantLease, RemoveReplicas
from warren.metadata.leases import LeaseRecord
from warren.metadata.member_commands import MemberDown, RemoveMember
from warren.wire import methods
from warren.wire.table import Table

QUEUE = "b.queue"
QUORUM: Table = {"x-queue-type": "quorum"}


def client_of(cluster: TwoNodes, **arguments: object) -> Client:
    """A client of node a in confirm mode, with the queue at b."""
    client = cluster.client(cluster.a)
    declare = methods.QueueDeclare(queue=QUEUE, durable=True, arguments=QUORUM | arguments)  # type: ignore[arg-type]
    assert [one.method.name for one in cluster.ask(client, declare, methods.ConfirmSelect())] == [  # type: ignore[attr-defined]
        "queue.declare-ok", "confirm.select-ok",
    ]  # fmt: skip
    return client


def restart(cluster: TwoNodes) -> None:
    """The home loses power, and starts again; nothing else happens meanwhile."""
    cluster.lose()
    cluster.b.lose_power()
    cluster.begin()
    cluster.run()


def publish(cluster: TwoNodes, client: Client, *bodies: bytes) -> list[str]:
    client.send(*(publication(QUEUE, body) for body in bodies))
    cluster.run()
    return names(client)


def turn_all(node: ClusterNode) -> None:
    """Run the turns of `node`, which may send payloads."""
    while node.turns:
        node.turn()


def names(client: Client) -> list[str]:
    return [one.method.name for one in client.hear()]


def consume(cluster: TwoNodes, client: Client, prefetch: int = 0) -> list[bytes]:
    received = cluster.ask(
        client, methods.BasicQos(prefetch_count=prefetch), methods.BasicConsume(queue=QUEUE, consumer_tag="t")
    )
    assert received[1].method.name == "basic.consume-ok"  # type: ignore[attr-defined]
    return [one.body for one in received[2:]]  # type: ignore[attr-defined]


def deliveries(client: Client) -> list[tuple[bytes, int, bool]]:
    """What the client got: body, tag, and whether it is marked as redelivered."""
    received = client.hear()
    assert all(isinstance(one.method, methods.BasicDeliver) for one in received), received
    return [(one.body, one.method.delivery_tag, one.method.redelivered) for one in received]  # type: ignore[attr-defined]


def ready(cluster: TwoNodes) -> list[bytes]:
    return [peeked.message.body for peeked in cluster.b.queue(QUEUE).peek(0, 100)]


def test_messages_pass_between_nodes(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    assert isinstance(cluster.a.services.vhost.queues[QUEUE], ReplicatedQueue)
    assert publish(cluster, client, b"one", b"two") == ["basic.ack"]
    assert consume(cluster, client) == [b"one", b"two"]
    cluster.ask(client, methods.BasicAck(2, True))
    assert (ready(cluster), cluster.b.queue(QUEUE).unacked_count) == ([], 0)


def test_a_publish_waits_for_the_leader(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    cluster.lose()
    assert publish(cluster, client, b"one") == []
    cluster.begin()
    cluster.run()
    assert names(client) == ["basic.ack"]
    assert ready(cluster) == [b"one"]


def test_a_publish_that_the_leader_had_is_counted_once(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one")
    client.send(publication(QUEUE, b"two"))
    while cluster.a.turns:
        cluster.a.turn()
    assert cluster.pass_one(cluster.a)
    cluster.b.turn()
    cluster.lose()
    cluster.begin()
    cluster.run()
    assert names(client) == ["basic.ack"]
    assert publish(cluster, client, b"three") == ["basic.ack"]
    assert ready(cluster) == [b"one", b"two", b"three"]


@pytest.mark.parametrize("is_written", [True, False])
def test_a_publish_that_an_earlier_run_of_the_home_had_is_counted_once(
    cluster: TwoNodes, is_written: bool
) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one")
    client.send(publication(QUEUE, b"two"))
    while cluster.a.turns:
        cluster.a.turn()
    assert cluster.pass_one(cluster.a)
    cluster.b.turn()
    if is_written:
        cluster.b.write()
    restart(cluster)
    assert names(client) == ["basic.ack"]
    assert publish(cluster, client, b"three") == ["basic.ack"]
    assert ready(cluster) == [b"one", b"two", b"three"]


def test_a_consumer_goes_on_with_what_it_holds(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one", b"two", b"three")
    assert consume(cluster, client, prefetch=2) == [b"one", b"two"]
    restart(cluster)
    assert deliveries(client) == []
    assert (ready(cluster), cluster.b.queue(QUEUE).unacked_count) == ([b"three"], 2)
    cluster.ask(client, methods.BasicAck(1))
    cluster.run()
    received = cluster.ask(client, methods.BasicAck(2))
    assert received == []
    assert cluster.b.queue(QUEUE).unacked_count == 1
    restart(cluster)
    assert cluster.b.queue(QUEUE).unacked_count == 1


def test_an_acknowledgement_that_the_home_did_not_get_is_repeated(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one", b"two")
    assert consume(cluster, client) == [b"one", b"two"]
    cluster.lose()
    client.send(call(methods.BasicAck(1)))
    cluster.b.lose_power()
    cluster.begin()
    cluster.run()
    assert deliveries(client) == []
    assert (ready(cluster), cluster.b.queue(QUEUE).unacked_count) == ([], 1)


def test_an_acknowledgement_that_was_not_written_is_repeated(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one")
    assert consume(cluster, client) == [b"one"]
    client.send(call(methods.BasicAck(1)))
    while cluster.a.turns:
        cluster.a.turn()
    assert cluster.pass_one(cluster.a)
    while cluster.b.turns:
        cluster.b.turn()
    while cluster.pass_one(cluster.b):
        """What the home has answered by now arrives."""
    restart(cluster)
    assert (ready(cluster), cluster.b.queue(QUEUE).unacked_count) == ([], 0)
    restart(cluster)
    assert (ready(cluster), cluster.b.queue(QUEUE).unacked_count) == ([], 0)


def test_a_message_that_was_returned_is_delivered_again_with_the_mark(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one")
    assert consume(cluster, client) == [b"one"]
    cluster.lose()
    client.send(call(methods.BasicNack(1, False, True)))
    cluster.b.lose_power()
    cluster.begin()
    cluster.run()
    assert deliveries(client) == [(b"one", 2, True)]
    client.send(call(methods.BasicAck(2)))
    cluster.run()
    assert cluster.b.queue(QUEUE).unacked_count == 0


def test_what_nobody_holds_is_delivered_again_with_the_mark(cluster: TwoNodes) -> None:
    client, other = client_of(cluster), cluster.client(cluster.b)
    publish(cluster, client, b"one")
    assert consume(cluster, other) == [b"one"]
    restart(cluster)
    client.send(call(methods.BasicConsume(queue=QUEUE)))
    cluster.run()
    [_, delivery] = client.hear()
    assert (delivery.body, delivery.method.redelivered) == (b"one", True)  # type: ignore[attr-defined]


def test_a_blip_of_the_link_returns_nothing(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one", b"two")
    assert consume(cluster, client, prefetch=1) == [b"one"]
    cluster.lose()
    cluster.run()
    assert (ready(cluster), cluster.b.queue(QUEUE).unacked_count) == ([b"two"], 1)
    cluster.begin()
    cluster.run()
    client.send(call(methods.BasicAck(1)))
    cluster.run()
    assert deliveries(client) == [(b"two", 2, False)]


@pytest.mark.parametrize("how", ["down", "time"])
def test_what_a_node_holds_comes_back_when_it_is_down(cluster: TwoNodes, how: str) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one")
    assert consume(cluster, client) == [b"one"]
    cluster.lose()
    cluster.run()
    assert ready(cluster) == []
    if how == "down":
        cluster.apply(MemberDown(id=1, incarnation=1), INTERNAL_USER, cluster.b)
    else:
        cluster.wait(DISCONNECTED_MS)
    assert ready(cluster) == [b"one"]
    [delivery] = cluster.b.queue(QUEUE).peek(0, 1)
    assert delivery.attempts == 1


def test_a_method_waits_for_the_leader_and_gives_up(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one")
    cluster.lose()
    client.send(call(methods.BasicGet(queue=QUEUE)))
    cluster.wait(LEADER_ABSENCE_MS_MAX - 1000)
    assert client.hear() == []
    cluster.begin()
    cluster.run()
    assert names(client) == ["basic.get-ok"]
    cluster.lose()
    client.send(call(methods.BasicConsume(queue=QUEUE)))
    for _ in range(LEADER_ABSENCE_MS_MAX // 500 + 1):
        cluster.wait(500)
    [closed] = client.hear()
    assert (closed.method.reply_code, closed.method.reply_text) == (  # type: ignore[attr-defined]
        541, f"INTERNAL_ERROR - timed out consuming from quorum queue '{QUEUE}' in vhost '/'",
    )  # fmt: skip


def test_a_full_queue_refuses_and_takes_the_next_ones_again(cluster: TwoNodes) -> None:
    client = client_of(cluster, **{"x-max-length": 2, "x-overflow": "reject-publish"})
    client.send(*(publication(QUEUE, b"%d" % number) for number in range(4)))
    cluster.run()
    answers = [one.method for one in client.hear()]
    assert answers == [methods.BasicAck(2, True), methods.BasicNack(4, True)]
    cluster.ask(client, methods.BasicGet(queue=QUEUE, no_ack=True))
    assert publish(cluster, client, b"5") == ["basic.ack"]
    restart(cluster)
    assert publish(cluster, client, b"6") == ["basic.nack"]
    assert ready(cluster) == [b"1", b"5"]


def test_refused_publishes_are_not_repeated(cluster: TwoNodes) -> None:
    client = client_of(cluster, **{"x-max-length": 1, "x-overflow": "reject-publish"})
    publish(cluster, client, b"one")
    client.send(publication(QUEUE, b"two"))
    while cluster.a.turns:
        cluster.a.turn()
    assert cluster.pass_one(cluster.a)
    cluster.b.queue(QUEUE).clear()
    client.send(publication(QUEUE, b"three"))
    cluster.run()
    assert names(client) == ["basic.nack"]
    assert publish(cluster, client, b"four") == ["basic.ack"]
    assert ready(cluster) == [b"four"]


def test_one_answer_may_refuse_publishes_from_before_and_after_the_leader_resumed(cluster: TwoNodes) -> None:
    client = client_of(cluster, **{"x-max-length": 1, "x-overflow": "reject-publish"})
    publish(cluster, client, b"one")
    client.send(publication(QUEUE, b"two"))
    turn_all(cluster.a)
    cluster.pass_one(cluster.a)
    turn_all(cluster.b)
    # The node sends one before it knows of the refusal, and one after that; their answers are sent as one.
    client.send(publication(QUEUE, b"three"))
    turn_all(cluster.a)
    cluster.pass_one(cluster.b)
    client.send(publication(QUEUE, b"four"))
    turn_all(cluster.a)
    assert cluster.pass_one(cluster.a)
    assert cluster.pass_one(cluster.a)
    cluster.run()
    assert not cluster.a.channel.ended
    assert [one.method for one in client.hear()] == [methods.BasicNack(4, True)]
    cluster.b.queue(QUEUE).clear()
    assert publish(cluster, client, b"five") == ["basic.ack"]
    assert ready(cluster) == [b"five"]


def test_the_virtual_host_of_the_clients_begins_with_new_numbers(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one", b"two")
    assert consume(cluster, client) == [b"one", b"two"]
    cluster.a.replicated.vhost_ended(VHOST)
    cluster.a.traffic.vhost_ended(VHOST)
    cluster.a.open_vhost()
    cluster.a.traffic.vhost_began(VHOST)
    cluster.run()
    again = cluster.client(cluster.a)
    again.ask(methods.ConfirmSelect())
    assert publish(cluster, again, b"three") == ["basic.ack"]
    assert ready(cluster) == [b"one", b"two", b"three"]


def test_the_virtual_host_of_the_home_comes_back(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one", b"two")
    assert consume(cluster, client, prefetch=1) == [b"one"]
    cluster.b.server.vhost_services.pop(VHOST)
    cluster.b.replicated.vhost_ended(VHOST)
    cluster.b.traffic.vhost_ended(VHOST)
    cluster.run()
    assert publish(cluster, client, b"three") == []
    assert cluster.b.disk is not None
    cluster.b.lose_power()
    cluster.b.traffic.vhost_began(VHOST)
    cluster.run()
    assert names(client) == ["basic.ack"]
    client.send(call(methods.BasicAck(1)))
    cluster.run()
    # Below the reach that the former run had proposed.
    assert deliveries(client) == [(b"two", 2, True)]


def test_a_deleted_queue_confirms_and_cancels(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    consume(cluster, client)
    cluster.lose()
    publish(cluster, client, b"one")
    other = cluster.client(cluster.b)
    cluster.ask(other, methods.QueueDelete(queue=QUEUE))
    assert sorted(names(client)) == ["basic.ack", "basic.cancel"]


def test_what_arrives_for_a_consumer_that_has_gone_with_its_queue_is_passed_over(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    assert consume(cluster, client) == []
    at_home = cluster.client(cluster.b)
    at_home.send(publication(QUEUE, b"one"))
    while cluster.b.turns or cluster.b.is_writing:
        if cluster.b.turns:
            cluster.b.turn()
        else:
            cluster.b.write()
    # The delivery is on its way.
    assert cluster.b.channel.payloads
    client.connection.lost()
    cluster.is_prompt = False
    cluster.apply(DeleteQueue(vhost=VHOST, name=QUEUE), INTERNAL_USER, cluster.a)
    while cluster.pass_one(cluster.b):
        pass
    cluster.catch_up(cluster.b)
    cluster.run()


def test_a_home_that_does_not_know_the_queue_yet_answers_when_it_does(cluster: TwoNodes) -> None:
    cluster.is_prompt = False
    client = cluster.client(cluster.a)
    client.ask(methods.ConfirmSelect())
    client.send(call(methods.QueueDeclare(queue=QUEUE, durable=True, arguments=QUORUM)))
    cluster.run()
    client.send(publication(QUEUE, b"one"))
    cluster.run()
    cluster.wait(REMOTE_PARKED_MS_MAX)
    assert "basic.ack" not in names(client)
    cluster.catch_up(cluster.b)
    cluster.run()
    assert names(client)[-1] == "basic.ack"
    assert ready(cluster) == [b"one"]


def test_a_queue_whose_only_node_was_forgotten_refuses(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one")
    assert consume(cluster, client) == [b"one"]
    cluster.lose()
    assert publish(cluster, client, b"two") == []
    cluster.apply(MemberDown(id=2, incarnation=1), INTERNAL_USER, cluster.a)
    cluster.apply(RemoveMember(id=2, is_forgotten=True), INTERNAL_USER, cluster.a)
    cluster.run()
    assert sorted(names(client)) == ["basic.cancel", "basic.nack"]
    assert publish(cluster, client, b"three") == ["basic.nack"]
    [closed] = cluster.ask(client, methods.BasicGet(queue=QUEUE))
    assert closed.method.reply_text == (  # type: ignore[attr-defined]
        f"NOT_FOUND - home node 'b' of durable queue '{QUEUE}' in vhost '/' is down or inaccessible"
    )


def test_a_queue_refuses_if_half_of_its_members_were_removed_before_one_of_them_has_led(
    cluster: TwoNodes,
) -> None:
    client = cluster.client(cluster.a)
    cluster.ask(client, methods.ConfirmSelect())
    cluster.lose()
    declare = DeclareQueue(vhost=VHOST, name=QUEUE, durable=True, arguments=QUORUM, members=(2, 1))
    cluster.apply(declare, INTERNAL_USER, cluster.a)
    client.send(publication(QUEUE, b"one"))
    cluster.run()
    assert names(client) == []
    cluster.apply(RemoveReplicas(node=2, count_max=1), INTERNAL_USER, cluster.a)
    cluster.run()
    assert names(client) == ["basic.nack"]
    [closed] = cluster.ask(client, methods.BasicGet(queue=QUEUE))
    assert closed.method.name == "channel.close"


# Here a refusal comes after what was confirmed before it, and the other methods of a turn after what was
# published in it is committed.
OTHERWISE = ("overflow", "delete", "delete_with_consumers")
ALIKE = [play for play in SCRIPTS if play.__name__ not in OTHERWISE]


@pytest.mark.parametrize("play", ALIKE, ids=lambda play: play.__name__)
@pytest.mark.parametrize("nodes", ["aa", "ab", "ba"])
def test_a_client_of_another_node_gets_the_bytes_that_one_of_the_home_gets(
    play: Callable[[Script], None], nodes: str
) -> None:
    home, remote = Script("bb", is_quorum=True), Script(nodes, is_quorum=True)
    play(home)
    play(remote)
    assert remote.received == home.received
    assert any(home.received), "nothing was compared"
    assert not remote.cluster.a.channel.ended + remote.cluster.b.channel.ended


def test_a_leader_delivers_nothing_before_its_node_knows_which_messages_are_leased(cluster: TwoNodes) -> None:
    client = client_of(cluster)
    publish(cluster, client, b"one", b"two")
    queue = cluster.b.queue(QUEUE)
    place = queue.lasting_place(queue.peek(0, 1)[0].place)
    lease = LeaseRecord(
        id="1", queue=QUEUE, user="u", key="k", places=(place, place + 1), messages=1, byte_count=3,
        granted_at=0, expires_at=1 << 40,
    )  # fmt: skip
    assert consume(cluster, client, prefetch=1) == [b"one"]
    cluster.ask(client, methods.BasicCancel("t"), methods.BasicReject(1, True))
    # The home, which has granted it, has not applied that when it leads again.
    cluster.is_prompt = False
    cluster.apply(GrantLease(vhost=VHOST, lease=lease), INTERNAL_USER, cluster.a)
    cluster.has_majority = False
    restart(cluster)
    client.send(call(methods.BasicConsume(queue=QUEUE, consumer_tag="u")))
    cluster.wait(CLAIMS_MS_MAX + 1)
    assert deliveries(client) == []
    cluster.has_majority = True
    cluster.wait(2_000)
    heard = client.hear()
    assert [one.method.name for one in heard] == ["basic.consume-ok", "basic.deliver"]
    assert heard[1].body == b"two"
    assert len(cluster.b.services.lease_service.held["1"].deliveries) == 1
