"""Payloads find their virtual host and their session, and nothing that another node sends harms this one."""

import random

import pytest
from tests.seeds import SEEDS
from tests.unit.cluster.two_nodes import VHOST, MemoryChannel, TwoNodes
from tests.unit.session.client import FRAME_SIZE_MAX, Client, call, frame, publication

from warren.cluster.remote_codec import FROM_HOME, PART, TO_HOME, encode_head
from warren.limits_cluster import REMOTE_PARKED_MS_MAX, REMOTE_PART_SIZE_MAX, REMOTE_PAYLOAD_SIZE_MAX
from warren.wire import methods

QUEUE = "b.queue"


@pytest.fixture
def cluster() -> TwoNodes:
    return TwoNodes()


def declared(cluster: TwoNodes) -> Client:
    """A client of the other node, in confirm mode, with a queue."""
    client = cluster.client(cluster.a)
    cluster.ask(client, methods.QueueDeclare(queue=QUEUE, durable=True), methods.ConfirmSelect())
    return client


def test_a_large_payload_passes_in_parts(cluster: TwoNodes) -> None:
    client = declared(cluster)
    body = bytes(1000) * (REMOTE_PART_SIZE_MAX // 1000 + 1000)
    client.send(
        call(methods.BasicPublish(routing_key=QUEUE)),
        *_content(body),
    )
    cluster.a.turn()
    assert [kind for kind, _ in cluster.a.channel.payloads] == [PART, TO_HOME]
    cluster.run()
    assert client.names() == ["basic.ack"]
    assert cluster.b.queue(QUEUE).ready_bytes == len(body)


def test_what_is_left_of_a_large_payload_is_of_the_session_in_which_it_began(cluster: TwoNodes) -> None:
    cluster.a.channel.is_writable = False
    cluster.a.traffic.send(TO_HOME, bytes(2 * REMOTE_PART_SIZE_MAX))
    assert not cluster.a.channel.payloads
    cluster.lose()
    cluster.begin()
    cluster.a.channel.is_writable = True
    cluster.a.traffic.writable()
    assert cluster.a.traffic.is_writable
    assert not cluster.a.channel.payloads


def test_a_message_that_waits_for_the_link_in_part_is_confirmed_with_those_behind_it(
    cluster: TwoNodes,
) -> None:
    client = declared(cluster)
    cluster.a.channel.is_writable = False
    body = bytes(REMOTE_PART_SIZE_MAX + 1)
    client.send(call(methods.BasicPublish(routing_key=QUEUE)), *_content(body), publication(QUEUE, b"next"))
    cluster.run()
    assert client.hear() == []
    cluster.a.channel.is_writable = True
    cluster.a.traffic.writable()
    cluster.run()
    assert client.names() == ["basic.ack"]
    assert cluster.b.queue(QUEUE).message_count == 2


def _content(body: bytes) -> list[bytes]:
    """The header and the body frames of a message."""
    size = FRAME_SIZE_MAX - 8
    header = b"\x00\x3c\x00\x00" + len(body).to_bytes(8, "big") + b"\0\0"
    return [
        frame(2, 1, header),
        *(frame(3, 1, body[at : at + size]) for at in range(0, len(body), size)),
    ]


def test_parts_are_bounded(cluster: TwoNodes) -> None:
    part = bytes(REMOTE_PART_SIZE_MAX)
    for _ in range(REMOTE_PAYLOAD_SIZE_MAX // REMOTE_PART_SIZE_MAX + 1):
        cluster.b.traffic.received(PART, part)
    assert len(cluster.b.channel.ended) == 1
    assert "parts of" in cluster.b.channel.ended[0]


def test_nothing_is_handled_after_a_malformed_payload(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.b.traffic.received(9, encode_head(1, 0, VHOST))
    assert cluster.b.channel.ended == ["payload of remote queues: kind 9"]
    client.send(publication(QUEUE, b"a"))
    cluster.run()
    assert client.names() == []
    cluster.lose()
    assert client.names() == ["basic.nack"]
    cluster.begin()
    client.send(publication(QUEUE, b"b"))
    cluster.run()
    assert client.names() == ["basic.ack"]


def test_a_virtual_host_that_is_down_refuses_and_its_next_run_does_not(cluster: TwoNodes) -> None:
    client = declared(cluster)
    del cluster.b.server.vhost_services[VHOST]
    cluster.b.traffic.vhost_ended(VHOST)
    client.send(publication(QUEUE, b"a"))
    cluster.run()
    assert client.names() == ["basic.nack"]
    cluster.b.server.vhost_services[VHOST] = cluster.b.services
    client.send(publication(QUEUE, b"b"))
    cluster.run()
    assert client.names() == ["basic.ack"]
    assert cluster.b.queue(QUEUE).message_count == 1


def test_what_is_sent_to_a_virtual_host_that_is_starting_waits_for_it(cluster: TwoNodes) -> None:
    services = cluster.b.server.vhost_services.pop(VHOST)
    client = cluster.client(cluster.a)
    client.send(call(methods.QueueDeclare(queue=QUEUE)), call(methods.ConfirmSelect()))
    client.send(publication(QUEUE, b"a"), publication(QUEUE, b"b"))
    cluster.run()
    client.hear()
    cluster.b.server.vhost_services[VHOST] = services
    cluster.b.traffic.vhost_began(VHOST)
    cluster.run()
    assert client.names() == ["basic.ack"]
    assert cluster.b.queue(QUEUE).message_count == 2


def test_what_is_sent_to_a_virtual_host_that_does_not_start_waits_for_two_seconds(cluster: TwoNodes) -> None:
    del cluster.b.server.vhost_services[VHOST]
    client = declared(cluster)
    client.send(publication(QUEUE, b"a"))
    cluster.run()
    assert client.names() == []
    cluster.wait(REMOTE_PARKED_MS_MAX)
    assert client.names() == ["basic.nack"]


def test_a_virtual_host_that_ends_at_the_home_cancels_consumers(cluster: TwoNodes) -> None:
    client = declared(cluster)
    client.send(publication(QUEUE, b"a"))
    cluster.ask(client, methods.BasicConsume(queue=QUEUE, consumer_tag="t"))
    cluster.b.traffic.vhost_ended(VHOST)
    cluster.b.open_vhost()
    cluster.run()
    assert client.names() == ["basic.cancel"]
    assert cluster.ask(client, methods.BasicAck(1)) == [], "the delivery is of a session that has ended"
    [answer] = cluster.ask(client, methods.BasicConsume(queue=QUEUE, consumer_tag="u"))
    assert answer.method == methods.BasicConsumeOk("u")  # type: ignore[attr-defined]


def test_a_virtual_host_that_was_restarted_in_silence_begins_anew(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.ask(client, methods.BasicConsume(queue=QUEUE, consumer_tag="t"))
    cluster.b.open_vhost()
    client.send(publication(QUEUE, b"a"), publication(QUEUE, b"b"))
    cluster.run()
    assert client.names() == ["basic.cancel", "basic.nack"]
    client.send(publication(QUEUE, b"c"))
    cluster.run()
    assert client.names() == ["basic.ack"]


def test_a_virtual_host_that_ends_here_leaves_the_home(cluster: TwoNodes) -> None:
    client = declared(cluster)
    client.send(publication(QUEUE, b"a"))
    cluster.ask(client, methods.BasicConsume(queue=QUEUE, consumer_tag="t"))
    assert cluster.b.queue(QUEUE).unacked_count == 1
    client.connection.lost()
    cluster.run()
    cluster.a.traffic.vhost_ended(VHOST)
    cluster.a.open_vhost()
    cluster.run()
    queue = cluster.b.queue(QUEUE)
    assert (queue.message_count, queue.consumer_count) == (1, 0)
    client = cluster.client(cluster.a)
    [got] = cluster.ask(client, methods.BasicGet(queue=QUEUE))
    assert got.method.redelivered  # type: ignore[attr-defined]
    assert not cluster.b.channel.ended


def test_a_home_takes_back_what_was_on_its_way_to_a_virtual_host_that_has_ended(cluster: TwoNodes) -> None:
    client = declared(cluster)
    cluster.ask(client, methods.BasicConsume(queue=QUEUE, consumer_tag="t"))
    cluster.client(cluster.b).send(publication(QUEUE, b"a"), publication(QUEUE, b"b"))
    cluster.b.turn()
    assert cluster.b.channel.payloads
    client.connection.lost()
    cluster.a.services.close()
    cluster.a.traffic.vhost_ended(VHOST)
    cluster.run()
    queue = cluster.b.queue(QUEUE)
    assert (queue.message_count, queue.unacked_count, queue.consumer_count) == (2, 0, 0)
    assert not cluster.b.channel.ended


def test_payloads_of_an_ended_generation_are_ignored(cluster: TwoNodes) -> None:
    cluster.ask(declared(cluster), methods.QueueDeclare(queue=QUEUE, passive=True))
    for node, kind in ((cluster.a, FROM_HOME), (cluster.b, TO_HOME)):
        node.traffic.received(kind, encode_head(0, 0, VHOST) + b"\xff")
        assert not node.channel.ended


def _recorded() -> list[tuple[str, int, bytes]]:
    """The payloads of a conversation that has everything, with their receivers."""
    cluster = TwoNodes()
    recorded: list[tuple[str, int, bytes]] = []
    client = declared(cluster)
    script = (
        publication(QUEUE, b"one", delivery_mode=2, headers={"a": 1}) + publication(QUEUE, b"two"),
        call(methods.BasicGet(queue=QUEUE)),
        call(methods.BasicReject(1, True)),
        call(methods.BasicQos(prefetch_count=1)) + call(methods.BasicConsume(queue=QUEUE, consumer_tag="t")),
        call(methods.BasicAck(2)),
        call(methods.QueueDeclare(queue=QUEUE, passive=True)),
        call(methods.BasicCancel("t")),
        call(methods.QueuePurge(queue=QUEUE)),
        call(methods.BasicConsume(queue=QUEUE, consumer_tag="u", exclusive=True)),
        call(methods.BasicConsume(queue=QUEUE, consumer_tag="v")),
    )
    for data in script:
        client.send(data)
        while any(node.turns or node.channel.payloads for node in cluster.nodes):
            for node, other in ((cluster.a, "b"), (cluster.b, "a")):
                while node.turns:
                    node.turn()
                recorded += [(other, kind, body) for kind, body in node.channel.payloads]
                cluster.pass_one(node)
    return recorded


RECORDED = _recorded()


@pytest.mark.seeds(SEEDS)
def test_damaged_payloads_end_the_session_and_never_the_node(seed: int) -> None:
    chance = random.Random(seed)
    cluster = TwoNodes()
    client = declared(cluster)
    cluster.ask(client, methods.BasicConsume(queue=QUEUE, consumer_tag="t"))
    generation = 1
    for _ in range(30):
        receiver, kind, body = chance.choice(RECORDED)
        payload = bytearray(body)
        payload[1:5] = generation.to_bytes(4, "big")
        for _ in range(chance.randrange(3)):
            payload[chance.randrange(len(payload))] = chance.choice((0, 1, 2, 255, chance.randrange(256)))
        if chance.random() < 0.2:
            del payload[chance.randrange(len(payload)) + 1 :]
        node = cluster.a if receiver == "a" else cluster.b
        node.traffic.received(kind, bytes(payload))
        cluster.run()
        client.hear()
        if any(node.channel.ended for node in cluster.nodes):
            for node in cluster.nodes:
                node.channel.ended.clear()
            cluster.lose()
            cluster.begin()
            generation += 1
    assert not any(node.reports for node in cluster.nodes)
    cluster.lose()
    cluster.begin()
    client = cluster.client(cluster.a)
    found = cluster.ask(client, methods.QueueDeclare(queue=QUEUE, passive=True))
    assert len(found) == 1
    assert cluster.b.queue(QUEUE).unacked_count == 0


def test_a_channel_of_the_tests_keeps_its_order() -> None:
    channel = MemoryChannel()
    channel.send(1, b"a")
    channel.send(2, b"b")
    assert [*channel.payloads] == [(1, b"a"), (2, b"b")]
