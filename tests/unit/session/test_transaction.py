"""A transaction is buffered entirely, and executed in order or discarded."""

from tests.unit.session.client import Broker, Client, call, publication

from warren.model.message import BODY_END, NO_PROPERTIES, Message
from warren.session.transaction import Transaction
from warren.wire import methods


def selected() -> tuple[Broker, Client]:
    """A transactional channel with the unacknowledged deliveries 1, 2 and 3."""
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"), methods.TxSelect())
    client.ask(methods.ChannelOpen(), channel=2)
    client.send(*(publication("q", body, channel=2) for body in (b"1", b"2", b"3")))
    client.ask(*(methods.BasicGet(queue="q") for _ in range(3)))
    return broker, client


def test_the_operations_are_returned_once() -> None:
    transaction = Transaction()
    message = Message(b"\0\0", NO_PROPERTIES, BODY_END, 0)
    transaction.publish(message, True)
    transaction.settle([1, 2], 0)
    assert transaction.settled == {1, 2}
    assert transaction.take() == ([(message, True)], [([1, 2], 0)])
    assert transaction.take() == ([], [])
    assert transaction.settled == set()


def test_a_publish_beyond_the_limit_of_a_transaction_closes_the_channel() -> None:
    client = Broker(transaction_publishes_max=2).client()
    client.ask(methods.TxSelect())
    client.send(publication("q", b"1"), publication("q", b"2"))
    client.ask(methods.TxCommit())
    assert [received.method.name for received in client.hear()] == []
    client.send(*(publication("q", body) for body in (b"1", b"2", b"3")))
    [close] = client.hear()
    assert close.method.reply_text == (
        "PRECONDITION_FAILED - transaction has reached the maximum of 2 uncommitted publishes"
    )


def test_nothing_is_executed_before_the_commit() -> None:
    broker, client = selected()
    queue = broker.services.vhost.queues["q"]
    client.send(publication("q", b"4"), call(methods.BasicAck(2, True)), call(methods.BasicReject(3, True)))
    assert (queue.published_count, queue.unacked_count) == (3, 3)
    assert [received.method.name for received in client.ask(methods.TxCommit())] == ["tx.commit-ok"]
    assert (queue.published_count, queue.unacked_count, queue.acknowledged_count) == (4, 0, 2)
    assert [queue.get().message.body for _ in range(2)] == [b"3", b"4"]


def test_after_a_rollback_deliveries_can_be_acknowledged_again() -> None:
    broker, client = selected()
    queue = broker.services.vhost.queues["q"]
    client.send(publication("q", b"4"), call(methods.BasicAck(0, True)))
    client.ask(methods.TxRollback(), methods.TxCommit())
    assert (queue.published_count, queue.unacked_count) == (3, 3)
    client.ask(methods.BasicAck(3, True), methods.TxCommit())
    assert queue.unacked_count == 0


def test_a_delivery_cannot_be_acknowledged_twice_in_a_transaction() -> None:
    _, client = selected()
    [close] = client.ask(methods.BasicAck(2), methods.BasicAck(2))
    assert close.method.reply_text == "PRECONDITION_FAILED - unknown delivery tag 2"


def test_a_mandatory_message_is_returned_at_the_commit() -> None:
    _, client = selected()
    client.send(publication("nobody", b"x", mandatory=True))
    assert client.hear() == []
    assert [received.method.name for received in client.ask(methods.TxCommit())] == [
        "basic.return",
        "tx.commit-ok",
    ]


def test_closing_the_channel_discards_the_transaction() -> None:
    broker, client = selected()
    client.send(publication("q", b"4"), call(methods.BasicAck(1)), call(methods.ChannelClose()))
    queue = broker.services.vhost.queues["q"]
    assert (queue.published_count, queue.message_count) == (3, 3)
