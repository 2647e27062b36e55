"""The consumer timeout of a connection: who holds a delivery too long, and what happens then."""

import pytest
from tests.unit.session.client import Broker, Client, call, publication

from warren import limits
from warren.wire import methods
from warren.wire.table import Value


def test_a_consumer_beyond_its_acknowledgement_timeout_is_cancelled_and_no_other() -> None:
    broker = Broker(consumer_timeout_ms=10_000)
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"), methods.QueueDeclare(queue="other"))
    client.ask(
        methods.BasicConsume(queue="q", consumer_tag="slow"),
        methods.BasicConsume(queue="other", consumer_tag="fast"),
    )
    client.send(publication("q", b"x"))
    assert client.bodies() == [b"x"]
    client.expire(client.connection.deadline())
    assert client.hear() == []
    client.now = 9_000
    client.send(publication("other", b"y"))
    client.hear()
    for now in (10_000, 12_500):
        client.expire(now)
    assert [received.method for received in client.hear()] == [methods.BasicCancel("slow", True)]
    assert broker.services.vhost.queues["q"].message_count == 1
    assert broker.services.vhost.queues["other"].unacked_count == 1
    assert client.connection.is_open


def test_a_timed_out_consumer_closes_the_channel_of_a_client_that_would_not_notice() -> None:
    broker = Broker(consumer_timeout_ms=10_000)
    client = broker.client(capabilities={})
    client.ask(methods.QueueDeclare(queue="q"), methods.BasicConsume(queue="q", consumer_tag="slow"))
    client.send(publication("q", b"x"))
    assert client.bodies() == [b"x"]
    client.expire(client.connection.deadline())
    client.expire(12_500)
    [received] = client.hear()
    assert received.method == methods.ChannelClose(
        406,
        "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 10000 "
        "ms. This timeout value can be configured, see consumers doc guide to learn more",
        0,
        0,
    )
    assert broker.services.vhost.queues["q"].message_count == 1


def test_a_delivery_of_basic_get_that_is_held_too_long_closes_the_channel_and_returns() -> None:
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q", arguments={"x-consumer-timeout": 10_000}))
    client.send(publication("q", b"x"))
    client.ask(methods.BasicGet(queue="q"))
    client.expire(9_999)
    assert client.hear() == []
    client.expire(12_500)
    [received] = client.hear()
    assert isinstance(received.method, methods.ChannelClose)
    assert received.method.reply_code == 406
    assert "Timeout value used: 10000 ms" in received.method.reply_text
    assert broker.services.vhost.queues["q"].message_count == 1


def test_the_timeout_of_a_consumer_counts_before_that_of_its_queue() -> None:
    broker = Broker()
    client = broker.client()
    client.ask(
        methods.QueueDeclare(queue="q", arguments={"x-consumer-timeout": 60_000}),
        methods.BasicConsume(queue="q", consumer_tag="hasty", arguments={"x-consumer-timeout": 10_000}),
    )
    client.send(publication("q", b"x"))
    assert client.bodies() == [b"x"]
    client.expire(client.connection.deadline())
    client.expire(12_500)
    assert [received.method for received in client.hear()] == [methods.BasicCancel("hasty", True)]


@pytest.mark.parametrize(
    ("value", "reason"), [(-1, "{value_negative,-1}"), ("1000", '"expected integer, got longstr"')]
)
def test_a_consumer_timeout_that_is_no_time_is_refused(value: Value, reason: str) -> None:
    client = Broker().client()
    client.ask(methods.QueueDeclare(queue="q"))
    client.send(call(methods.BasicConsume(queue="q", arguments={"x-consumer-timeout": value})))
    [received] = client.hear()
    assert isinstance(received.method, methods.ChannelClose)
    assert (received.method.reply_code, received.method.reply_text) == (
        406,
        f"PRECONDITION_FAILED - invalid arg 'x-consumer-timeout' for queue 'q' in vhost '/': {reason}",
    )


def test_a_delivery_acknowledged_in_a_transaction_does_not_time_out() -> None:
    broker = Broker(consumer_timeout_ms=10_000)
    client = broker.client()
    client.ask(
        methods.QueueDeclare(queue="q"),
        methods.TxSelect(),
        methods.BasicConsume(queue="q", consumer_tag="slow"),
    )
    client.send(publication("q", b"x"), publication("q", b"y"), call(methods.TxCommit()))
    client.hear()
    client.send(call(methods.BasicAck(1)))
    client.expire(client.connection.deadline())
    client.expire(12_500)
    # The second delivery is still held, so that its consumer times out, with this delivery alone.
    assert [received.method for received in client.hear()] == [methods.BasicCancel("slow", True)]
    queue = broker.services.vhost.queues["q"]
    assert (queue.message_count, queue.unacked_count) == (1, 1)
    client.send(call(methods.TxCommit()))
    assert [received.method for received in client.hear()] == [methods.TxCommitOk()]
    assert (queue.message_count, queue.unacked_count) == (1, 0)


