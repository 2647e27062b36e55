"""Direct replies reach a requester on another node, as RabbitMQ 3.10.8 does (tests/oracle/cluster)."""

import pytest
from tests.unit.cluster.client_script import Script
from tests.unit.session.client import Client, call, publication

from warren.cluster.payload_writer import PayloadWriter
from warren.cluster.remote_codec import NAME, REPLY, TO_HOME, encode_head
from warren.limits_cluster import REMOTE_BATCH_SIZE, REMOTE_HELD_SIZE_MAX
from warren.metadata.commands import INTERNAL_USER
from warren.metadata.incarnation import Incarnation
from warren.metadata.member_commands import MemberDown, MemberUp
from warren.model.message import Message, encode_address
from warren.queues.reply import REPLY_BYTES_COUNT, new_reply_name
from warren.wire import methods

REQUESTS = "b.requests"
OPEN = methods.BasicConsume(queue="amq.rabbitmq.reply-to", consumer_tag="replies", no_ack=True)
OWN = new_reply_name(Incarnation(1, 1), bytes(REPLY_BYTES_COUNT))


def request(script: Script) -> str:
    """Let client 0 ask for something, and client 1 get it; returns where the reply goes."""
    script.send(1, methods.QueueDeclare(queue=REQUESTS))
    script.send(0, OPEN, publication(REQUESTS, b"?", reply_to="amq.rabbitmq.reply-to"))
    [got] = script.cluster.ask(script.clients[1], methods.BasicGet(queue=REQUESTS, no_ack=True))
    assert got.properties is not None  # type: ignore[attr-defined]
    name = got.properties.reply_to  # type: ignore[attr-defined]
    assert isinstance(name, str)
    return name


def answers(script: Script, number: int, *data: bytes) -> list[object]:
    """What client `number` hears when it has sent `data`."""
    script.clients[number].send(*data)
    script.cluster.run()
    return list(script.clients[number].hear())


def read(script: Script, replier: Client) -> list[bytes]:
    """The replies that client 0 gets when everything moves that can."""
    script.cluster.run()
    replier.hear()
    return [each.body for each in script.clients[0].hear()]


def kinds(found: list[object]) -> list[type]:
    return [type(each.method) for each in found]  # type: ignore[attr-defined]


@pytest.mark.parametrize("nodes", ["ab", "aa"])
def test_a_requester_gets_the_same_bytes_from_a_replier_of_another_node(nodes: str) -> None:
    script = Script(nodes)
    name = request(script)
    assert name == OWN
    script.received.clear()
    script.send(1, publication(name, b"!", headers={"a": 1}, correlation_id="7"), publication(name, b""))
    script.send(1, publication(name, b"x" * 9_000, delivery_mode=2, priority=3))
    other = Script("aa")
    request(other)
    other.received.clear()
    other.send(1, publication(name, b"!", headers={"a": 1}, correlation_id="7"), publication(name, b""))
    other.send(1, publication(name, b"x" * 9_000, delivery_mode=2, priority=3))
    assert script.received == other.received
    assert len(script.received[0]) > 100


def test_a_mandatory_reply_is_delivered_and_returned_and_then_confirmed() -> None:
    script = Script("ab")
    name = request(script)
    answers(script, 1, call(methods.ConfirmSelect()))
    script.clients[0].hear()
    found = answers(script, 1, publication(name, b"17", mandatory=True), publication(name, b"18"))
    assert kinds(found) == [methods.BasicReturn, methods.BasicAck]
    assert found[0].method.reply_code == 312  # type: ignore[attr-defined]
    assert found[1].method == methods.BasicAck(2, True)  # type: ignore[attr-defined]
    assert [each.body for each in script.clients[0].hear()] == [b"17", b"18"]


def test_a_transaction_sends_a_reply_when_it_is_committed() -> None:
    script = Script("ab")
    name = request(script)
    script.clients[0].hear()
    answers(script, 1, call(methods.TxSelect()), publication(name, b"late"))
    assert script.clients[0].hear() == []
    answers(script, 1, call(methods.TxCommit()))
    assert [each.body for each in script.clients[0].hear()] == [b"late"]


def test_another_node_says_whether_a_requester_is_there() -> None:
    script = Script("ab")
    name = request(script)
    ask = call(methods.QueueDeclare(queue=name, passive=True))
    [found] = answers(script, 1, ask)
    assert found.method == methods.QueueDeclareOk(name, 0, 1)  # type: ignore[attr-defined]
    answers(script, 0, call(methods.BasicCancel("replies")))
    [closed] = answers(script, 1, ask)
    assert closed.method.reply_text == f"NOT_FOUND - no queue '{name}' in vhost '/'"  # type: ignore[attr-defined]


