"""Processing of frames by a channel, especially while a method waits."""

import pytest
from tests.unit.session.client import Broker, Client, call, frame, publication

from warren.limits import HELD_FRAMES_SIZE_MAX
from warren.metadata.commands import DeclareQueue
from warren.wire import methods
from warren.wire.method import Method


def slow() -> tuple[Broker, Client]:
    """A broker whose declarations wait until the test lets them continue."""
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"))
    broker.proposals.is_slow = True
    return broker, client


def test_frames_after_a_waiting_method_are_held() -> None:
    broker, client = slow()
    client.send(call(methods.QueueDeclare(queue="late")), publication("late", b"x"))
    client.send(call(methods.BasicGet(queue="late")))
    assert client.names() == []
    broker.proposals.arrive()
    assert client.names() == ["queue.declare-ok", "basic.get-ok"]


def test_other_channels_do_not_wait() -> None:
    broker, client = slow()
    client.ask(methods.ChannelOpen(), channel=2)
    client.send(call(methods.QueueDeclare(queue="late")), call(methods.BasicGet(queue="q"), 2))
    assert client.names() == ["basic.get-empty"]
    broker.proposals.arrive()
    assert client.names() == ["queue.declare-ok"]


def test_a_held_method_may_have_to_wait_again() -> None:
    broker, client = slow()
    client.send(*(call(methods.QueueDeclare(queue=name)) for name in "abc"))
    for _ in range(3):
        assert client.names() == []
        broker.proposals.arrive()
        assert client.names() == ["queue.declare-ok"]


def test_an_error_after_a_wait_closes_the_channel() -> None:
    broker, client = slow()
    client.send(
        call(methods.QueueDeclare(queue="late")), call(methods.BasicAck(7)), publication("late", b"x")
    )
    broker.proposals.arrive()
    assert client.names() == ["queue.declare-ok", "channel.close"]
    assert broker.services.vhost.queues["late"].message_count == 0


def test_a_hard_error_in_a_held_frame_closes_the_connection() -> None:
    broker, client = slow()
    client.send(call(methods.QueueDeclare(queue="late")), frame(3, 1, b"x"))
    broker.proposals.arrive()
    assert client.names() == ["queue.declare-ok", "connection.close"]


def test_a_channel_closed_by_a_held_frame_can_be_reopened() -> None:
    broker, client = slow()
    client.send(call(methods.QueueDeclare(queue="late")), call(methods.ChannelClose()))
    broker.proposals.arrive()
    assert client.names() == ["queue.declare-ok", "channel.close-ok"]
    assert client.ask(methods.ChannelOpen())[0].method.name == "channel.open-ok"
    assert broker.server.channels_of("guest") == 1


def test_a_client_that_closes_the_channel_behind_a_method_that_fails_is_answered() -> None:
    broker, client = slow()
    client.send(call(methods.QueueDeclare(queue="late")), call(methods.ChannelClose()))
    assert client.names() == []
    # Somebody else declares it before, so that the declaration is refused.
    broker.proposals.apply(DeclareQueue(vhost="/", name="late", durable=True))
    broker.proposals.arrive()
    assert client.names() == ["channel.close", "channel.close-ok"]
    client.send(call(methods.ChannelCloseOk()))
    assert client.ask(methods.ChannelOpen())[0].method.name == "channel.open-ok"


def test_held_frames_of_a_disconnected_client_are_dropped() -> None:
    broker, client = slow()
    client.send(call(methods.QueueDeclare(queue="mine", exclusive=True)), publication("q", b"x"))
    client.connection.lost()
    broker.proposals.arrive()
    assert list(broker.services.vhost.queues) == ["q"]
    assert broker.services.vhost.queues["q"].message_count == 0


