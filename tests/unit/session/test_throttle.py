"""What is held up while there is an alarm, and what is not."""

from tests.unit.session.client import Broker, Client, call, publication

from warren.limits import HELD_FRAMES_SIZE_MAX
from warren.wire import methods

REASON = "low on memory"


def blocked(capabilities: dict[str, bool] | None = None) -> tuple[Broker, Client]:
    """A client with the channels 1 and 2 and a message to settle, under an alarm."""
    broker = Broker()
    client = broker.client(capabilities=capabilities)
    client.ask(methods.QueueDeclare(queue="q"))
    client.ask(methods.ChannelOpen(), methods.BasicConsume(queue="q"), channel=2)
    client.send(publication("q", b"0"))
    client.hear()
    broker.server.block(REASON)
    return broker, client


def test_a_client_is_told_when_it_publishes_and_not_before() -> None:
    broker, client = blocked()
    assert client.hear() == []
    client.send(publication("q", b"1"), publication("q", b"2"))
    assert [heard.method for heard in client.hear()] == [methods.ConnectionBlocked(REASON)]
    broker.server.block("")
    unblocked, *_ = client.hear()
    assert unblocked.method == methods.ConnectionUnblocked()


def test_a_client_that_does_not_know_of_it_is_not_told() -> None:
    broker, client = blocked(capabilities={})
    client.send(publication("q", b"1"))
    assert client.hear() == []
    broker.server.block("")
    assert client.bodies() == [b"1"]


def test_one_that_comes_during_the_alarm_is_held_up_as_well() -> None:
    broker, _ = blocked()
    late = broker.client()
    late.send(publication("q", b"1"))
    assert late.names() == ["connection.blocked"]


def test_one_that_does_not_publish_is_not_told_of_the_end_either() -> None:
    broker, client = blocked()
    broker.server.block("")
    assert client.hear() == []


def test_acknowledgements_of_other_channels_go_on() -> None:
    broker, client = blocked()
    client.send(publication("q", b"1"), call(methods.BasicAck(1), 2))
    assert broker.domain.vhost.queues["q"].unacked_count == 0
    assert broker.domain.vhost.queues["q"].published_count == 1


def test_what_was_held_goes_on_in_order() -> None:
    broker, client = blocked()
    client.send(publication("q", b"1"), call(methods.QueuePurge(queue="q")), publication("q", b"2"))
    client.hear()
    broker.server.block("")
    assert [(one.channel, one.method.name, one.body) for one in client.hear()] == [
        (0, "connection.unblocked", b""),
        (2, "basic.deliver", b"1"),
        (1, "queue.purge-ok", b""),
        (2, "basic.deliver", b"2"),
    ]


def test_a_new_reason_holds_on() -> None:
    broker, client = blocked()
    client.send(publication("q", b"1"))
    broker.server.block("low on disk")
    client.send(publication("q", b"2"))
    assert client.names() == ["connection.blocked"]
    broker.server.block("")
    client.hear()
    assert broker.domain.vhost.queues["q"].published_count == 3


def test_an_error_among_what_was_held_closes_the_channel() -> None:
    broker, client = blocked()
    client.send(publication("q", b"1", exchange="nope"), publication("q", b"2"))
    client.hear()
    broker.server.block("")
    assert client.names() == ["connection.unblocked", "channel.close"]
    assert broker.domain.vhost.queues["q"].published_count == 1


def test_a_channel_that_was_closed_behind_what_was_held_may_be_opened_again() -> None:
    broker, client = blocked()
    client.send(publication("q", b"1"), call(methods.ChannelClose()))
    client.hear()
    broker.server.block("")
    assert "channel.close-ok" in client.names()
    assert client.ask(methods.ChannelOpen())[0].method.name == "channel.open-ok"


def test_reading_pauses_at_the_bound_and_goes_on_when_the_alarm_ends() -> None:
    broker, client = blocked(capabilities={})
    big = publication("nowhere", b"x" * 1000)
    for _ in range(HELD_FRAMES_SIZE_MAX // len(big)):
        assert not client.connection.is_reading_paused
        client.send(big)
    client.send(big)
    assert client.connection.is_reading_paused
    wakes = client.wake.count
    broker.server.block("")
    assert not client.connection.is_reading_paused
    assert client.wake.count > wakes, "whoever reads the socket must look again"


def test_what_a_channel_held_is_forgotten_with_it() -> None:
    broker, client = blocked()
    big = publication("nowhere", b"x" * 1000)
    for _ in range(HELD_FRAMES_SIZE_MAX // len(big) + 1):
        client.send(big)
    channel = client.connection.channels[1]
    channel.release()
    assert not client.connection.is_reading_paused
    broker.server.block("")
    assert broker.domain.vhost.queues["q"].published_count == 1