def test_a_requester_is_unknown_when_the_session_ends_before_the_answer() -> None:
    script = Script("ab")
    name = request(script)
    client = script.clients[1]
    client.send(call(methods.QueueDeclare(queue=name, passive=True)))
    script.cluster.lose()
    # It looks once more, when its metadata are not out of date.
    script.cluster.run()
    [closed] = client.hear()
    assert closed.method.reply_text == f"NOT_FOUND - no queue '{name}' in vhost '/'"  # type: ignore[attr-defined]
    client.send(call(methods.ChannelCloseOk()), call(methods.ChannelOpen()))
    closed = answers(script, 1, call(methods.QueueDeclare(queue=name, passive=True)))[-1]
    assert closed.method.reply_text.startswith("NOT_FOUND")  # type: ignore[attr-defined]
    assert kinds(answers(script, 1, publication(name, b"lost"))) == []


def test_an_answer_that_nobody_waits_for_is_passed_over() -> None:
    script = Script("ab")
    name = request(script)
    client = script.clients[1]
    client.send(call(methods.QueueDeclare(queue=name, passive=True)))
    client.connection.lost()
    script.cluster.run()
    assert not script.cluster.a.channel.ended + script.cluster.b.channel.ended


def test_only_replies_to_the_present_run_of_another_member_are_sent() -> None:
    script = Script("ab")
    cluster = script.cluster
    name = request(script)
    sent = cluster.b.channel.count
    random = bytes(REPLY_BYTES_COUNT)
    for other in (
        new_reply_name(Incarnation(1, 2), random),
        new_reply_name(Incarnation(2, 1), random),
        new_reply_name(Incarnation(9, 1), random),
        name[:-1],
        name + "x",
        name.replace("reply-to.", "reply-to.!", 1)[: len(name)],
        "nothing",
    ):
        answers(script, 1, publication(other, b"to nobody"))
    assert cluster.b.channel.count == sent
    cluster.apply(MemberDown(id=1, incarnation=1), INTERNAL_USER, cluster.b)
    answers(script, 1, publication(name, b"to one that is gone"))
    assert cluster.b.channel.count == sent
    run = {"host": "h", "cluster_port": 1, "feature_level": 1}
    cluster.apply(MemberUp(id=1, incarnation=2, **run), INTERNAL_USER, cluster.b)  # type: ignore[arg-type]
    answers(script, 1, publication(name, b"to its next run"))
    assert cluster.b.channel.count == sent


def test_a_reply_to_one_who_is_gone_is_dropped() -> None:
    script = Script("ab")
    name = request(script)
    script.clients[0].connection.lost()
    script.cluster.run()
    assert kinds(answers(script, 1, publication(name, b"late"), call(methods.BasicQos()))) == [
        methods.BasicQosOk
    ]
    assert not script.cluster.a.channel.ended


def test_replies_that_the_link_does_not_take_are_bounded() -> None:
    script = Script("ab")
    name = request(script)
    script.clients[0].hear()
    cluster, client = script.cluster, script.clients[1]
    cluster.b.channel.is_writable = False
    body = b"x" * 4_000
    for _ in range(2 * REMOTE_HELD_SIZE_MAX // len(body)):
        client.send(publication(name, body))
    cluster.run()
    cluster.b.channel.is_writable = True
    cluster.b.traffic.writable()
    size = sum(len(payload) for _, payload in cluster.b.channel.payloads)
    assert REMOTE_HELD_SIZE_MAX - REMOTE_BATCH_SIZE < size < REMOTE_HELD_SIZE_MAX + 2 * REMOTE_BATCH_SIZE
    assert set(read(script, client)) == {body}
    client.send(publication(name, b"again"))
    assert read(script, client) == [b"again"]


def test_a_reply_to_a_queue_ends_the_session() -> None:
    cluster = Script("ab").cluster
    writer = PayloadWriter()
    writer.add_named(NAME, REQUESTS, 1)
    writer.reply(Message(encode_address("", REQUESTS), b"\0\0", b"x\xce", 0))
    assert REPLY in writer.take(b" ")
    writer.reply(Message(encode_address("", REQUESTS), b"\0\0", b"x\xce", 0))
    cluster.b.traffic.received(TO_HOME, writer.take(encode_head(1, 0, "/")))
    assert cluster.b.channel.ended == ["payload of remote queues: a direct reply to nobody"]
