"""Publishers are held back during an alarm or by a slow disk; other operations are not."""

import pytest
from tests.unit.session.client import Broker, Client, call, publication

from warren.limits import (
    FLOW_SHOWN_MS,
    HELD_FOR_CREDIT_SIZE_MAX,
    HELD_FRAMES_SIZE_MAX,
    HELD_FRAMES_TOTAL_SIZE_MAX,
    WORK_PER_TURN_MAX,
)
from warren.wire import methods

REASON = "low on memory"


def blocked(capabilities: dict[str, bool] | None = None) -> tuple[Broker, Client]:
    """A client with the channels 1 and 2 and an unacknowledged message, during an alarm."""
    broker = Broker()
    client = broker.client(capabilities=capabilities)
    client.ask(methods.QueueDeclare(queue="q"))
    client.ask(methods.ChannelOpen(), methods.BasicConsume(queue="q"), channel=2)
    client.send(publication("q", b"0"))
    client.hear()
    broker.block(REASON)
    return broker, client


def test_a_client_is_notified_of_an_alarm_when_it_publishes() -> None:
    broker, client = blocked()
    assert client.hear() == []
    client.send(publication("q", b"1"), publication("q", b"2"))
    assert [received.method for received in client.hear()] == [methods.ConnectionBlocked(REASON)]
    broker.block("")
    unblocked, *_ = client.hear()
    assert unblocked.method == methods.ConnectionUnblocked()


def test_a_client_without_the_capability_is_not_notified() -> None:
    broker, client = blocked(capabilities={})
    client.send(publication("q", b"1"))
    assert client.hear() == []
    broker.block("")
    assert client.bodies() == [b"1"]


def test_a_client_that_connects_during_an_alarm_is_held_back() -> None:
    broker, _ = blocked()
    late = broker.client()
    late.send(publication("q", b"1"))
    assert late.names() == ["connection.blocked"]


@pytest.mark.parametrize("reason", ["", REASON])
def test_an_alarm_that_changes_during_a_handshake_applies(reason: str) -> None:
    broker = Broker()
    broker.client().ask(methods.QueueDeclare(queue="q"))
    broker.block("" if reason else REASON)
    late = broker.connect()
    late.send(b"AMQP\x00\x00\x09\x01")
    late.hear()
    broker.block(reason)
    late.log_in()
    late.send(publication("q", b"1"))
    assert late.names() == (["connection.blocked"] if reason else [])
    assert published(broker) == (0 if reason else 1)


def test_a_client_that_does_not_publish_is_not_notified_of_the_end_either() -> None:
    broker, client = blocked()
    broker.block("")
    assert client.hear() == []


def test_acknowledgements_on_other_channels_are_processed() -> None:
    broker, client = blocked()
    client.send(publication("q", b"1"), call(methods.BasicAck(1), 2))
    assert broker.services.vhost.queues["q"].unacked_count == 0
    assert broker.services.vhost.queues["q"].published_count == 1


def test_what_settles_waits_behind_a_frame_that_settles_and_is_held() -> None:
    broker, client = blocked()
    queue = broker.services.vhost.queues["q"]
    # The tag of the first is known when the message before it is published.
    first, second = methods.BasicReject(2, False), methods.BasicNack(1, False, False)
    client.send(publication("q", b"1", channel=2), call(first, 2), call(second, 2))
    assert queue.unacked_count == 1
    broker.block("")
    assert [one.method.name for one in client.hear() if one.channel == 2] == ["basic.deliver"]
    assert (queue.unacked_count, queue.total_count) == (0, 0)


def test_held_frames_are_processed_in_order() -> None:
    broker, client = blocked()
    client.send(publication("q", b"1"), call(methods.QueuePurge(queue="q")), publication("q", b"2"))
    client.hear()
    broker.block("")
    assert [(one.channel, one.method.name, one.body) for one in client.hear()] == [
        (0, "connection.unblocked", b""),
        (2, "basic.deliver", b"1"),
        (1, "queue.purge-ok", b""),
        (2, "basic.deliver", b"2"),
    ]


def test_an_alarm_with_a_new_reason_still_holds() -> None:
    broker, client = blocked()
    client.send(publication("q", b"1"))
    broker.block("low on disk")
    client.send(publication("q", b"2"))
    assert client.names() == ["connection.blocked"]
    broker.block("")
    client.hear()
    assert broker.services.vhost.queues["q"].published_count == 3


def test_an_error_in_a_held_frame_closes_the_channel() -> None:
    broker, client = blocked()
    client.send(publication("q", b"1", exchange="nope"), publication("q", b"2"))
    client.hear()
    broker.block("")
    assert client.names() == ["connection.unblocked", "channel.close"]
    assert broker.services.vhost.queues["q"].published_count == 1


def test_a_channel_closed_by_a_held_frame_can_be_reopened() -> None:
    broker, client = blocked()
    client.send(publication("q", b"1"), call(methods.ChannelClose()))
    client.hear()
    broker.block("")
    assert "channel.close-ok" in client.names()
    assert client.ask(methods.ChannelOpen())[0].method.name == "channel.open-ok"