def test_reading_pauses_while_too_much_is_held() -> None:
    broker, client = slow()
    client.send(call(methods.QueueDeclare(queue="late")))
    big = publication("q", b"x" * 1000)
    for _ in range(HELD_FRAMES_SIZE_MAX // len(big) + 1):
        client.send(big)
    assert client.connection.is_reading_paused
    broker.proposals.arrive()
    assert not client.connection.is_reading_paused


@pytest.mark.parametrize(
    ("payload", "code"),
    [(b"", 501), (b"\x00\x3c", 501), (b"\x00\x3c\x00\x63", 503), (methods.BasicDeliver().encode(), 503)],
)
def test_a_method_of_the_server_closes_the_connection(payload: bytes, code: int) -> None:
    _, client = slow()
    client.send(frame(1, 1, payload))
    [received] = client.hear()
    assert (received.method.name, received.method.reply_code) == ("connection.close", code)


def test_a_frame_of_an_unknown_type_closes_the_connection() -> None:
    _, client = slow()
    client.send(frame(4, 1, b"x"))
    [received] = client.hear()
    assert (received.method.name, received.method.reply_code) == ("connection.close", 501)


def test_a_second_channel_open_closes_the_connection() -> None:
    _, client = slow()
    [received] = client.ask(methods.ChannelOpen())
    assert received.method.reply_text == "CHANNEL_ERROR - second 'channel.open' seen"


def test_confirm_and_transaction_modes_cannot_be_combined() -> None:
    for first, second in (
        (methods.ConfirmSelect, methods.TxSelect),
        (methods.TxSelect, methods.ConfirmSelect),
    ):
        _, client = slow()
        _, close = client.ask(first(), second())
        assert (close.method.name, close.method.reply_code) == ("channel.close", 406)


@pytest.mark.parametrize("method", [methods.TxCommit(), methods.TxRollback()])
def test_commit_without_select_is_refused(method: methods.Method) -> None:
    _, client = slow()
    [close] = client.ask(method)
    assert close.method.reply_text == "PRECONDITION_FAILED - channel is not transactional"


def test_recover_requeues_and_redelivers_everything() -> None:
    _, client = slow()
    client.send(publication("q", b"a"), publication("q", b"b"), call(methods.BasicConsume(queue="q")))
    client.hear()
    ok, *again = client.ask(methods.BasicRecover(requeue=True))
    assert ok.method == methods.BasicRecoverOk()
    assert [(one.body, one.method.redelivered) for one in again] == [(b"a", True), (b"b", True)]


def test_confirms_of_earlier_publishes_precede_close_ok() -> None:
    _, client = slow()
    client.ask(methods.ConfirmSelect())
    client.send(publication("q", b"a"), call(methods.ChannelClose()))
    assert client.names() == ["basic.ack", "channel.close-ok"]


@pytest.mark.parametrize(
    "settle",
    [methods.BasicAck(2, True), methods.BasicNack(2, True, False), methods.BasicAck(0, True)],
    ids=["ack", "nack", "all"],
)
def test_acknowledgements_overtake_held_frames_of_their_channel(settle: Method) -> None:
    broker, client = consuming()
    broker.block("memory")
    client.send(publication("r", b"held"), call(settle), publication("r", b"behind"))
    queues = broker.services.vhost.queues
    assert (queues["q"].unacked_count, queues["r"].message_count) == (0, 0)
    broker.block("")
    assert queues["r"].message_count == 2


@pytest.mark.parametrize("tag", [0, 3, 99])
def test_an_invalid_acknowledgement_waits_behind_held_frames(tag: int) -> None:
    broker, client = consuming()
    broker.block("memory")
    client.hear()
    client.send(publication("r", b"held"), call(methods.BasicAck(tag)))
    assert "channel.close" not in client.names()
    broker.block("")
    assert broker.services.vhost.queues["r"].message_count == 1
    assert "channel.close" in client.names()


def test_in_a_transaction_acknowledgements_wait_behind_held_frames() -> None:
    broker, client = consuming()
    client.ask(methods.TxSelect())
    broker.block("memory")
    client.send(publication("r", b"held"), call(methods.BasicAck(2, True)), call(methods.TxCommit()))
    assert broker.services.vhost.queues["q"].unacked_count == 2
    broker.block("")
    queues = broker.services.vhost.queues
    assert (queues["q"].unacked_count, queues["r"].message_count) == (0, 1)


def consuming() -> tuple[Broker, Client]:
    """A channel with two unacknowledged messages of queue q, and a queue r."""
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"), methods.QueueDeclare(queue="r"))
    client.send(publication("q", b"1"), publication("q", b"2"))
    client.ask(methods.BasicConsume(queue="q"))
    return broker, client
