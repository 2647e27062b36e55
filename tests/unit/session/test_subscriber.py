"""What a channel consumes: prefetch of each kind, settling, and who is told of an end."""

import pytest
from tests.unit.session.client import Broker, Client, call, publication

from warren.session import consume_handler as consuming_half
from warren.wire import methods


def consuming(*qos: methods.BasicQos, consumers: int = 1) -> tuple[Broker, Client]:
    """A channel that consumes from a queue with the messages 0 to 9."""
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"))
    client.send(*(publication("q", b"%d" % number) for number in range(10)))
    client.send(*(call(method) for method in qos))
    client.send(
        *(call(methods.BasicConsume(queue="q", consumer_tag=f"c{number}")) for number in range(consumers))
    )
    return broker, client


def test_the_prefetch_of_a_consumer_is_its_own() -> None:
    _, client = consuming(methods.BasicQos(prefetch_count=2), consumers=2)
    assert client.bodies() == [b"0", b"1", b"2", b"3"]
    client.send(call(methods.BasicAck(1)))
    assert client.bodies() == [b"4"]
    client.send(call(methods.BasicAck(4, True)))
    assert client.bodies() == [b"5", b"6", b"7"]


def test_the_prefetch_of_a_channel_is_shared() -> None:
    _, client = consuming(methods.BasicQos(prefetch_count=3, is_global=True), consumers=2)
    assert client.bodies() == [b"0", b"1", b"2"]
    client.send(call(methods.BasicNack(2, True, False)))
    assert client.bodies() == [b"3", b"4"]


def test_queues_that_share_the_prefetch_of_a_channel_all_have_their_turns() -> None:
    client = Broker().client()
    client.ask(methods.BasicQos(prefetch_count=1, is_global=True))
    for name in ("q", "r", "s"):
        client.ask(methods.QueueDeclare(queue=name), methods.BasicConsume(queue=name, consumer_tag=name))
        client.send(*(publication(name, name.encode()) for _ in range(4)))
    client.hear()
    served = []
    for tag in range(1, 10):
        client.send(call(methods.BasicAck(tag)))
        served += client.bodies()
    assert sorted(served) == [b"q"] * 3 + [b"r"] * 3 + [b"s"] * 3


def test_a_larger_prefetch_lets_the_channel_go_on_at_once() -> None:
    _, client = consuming(methods.BasicQos(prefetch_count=1, is_global=True))
    assert client.bodies() == [b"0"]
    client.send(call(methods.BasicQos(prefetch_count=0, is_global=True)))
    assert len(client.bodies()) == 9


def test_a_consumer_without_acknowledgements_knows_no_prefetch() -> None:
    _, client = consuming(methods.BasicQos(prefetch_count=1))
    client.hear()
    client.ask(methods.BasicCancel("c0"))
    client.send(call(methods.BasicConsume(queue="q", no_ack=True)))
    assert len(client.bodies()) == 9


def test_what_is_requeued_comes_again_as_such() -> None:
    _, client = consuming(methods.BasicQos(prefetch_count=2))
    client.hear()
    again = client.ask(methods.BasicNack(2, True, True))
    assert [(one.body, one.method.delivery_tag, one.method.redelivered) for one in again] == [
        (b"0", 3, True),
        (b"1", 4, True),
    ]


def test_a_cancelled_consumer_leaves_what_it_has_with_the_channel() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=2))
    client.hear()
    assert client.ask(methods.BasicCancel("c0"))[0].method == methods.BasicCancelOk("c0")
    assert broker.services.vhost.queues["q"].unacked_count == 2
    assert client.ask(methods.BasicAck(2, True)) == []
    assert client.ask(methods.BasicCancel("nobody"))[0].method == methods.BasicCancelOk("nobody")


def test_tags_are_not_used_twice_and_may_be_used_again() -> None:
    _, client = consuming()
    client.hear()
    client.ask(methods.BasicCancel("c0"))
    assert client.ask(methods.BasicConsume(queue="q", consumer_tag="c0"))[0].method.name == "basic.consume-ok"
    [close] = client.ask(methods.BasicConsume(queue="q", consumer_tag="c0"))
    assert (close.method.name, close.method.reply_code) == ("connection.close", 530)


def test_a_deletion_ends_the_consumers_after_its_answer_and_tells_who_wants_to_know() -> None:
    broker, client = consuming()
    silent = broker.client(capabilities={})
    silent.ask(methods.BasicConsume(queue="q"))
    client.hear()
    assert [heard.method.name for heard in client.ask(methods.QueueDelete(queue="q"))] == [
        "queue.delete-ok",
        "basic.cancel",
    ]
    assert silent.hear() == []
    assert client.ask(methods.BasicAck(1)) == []


