"""Consumers of a channel: prefetch, acknowledgement, and cancellation."""

import pytest
from tests.unit.session.client import Broker, Client, call, publication

from warren.queues import local
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


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("value", [True, "maybe", 3])
def test_x_cancel_on_ha_failover_has_no_effect_whatever_it_is(kind: str, value: object) -> None:
    client = Broker().client()
    consume = methods.BasicConsume(queue="q", arguments={"x-cancel-on-ha-failover": value})
    client.ask(methods.QueueDeclare(queue="q", durable=True, arguments={"x-queue-type": kind}), consume)
    client.send(publication("q", b"x"))
    assert client.bodies() == [b"x"]


def test_prefetch_count_applies_to_each_consumer() -> None:
    _, client = consuming(methods.BasicQos(prefetch_count=2), consumers=2)
    assert client.bodies() == [b"0", b"1", b"2", b"3"]
    client.send(call(methods.BasicAck(1)))
    assert client.bodies() == [b"4"]
    client.send(call(methods.BasicAck(4, True)))
    assert client.bodies() == [b"5", b"6", b"7"]


def test_global_prefetch_is_shared_by_the_channel() -> None:
    _, client = consuming(methods.BasicQos(prefetch_count=3, is_global=True), consumers=2)
    assert client.bodies() == [b"0", b"1", b"2"]
    client.send(call(methods.BasicNack(2, True, False)))
    assert client.bodies() == [b"3", b"4"]


def test_queues_that_share_a_global_prefetch_take_turns() -> None:
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


def test_raising_the_prefetch_resumes_delivery_at_once() -> None:
    _, client = consuming(methods.BasicQos(prefetch_count=1, is_global=True))
    assert client.bodies() == [b"0"]
    client.send(call(methods.BasicQos(prefetch_count=0, is_global=True)))
    assert len(client.bodies()) == 9


def test_prefetch_does_not_apply_without_acknowledgements() -> None:
    _, client = consuming(methods.BasicQos(prefetch_count=1))
    client.hear()
    client.ask(methods.BasicCancel("c0"))
    client.send(call(methods.BasicConsume(queue="q", no_ack=True)))
    assert len(client.bodies()) == 9


def test_requeued_messages_are_redelivered() -> None:
    _, client = consuming(methods.BasicQos(prefetch_count=2))
    client.hear()
    again = client.ask(methods.BasicNack(2, True, True))
    assert [(one.body, one.method.delivery_tag, one.method.redelivered) for one in again] == [
        (b"0", 3, True),
        (b"1", 4, True),
    ]


def test_unacknowledged_messages_of_a_cancelled_consumer_stay_with_the_channel() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=2))
    client.hear()
    assert client.ask(methods.BasicCancel("c0"))[0].method == methods.BasicCancelOk("c0")
    assert broker.services.vhost.queues["q"].unacked_count == 2
    assert client.ask(methods.BasicAck(2, True)) == []
    assert client.ask(methods.BasicCancel("nobody"))[0].method == methods.BasicCancelOk("nobody")


def test_consumer_tags_are_unique_and_can_be_reused() -> None:
    _, client = consuming()
    client.hear()
    client.ask(methods.BasicCancel("c0"))
    assert client.ask(methods.BasicConsume(queue="q", consumer_tag="c0"))[0].method.name == "basic.consume-ok"
    [close] = client.ask(methods.BasicConsume(queue="q", consumer_tag="c0"))
    assert (close.method.name, close.method.reply_code) == ("connection.close", 530)


def test_deleting_a_queue_cancels_its_consumers_after_the_answer() -> None:
    broker, client = consuming()
    silent = broker.client(capabilities={})
    silent.ask(methods.BasicConsume(queue="q"))
    client.hear()
    assert [received.method.name for received in client.ask(methods.QueueDelete(queue="q"))] == [
        "queue.delete-ok",
        "basic.cancel",
    ]
    assert silent.hear() == []
    assert client.ask(methods.BasicAck(1)) == []


def test_closing_a_channel_requeues_its_messages_in_order() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=3), consumers=2)
    client.ask(methods.ChannelClose())
    queue = broker.services.vhost.queues["q"]
    assert (queue.consumer_count, queue.unacked_count) == (0, 0)
    first = [queue.get() for _ in range(7)]
    assert [one.message.body for one in first] == [b"%d" % number for number in range(7)]
    assert [one.attempts for one in first] == [1] * 6 + [0]