@pytest.mark.parametrize("is_fetched", [False, True])
def test_what_waits_for_tx_commit_is_held_again_after_a_rollback(*, is_fetched: bool) -> None:
    broker = Broker(consumer_timeout_ms=10_000)
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"), methods.TxSelect())
    client.send(publication("q", b"x"), call(methods.TxCommit()))
    client.hear()
    client.send(call(methods.BasicGet(queue="q") if is_fetched else methods.BasicConsume(queue="q")))
    assert client.hear()
    client.send(call(methods.BasicAck(1)))
    client.expire(client.connection.deadline())
    client.expire(12_500)
    assert client.hear() == []
    client.send(call(methods.TxRollback()))
    client.hear()
    client.expire(client.connection.deadline())
    client.expire(25_000)
    [received] = client.hear()
    assert isinstance(received.method, methods.ChannelClose if is_fetched else methods.BasicCancel)
    assert broker.services.vhost.queues["q"].message_count == 1


def timed_out(broker: Broker, *bodies: bytes, kind: str = "classic") -> Client:
    """A client whose only consumer has timed out while it held messages with `bodies`."""
    client = broker.client()
    client.ask(
        methods.QueueDeclare(queue="q", durable=True, arguments={"x-queue-type": kind}),
        methods.BasicConsume(queue="q", consumer_tag="slow"),
    )
    client.send(*(publication("q", body) for body in bodies))
    assert client.bodies() == list(bodies)
    client.expire(client.connection.deadline())
    client.expire(12_500)
    assert [received.method for received in client.hear()] == [methods.BasicCancel("slow", True)]
    return client


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_client_may_answer_its_cancellation_and_acknowledge_late(kind: str) -> None:
    broker = Broker(consumer_timeout_ms=10_000)
    client = timed_out(broker, b"x", b"y", kind=kind)
    queue = broker.services.vhost.queues["q"]
    assert queue.message_count == 2
    client.send(call(methods.BasicCancelOk("slow")), call(methods.BasicAck(1)))
    assert client.hear() == []
    assert queue.message_count == 1
    assert queue.unacked_count == 0
    client.send(call(methods.BasicAck(1)))
    assert queue.message_count == 1
    assert client.connection.is_open


@pytest.mark.parametrize(("tag", "left"), [(0, 0), (2, 1), (3, 0)])
def test_a_late_acknowledgement_may_be_of_several_messages(tag: int, left: int) -> None:
    broker = Broker(consumer_timeout_ms=10_000)
    client = timed_out(broker, b"x", b"y", b"z")
    client.send(call(methods.BasicAck(tag, True)))
    assert broker.services.vhost.queues["q"].message_count == left
    assert client.connection.is_open


def test_a_late_acknowledgement_leaves_a_message_to_the_consumer_that_has_it() -> None:
    broker = Broker(consumer_timeout_ms=10_000)
    client, other = timed_out(broker, b"x", b"y"), broker.client()
    other.ask(methods.BasicQos(prefetch_count=1), methods.BasicConsume(queue="q"))
    other.hear()
    queue = broker.services.vhost.queues["q"]
    client.send(call(methods.BasicAck(1)))
    assert (queue.message_count, queue.unacked_count) == (1, 1)
    other.send(call(methods.BasicNack(0, True, True)))
    assert (queue.message_count, queue.unacked_count) == (1, 1)


def test_a_late_acknowledgement_of_a_deleted_queue_has_no_effect_on_its_successor() -> None:
    broker = Broker(consumer_timeout_ms=10_000)
    client = timed_out(broker, b"x")
    client.ask(methods.QueueDelete(queue="q"), methods.QueueDeclare(queue="q", durable=True))
    client.send(publication("q", b"z"))
    client.send(call(methods.BasicAck(1)))
    assert broker.services.vhost.queues["q"].message_count == 1


def test_the_latest_timed_out_deliveries_are_remembered_up_to_a_bound() -> None:
    broker = Broker(consumer_timeout_ms=10_000)
    most = 2 * limits.LATE_ACKNOWLEDGEMENTS_MAX
    client = timed_out(broker, *([b""] * (most + 1)))
    queue = broker.services.vhost.queues["q"]
    client.send(call(methods.BasicAck(1)))
    assert queue.message_count == most + 1
    client.send(call(methods.BasicAck(most + 1)))
    assert queue.message_count == most