def test_reading_pauses_at_the_bound_and_resumes_when_the_alarm_ends() -> None:
    broker, client = blocked(capabilities={})
    big = publication("nowhere", b"x" * 1000)
    for _ in range(HELD_FRAMES_SIZE_MAX // len(big)):
        assert not client.connection.is_reading_paused
        client.send(big)
    client.send(big)
    assert client.connection.is_reading_paused
    wakes = client.output_listener.count
    broker.block("")
    assert not client.connection.is_reading_paused
    assert client.output_listener.count > wakes, "the socket must be read again"


def test_held_frames_of_a_closed_channel_are_dropped() -> None:
    broker, client = blocked()
    big = publication("nowhere", b"x" * 1000)
    for _ in range(HELD_FRAMES_SIZE_MAX // len(big) + 1):
        client.send(big)
    channel = client.connection.channels[1]
    channel.release()
    assert not client.connection.is_reading_paused
    broker.block("")
    assert broker.services.vhost.queues["q"].published_count == 1


def slowed() -> tuple[Broker, Client]:
    """A client that waits for the disk; it consumes on channel 2 without acknowledgement."""
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"))
    client.ask(methods.ChannelOpen(), methods.BasicConsume(queue="q"), channel=2)
    client.send(publication("q", b"0"))
    client.hear()
    broker.services.credit.spend()
    return broker, client


def renew(broker: Broker) -> None:
    broker.services.credit.renew()
    while broker.turns:
        broker.turn()


def published(broker: Broker) -> int:
    return broker.services.vhost.queues["q"].published_count


def test_a_slow_disk_holds_publishers_back_without_a_notification() -> None:
    broker, client = slowed()
    client.send(
        publication("q", b"1"), call(methods.BasicAck(1), 2), call(methods.QueueDeclare(queue="p"), 2)
    )
    assert client.names() == ["queue.declare-ok"]
    assert (published(broker), broker.services.vhost.queues["q"].unacked_count) == (1, 0)
    renew(broker)
    assert client.bodies() == [b"1"]


def test_a_channel_without_persistent_publishes_does_not_wait_for_the_disk() -> None:
    broker, client = slowed()
    broker.services.credit.renew()
    broker.services.credit.spend(for_all=False)
    client.send(publication("q", b"1"))
    assert published(broker) == 2
    for body in (b"2", b"3"):
        client.send(publication("q", body, delivery_mode=2))
    client.send(publication("q", b"4"))
    assert published(broker) == 3, "the first is published, and all later ones wait"
    client.ask(methods.ChannelOpen(), channel=3)
    client.send(publication("q", b"5", channel=3))
    assert published(broker) == 4
    broker.services.credit.renew(for_all=False)
    while broker.turns:
        broker.turn()
    assert published(broker) == 6


def test_publishers_resume_one_per_turn_while_the_disk_keeps_up() -> None:
    broker, first = slowed()
    second = broker.client()
    first.send(publication("q", b"1"))
    second.send(publication("q", b"2"))
    broker.services.credit.renew()
    broker.turn()
    assert published(broker) == 2
    broker.services.credit.spend()
    broker.turn()
    assert published(broker) == 2
    renew(broker)
    assert published(broker) == 3


def test_little_is_read_of_a_publisher_that_waits_for_credit_until_what_it_sent_is_published() -> None:
    broker, client = slowed()
    small = publication("q", b"x" * 10)
    count = HELD_FOR_CREDIT_SIZE_MAX // len(small)
    client.send(*[small] * count)
    assert not client.connection.is_reading_paused
    client.send(*[small] * count)
    assert client.connection.is_reading_paused
    broker.services.credit.renew()
    # The turn of the publisher, and its work of one turn.
    broker.turn()
    assert client.connection.is_reading_paused
    changes = client.connection.changes
    while broker.turns:
        broker.turn()
    assert published(broker) == 1 + 2 * count
    assert not client.connection.is_reading_paused
    assert client.connection.changes > changes, "the socket must be read again"


def test_much_is_read_of_a_publisher_that_waits_for_credit_when_an_alarm_begins() -> None:
    broker, client = slowed()
    client.send(*[publication("q", b"x" * 1000)] * (HELD_FOR_CREDIT_SIZE_MAX // 1000 + 1))
    assert client.connection.is_reading_paused
    broker.block(REASON)
    assert not client.connection.is_reading_paused, "an acknowledgement may end it"


def test_many_held_frames_are_processed_in_turns_of_bounded_work() -> None:
    broker, client = slowed()
    count = 2 * WORK_PER_TURN_MAX
    bodies = [b"%d" % number for number in range(count)]
    client.send(*(publication("q", body) for body in bodies[:-1]))
    broker.services.credit.renew()
    broker.turn()
    done = published(broker) - 1
    assert 0 < done <= WORK_PER_TURN_MAX
    client.send(publication("q", bodies[-1]), call(methods.ChannelClose()))
    turns = 1
    while broker.turns:
        before = published(broker)
        broker.turn()
        turns += 1
        assert published(broker) - before <= WORK_PER_TURN_MAX
    assert turns >= count * 3 // WORK_PER_TURN_MAX
    received = client.hear()
    assert [one.body for one in received if one.body] == bodies
    assert "channel.close-ok" in [one.method.name for one in received]
    assert broker.server.held.size == 0


def test_held_frames_are_processed_after_the_socket_is_lost() -> None:
    broker, client = slowed()
    client.send(*[publication("q", b"1")] * WORK_PER_TURN_MAX)
    broker.services.credit.renew()
    broker.turn()
    client.connection.lost()
    while broker.turns:
        broker.turn()
    assert published(broker) == 1 + WORK_PER_TURN_MAX
    assert client.connection.is_finished


def test_a_publisher_that_resumed_may_be_held_back_again() -> None:
    broker, client = slowed()
    client.send(publication("q", b"1"))
    broker.services.credit.renew()
    broker.services.credit.spend()
    broker.turn()
    client.send(publication("q", b"2"))
    renew(broker)
    assert client.bodies() == [b"1", b"2"]


def test_an_alarm_during_a_slow_disk_is_announced_when_its_publisher_resumes() -> None:
    broker, client = slowed()
    client.send(publication("q", b"1"))
    broker.block(REASON)
    assert client.hear() == []
    renew(broker)
    assert client.names() == ["connection.blocked"]
    broker.services.credit.spend()
    broker.block("")
    assert client.names() == ["connection.unblocked"]
    assert published(broker) == 1
    renew(broker)
    assert published(broker) == 2


def test_the_state_of_a_connection_shows_why_it_is_slow() -> None:
    broker, client = slowed()
    client.now = 10_000
    assert client.connection.state_name(10_000) == "running"
    client.send(publication("q", b"1"))
    assert client.connection.state_name(99_000) == "flow"
    renew(broker)
    assert client.connection.state_name(client.now + FLOW_SHOWN_MS - 1) == "flow"
    assert client.connection.state_name(client.now + FLOW_SHOWN_MS) == "running"
    broker.block(REASON)
    assert client.connection.state_name(99_000) == "blocking"
    client.send(publication("q", b"1"))
    assert client.connection.state_name(99_000) == "blocked"
    client.connection.lost()
    assert client.connection.state_name(99_000) == "closed"


def test_frames_before_a_connection_close_are_processed_first() -> None:
    broker, client = slowed()
    client.send(publication("q", b"1"), call(methods.ConnectionClose(200, "", 0, 0), 0))
    assert client.names() == []
    renew(broker)
    assert "connection.close-ok" in client.names()
    assert (published(broker), client.connection.is_open) == (2, False)


def test_a_connection_close_after_a_slow_declaration_is_processed_in_order() -> None:
    broker = Broker()
    client = broker.client()
    client.ask(methods.QueueDeclare(queue="q"))
    broker.proposals.is_slow = True
    client.send(
        call(methods.QueueDeclare(queue="slow")),
        publication("q", b"1"),
        call(methods.ConnectionClose(200, "", 0, 0), 0),
    )
    assert client.names() == []
    broker.proposals.arrive()
    assert client.names() == ["queue.declare-ok", "connection.close-ok"]
    assert published(broker) == 1


def test_frames_received_before_the_socket_was_lost_are_processed_when_the_disk_accepts_them() -> None:
    broker, client = slowed()
    client.send(publication("q", b"1"))
    client.connection.lost()
    assert broker.server.connections
    renew(broker)
    assert (published(broker), client.connection.is_finished) == (2, True)
    assert not broker.server.connections


def test_a_lost_connection_is_finished_although_an_alarm_is_set() -> None:
    broker, client = slowed()
    client.send(publication("q", b"1"))
    client.connection.lost()
    broker.block(REASON)
    assert client.connection.is_finished
    broker.block("")
    renew(broker)
    assert published(broker) == 1


def test_a_client_that_is_not_read_does_not_time_out() -> None:
    broker = Broker()
    client = broker.client(heartbeat=1)
    broker.block(REASON)
    big = publication("nowhere", b"x" * 1000)
    client.send(*[big] * (HELD_FRAMES_SIZE_MAX // len(big) + 1))
    assert client.connection.is_reading_paused
    for now in range(0, 60_000, 500):
        client.expire(now)
    assert client.connection.is_open
    broker.block("")
    for now in range(60_000, 64_000, 500):
        client.expire(now)
    assert client.connection.is_finished, "now missing heartbeats count"


def test_the_held_bytes_of_all_connections_are_bounded() -> None:
    broker, _ = blocked()
    big = publication("nowhere", b"x" * 1000)
    share = [big] * (HELD_FRAMES_SIZE_MAX // len(big))
    clients = [broker.client() for _ in range(HELD_FRAMES_TOTAL_SIZE_MAX // HELD_FRAMES_SIZE_MAX)]
    for client in clients:
        client.send(*share)
        assert not client.connection.is_reading_paused
    late = broker.client()
    late.send(*share)
    assert late.connection.is_reading_paused
    quiet = broker.client()
    assert not quiet.connection.is_reading_paused
    broker.block("")
    assert broker.server.held.size == 0
    assert not late.connection.is_reading_paused