def test_get_uses_a_delivery_tag_of_the_channel_and_returns_the_message_count() -> None:
    _, client = consuming(methods.BasicQos(prefetch_count=1))
    client.hear()
    first, second = client.ask(methods.BasicGet(queue="q", no_ack=True), methods.BasicGet(queue="q"))
    assert first.method == methods.BasicGetOk(2, False, "", "q", 8)
    assert second.method == methods.BasicGetOk(3, False, "", "q", 7)
    [close] = client.ask(methods.BasicAck(2))
    assert close.method.reply_text == "PRECONDITION_FAILED - unknown delivery tag 2"


def taken_back(broker: Broker, client: Client, *tags: int) -> int:
    """Revoke deliveries of channel 1 as an operator."""
    (connection,) = broker.server.connections
    return connection.channels[1].revoke(tags)


def test_a_revoked_delivery_returns_to_its_position_and_frees_the_prefetch() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=2))
    other = broker.client()
    assert client.bodies() == [b"0", b"1"]
    assert taken_back(broker_without(broker, other), client, 1) == 1
    (again,) = client.hear()
    assert (again.body, again.method.redelivered, again.method.delivery_tag) == (b"0", True, 3)


def broker_without(broker: Broker, client: Client) -> Broker:
    """`broker` after `client` has disconnected."""
    client.send(call(methods.ConnectionClose(200, "", 0, 0), 0))
    return broker


def test_a_late_acknowledgement_of_a_revoked_delivery_is_ignored() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=3))
    client.hear()
    assert taken_back(broker, client, 1, 2) == 2
    assert [(one.body, one.method.redelivered) for one in client.hear()] == [(b"0", True), (b"1", True)]
    client.send(call(methods.BasicAck(1)), call(methods.BasicNack(2)), call(methods.BasicReject(1)))
    assert client.names() == []
    # Tag 3 is still unacknowledged, and the redelivered messages have the tags 4 and 5.
    client.send(call(methods.BasicAck(3)))
    assert client.bodies() == [b"3"]
    client.send(call(methods.BasicAck(3)))
    assert client.names() == ["channel.close"]


def test_acknowledging_multiple_skips_revoked_deliveries() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=3))
    client.hear()
    broker.services.vhost.queues["q"].pause()
    assert taken_back(broker, client, 3) == 1
    client.send(call(methods.BasicAck(3, True)))
    assert client.names() == []
    queue = broker.services.vhost.queues["q"]
    assert (queue.unacked_count, queue.message_count) == (0, 8)


def test_a_delivery_acknowledged_in_a_transaction_is_not_revoked() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=2))
    client.hear()
    client.ask(methods.TxSelect())
    client.send(call(methods.BasicAck(1)))
    assert taken_back(broker, client, 1, 2) == 1
    client.hear()
    client.send(call(methods.BasicAck(2)), call(methods.TxCommit()))
    # The revoked message was delivered again, and only the first is acknowledged.
    assert client.names() == ["basic.deliver", "tx.commit-ok"]
    assert broker.services.vhost.queues["q"].acknowledged_count == 1


def test_revoked_deliveries_free_the_global_prefetch() -> None:
    broker, client = consuming(methods.BasicQos(prefetch_count=1, is_global=True))
    assert client.bodies() == [b"0"]
    assert taken_back(broker, client, 1) == 1
    assert client.bodies() == [b"0"]


def test_the_number_of_consumers_of_a_channel_is_bounded() -> None:
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


def test_the_number_of_consumers_of_a_queue_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "QUEUE_CONSUMERS_MAX", 2)
    broker = Broker()
    clients = [broker.client() for _ in range(3)]
    clients[0].ask(methods.QueueDeclare(queue="q"))
    said = [client.ask(methods.BasicConsume(queue="q"))[0].method for client in clients]
    assert [one.name for one in said] == ["basic.consume-ok", "basic.consume-ok", "channel.close"]
    assert (said[2].reply_code, said[2].reply_text) == (
        406,
        "PRECONDITION_FAILED - queue 'q' in vhost '/' has reached the maximum (2) of consumers",
    )
