"""All messages of a failed consumer are requeued, in order, before another consumer receives any."""

from collections.abc import Callable

import pytest
from tests.unit.session.client import Broker, Client, call, publication

from warren.errors import ConnectionForced
from warren.wire import methods

SINGLE = {"x-single-active-consumer": True}
DIGITS = [b"%d" % number for number in range(8)]


def held_and_waiting(
    arguments: dict[str, object], *, channels: int = 1, durable: bool = False
) -> tuple[Client, Client]:
    """A client with the first of eight messages unacknowledged on several channels, and a second one that
    waits.
    """
    broker = Broker()
    first, second = broker.client(), broker.client()
    first.ask(methods.QueueDeclare(queue="q", durable=durable, arguments=arguments))
    for number in range(1, channels + 1):
        if number > 1:
            first.ask(methods.ChannelOpen(), channel=number)
        first.ask(methods.BasicQos(prefetch_count=6 // channels), channel=number)
        first.ask(methods.BasicConsume(queue="q", consumer_tag=f"c{number}"), channel=number)
    first.send(*(publication("q", body) for body in DIGITS))
    first.hear()
    return first, second


def consumes(client: Client, channel: int = 1) -> None:
    client.send(call(methods.BasicConsume(queue="q", consumer_tag="next"), channel))


def closes_channel(client: Client) -> None:
    client.send(call(methods.ChannelClose(200, "", 0, 0)))


def fails_channel(client: Client) -> None:
    client.send(call(methods.BasicAck(99)))


def closes_connection(client: Client) -> None:
    client.send(call(methods.ConnectionClose(200, "", 0, 0), channel=0))


def is_lost(client: Client) -> None:
    client.connection.lost()


def is_killed(client: Client) -> None:
    client.connection.close(ConnectionForced("by an operator"))


def hits_an_error(client: Client) -> None:
    client.send(call(methods.BasicConsume(queue="q", consumer_tag="c1")))


def requeues(client: Client) -> None:
    client.send(call(methods.BasicNack(0, True, True)))


def recovers(client: Client) -> None:
    client.send(call(methods.BasicRecover(True)))


ENDS = [closes_channel, fails_channel, closes_connection, is_lost, is_killed, hits_an_error]


@pytest.mark.parametrize("ends", ENDS)
def test_the_next_active_consumer_receives_all_messages_in_order(ends: Callable[[Client], None]) -> None:
    first, second = held_and_waiting(SINGLE)
    consumes(second)
    ends(first)
    assert second.bodies() == DIGITS


def test_the_next_active_consumer_may_be_on_another_channel_of_the_connection() -> None:
    first, _ = held_and_waiting(SINGLE)
    first.ask(methods.ChannelOpen(), channel=2)
    consumes(first, channel=2)
    closes_channel(first)
    assert first.bodies() == DIGITS


@pytest.mark.parametrize("ends", [closes_connection, is_lost, is_killed, hits_an_error])
def test_messages_of_several_channels_are_redelivered_in_order(ends: Callable[[Client], None]) -> None:
    first, second = held_and_waiting({}, channels=2)
    consumes(second)
    assert second.bodies() == [b"6", b"7"]
    ends(first)
    assert second.bodies() == DIGITS[:6]


def test_messages_of_two_timed_out_consumers_are_requeued_before_any_is_redelivered() -> None:
    broker = Broker(consumer_timeout_ms=10_000)
    first, second = broker.client(), broker.client()
    first.ask(methods.QueueDeclare(queue="q"), methods.BasicQos(prefetch_count=3))
    for tag in ("a", "b"):
        first.ask(methods.BasicConsume(queue="q", consumer_tag=tag))
    first.send(*(publication("q", body) for body in DIGITS))
    consumes(second)
    assert second.bodies() == DIGITS[6:]
    first.expire(60_000)
    assert second.bodies() == DIGITS[:6]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_the_next_active_consumer_receives_ready_messages_when_the_active_one_cancels(kind: str) -> None:
    first, second = held_and_waiting(SINGLE | {"x-queue-type": kind}, durable=True)
    consumes(second)
    assert second.bodies() == []
    first.ask(methods.BasicCancel("c1"))
    assert second.bodies() == DIGITS[6:]


@pytest.mark.parametrize("ends", [*ENDS[:-1], requeues, recovers])
def test_the_next_active_consumer_receives_what_a_cancelled_one_returns(
    ends: Callable[[Client], None],
) -> None:
    first, second = held_and_waiting(SINGLE)
    consumes(second)
    first.ask(methods.BasicCancel("c1"))
    assert second.bodies() == DIGITS[6:]
    ends(first)
    assert second.bodies() == DIGITS[:6]