def test_a_closed_channel_gives_everything_back_in_order() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=3), consumers=2)
    client.ask(methods.ChannelClose())
    queue = broker.services.vhost.queues["q"]
    assert (queue.consumer_count, queue.unacked_count) == (0, 0)
    first = [queue.get() for _ in range(7)]
    assert [one.message.body for one in first] == [b"%d" % number for number in range(7)]
    assert [one.attempts for one in first] == [1] * 6 + [0]


def test_a_get_has_a_tag_of_the_channel_and_says_how_many_wait() -> None:
    _, client = consuming(methods.BasicQos(prefetch_count=1))
    client.hear()
    first, second = client.ask(methods.BasicGet(queue="q", no_ack=True), methods.BasicGet(queue="q"))
    assert first.method == methods.BasicGetOk(2, False, "", "q", 8)
    assert second.method == methods.BasicGetOk(3, False, "", "q", 7)
    [close] = client.ask(methods.BasicAck(2))
    assert close.method.reply_text == "PRECONDITION_FAILED - unknown delivery tag 2"


def taken_back(broker: Broker, client: Client, *tags: int) -> int:
    """Have an operator take deliveries of channel 1 back."""
    (connection,) = broker.server.connections
    return connection.channels[1].revoke(tags)


def test_what_is_taken_back_goes_to_its_place_and_frees_the_prefetch() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=2))
    other = broker.client()
    assert client.bodies() == [b"0", b"1"]
    assert taken_back(broker_without(broker, other), client, 1) == 1
    (again,) = client.hear()
    assert (again.body, again.method.redelivered, again.method.delivery_tag) == (b"0", True, 3)


def broker_without(broker: Broker, client: Client) -> Broker:
    """`broker` when `client` is gone."""
    client.send(call(methods.ConnectionClose(200, "", 0, 0), 0))
    return broker


def test_a_late_settlement_of_what_was_taken_back_closes_nothing() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=3))
    client.hear()
    assert taken_back(broker, client, 1, 2) == 2
    assert [(one.body, one.method.redelivered) for one in client.hear()] == [(b"0", True), (b"1", True)]
    client.send(call(methods.BasicAck(1)), call(methods.BasicNack(2)), call(methods.BasicReject(1)))
    assert client.names() == []
    # Tag 3 is held still, and what came again is 4 and 5.
    client.send(call(methods.BasicAck(3)))
    assert client.bodies() == [b"3"]
    client.send(call(methods.BasicAck(3)))
    assert client.names() == ["channel.close"]


def test_multiple_over_what_was_taken_back_settles_the_rest() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=3))
    client.hear()
    broker.services.vhost.queues["q"].pause()
    assert taken_back(broker, client, 3) == 1
    client.send(call(methods.BasicAck(3, True)))
    assert client.names() == []
    queue = broker.services.vhost.queues["q"]
    assert (queue.unacked_count, queue.message_count) == (0, 8)


def test_what_waits_for_its_commit_is_not_taken_back() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=2))
    client.hear()
    client.ask(methods.TxSelect())
    client.send(call(methods.BasicAck(1)))
    assert taken_back(broker, client, 1, 2) == 1
    client.hear()
    client.send(call(methods.BasicAck(2)), call(methods.TxCommit()))
    # What was taken back was handed out again, and only the first is done with.
    assert client.names() == ["basic.deliver", "tx.commit-ok"]
    assert broker.services.vhost.queues["q"].acknowledged_count == 1


def test_the_prefetch_of_a_channel_has_room_for_what_was_taken_back() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=1, is_global=True))
    assert client.bodies() == [b"0"]
    assert taken_back(broker, client, 1) == 1
    assert client.bodies() == [b"0"]


def test_a_channel_has_so_many_consumers_at_most() -> None:
    client = Broker(consumers_per_channel_max=2).client()
    client.ask(methods.QueueDeclare(queue="q"))
    for tag in ("a", "b"):
        client.ask(methods.BasicConsume(queue="q", consumer_tag=tag))
    client.ask(methods.BasicCancel("a"))
    client.ask(methods.BasicConsume(queue="q", consumer_tag="c"))
    [close] = client.ask(methods.BasicConsume(queue="q", consumer_tag="d"))
    assert (close.method.name, close.method.reply_code, close.method.reply_text) == (
        "connection.close",
        530,
        "NOT_ALLOWED - reached maximum (2) of consumers per channel",
    )


def test_a_queue_has_so_many_consumers_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consuming_half, "QUEUE_CONSUMERS_MAX", 2)
    broker = Broker()
    clients = [broker.client() for _ in range(3)]
    clients[0].ask(methods.QueueDeclare(queue="q"))
    said = [client.ask(methods.BasicConsume(queue="q"))[0].method for client in clients]
    assert [one.name for one in said] == ["basic.consume-ok", "basic.consume-ok", "channel.close"]
    assert (said[2].reply_code, said[2].reply_text) == (
        406,
        "PRECONDITION_FAILED - queue 'q' in vhost '/' has reached the maximum (2) of consumers",
    )
