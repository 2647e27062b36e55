"""A forwarder: order, acknowledgements after confirms, refusals, alarms, and a limited number of messages."""

import tracemalloc

import pytest
from tests.unit.relay.written_broker import ACK, NACK, WrittenRelay, delivery
from tests.unit.session.client import call

from warren.flow.rate_limiter import RateLimiter
from warren.limits import WORK_PER_TURN_MAX
from warren.limits_relay import (
    LINK_SETTLED_RUN_MAX,
    LINK_SETTLED_RUN_SHARED_MAX,
    LINK_SHARED_MS,
    LINK_TRANSFORM_WORK,
    LINK_UNCONFIRMED_MAX,
    REFUSAL_PAUSE_MAX_MS,
    REFUSAL_PAUSE_MIN_MS,
)
from warren.relay.forwarder import (
    AckMode,
)
from warren.relay.status import Hold
from warren.wire import methods


def test_nothing_is_acknowledged_before_its_confirm_and_then_all_at_once() -> None:
    relay = WrittenRelay()
    relay.deliver(b"1", b"2", b"3")
    assert relay.published() == [b"1", b"2", b"3"]
    assert relay.settled() == []
    relay.confirm(1)
    relay.confirm(2)
    assert relay.settled() == [(ACK, 2, True)]
    assert relay.forwarder.unconfirmed_count == 1


def test_confirms_out_of_order_acknowledge_up_to_the_first_gap() -> None:
    relay = WrittenRelay()
    relay.deliver(b"1", b"2", b"3", b"4")
    relay.confirm(3)
    relay.confirm(2)
    assert relay.settled() == []
    assert relay.forwarder.unconfirmed_count == 2
    relay.confirm(1)
    assert relay.settled() == [(ACK, 3, True)]
    relay.confirm(4, multiple=True)
    assert relay.settled() == [(ACK, 4, True)]
    assert relay.forwarder.confirmed_count == 4


def test_on_publish_acknowledges_what_was_published() -> None:
    relay = WrittenRelay(AckMode.ON_PUBLISH)
    relay.deliver(b"1", b"2")
    assert relay.settled() == [(ACK, 2, True)]
    assert relay.published() == [b"1", b"2"]


def test_without_acknowledgements_the_source_is_told_nothing() -> None:
    relay = WrittenRelay(AckMode.NO_ACK)
    relay.owner.is_wanted = lambda message: message.body != b"2"
    relay.deliver(b"1", b"2", b"3")
    assert relay.published() == [b"1", b"3"]
    assert relay.settled() == []
    assert relay.forwarder.dropped_count == 1


def test_a_dropped_message_is_acknowledged_without_its_neighbours() -> None:
    relay = WrittenRelay()
    relay.owner.is_wanted = lambda message: message.body != b"2"
    relay.deliver(b"1", b"2", b"3")
    assert relay.published() == [b"1", b"3"]
    assert relay.settled() == [(ACK, 2, False)]
    relay.confirm(2, multiple=True)
    assert relay.settled() == [(ACK, 3, True)]


def test_a_run_of_dropped_messages_is_acknowledged_at_once() -> None:
    relay = WrittenRelay()
    relay.owner.is_wanted = lambda message: False
    relay.deliver(b"1", b"2", b"3")
    assert relay.settled() == [(ACK, 3, True)]


def test_a_destination_with_an_alarm_gets_nothing_and_the_source_is_not_read() -> None:
    relay = WrittenRelay()
    relay.destination.write(call(methods.ConnectionBlocked(reason="low on memory"), 0))
    assert relay.forwarder.hold() == (Hold.ALARM, relay.clock.now)
    relay.deliver(b"1", b"2")
    assert relay.source.client.is_reading_paused
    assert relay.published() == []
    assert relay.forwarder.waiting_count == 2
    relay.destination.write(call(methods.ConnectionUnblocked(), 0))
    assert not relay.source.client.is_reading_paused
    assert relay.published() == [b"1", b"2"]
    assert relay.forwarder.hold() == (Hold.NONE, 0)


def test_a_full_socket_of_the_destination_stops_reading_the_source() -> None:
    relay = WrittenRelay()
    relay.destination.client.pause_output()
    relay.deliver(b"1", b"2")
    assert relay.source.client.is_reading_paused
    assert relay.forwarder.hold()[0] is Hold.FULL
    relay.destination.client.resume_output()
    assert relay.published() == [b"1", b"2"]
    assert not relay.source.client.is_reading_paused


def test_a_message_does_not_overtake_those_that_wait_when_the_socket_has_room_again() -> None:
    relay = WrittenRelay()
    relay.destination.client.pause_output()
    relay.deliver(b"1")
    relay.destination.client.outbox.is_paused = False
    relay.deliver(b"2")
    relay.destination.client.output_written()
    assert relay.published() == [b"1", b"2"]


def test_a_refused_message_returns_to_its_queue_and_the_destination_is_given_time() -> None:
    relay = WrittenRelay()
    relay.deliver(b"1", b"2")
    relay.published()
    relay.refuse(1)
    relay.refuse(2)
    assert relay.settled() == [(NACK, 1, False), (NACK, 2, False)]
    relay.deliver(b"1", b"2")
    assert relay.published() == []
    assert relay.forwarder.hold()[0] is Hold.REFUSED
    ((pause_ms, retry),) = relay.owner.timers
    assert pause_ms == REFUSAL_PAUSE_MIN_MS
    retry()
    assert relay.published() == [b"1"]
    relay.confirm(3)
    assert relay.published() == [b"2"]
    assert relay.forwarder.hold() == (Hold.NONE, 0)


def test_a_destination_that_refuses_everything_is_asked_less_and_less_often() -> None:
    relay = WrittenRelay()
    pauses = []
    relay.deliver(b"m")
    for sequence in range(1, 13):
        assert relay.published() == [b"m"]
        relay.refuse(sequence)
        assert relay.settled() == [(NACK, sequence, False)]
        relay.deliver(b"m")
        assert relay.published() == []
        pause_ms, retry = relay.owner.timers.pop()
        assert not relay.owner.timers
        pauses.append(pause_ms)
        retry()
    assert pauses[:3] == [100, 200, 400]
    assert pauses[-1] == REFUSAL_PAUSE_MAX_MS
    relay.published()
    relay.confirm(13)
    relay.deliver(b"m")
    relay.refuse(14)
    assert relay.owner.timers.pop()[0] == REFUSAL_PAUSE_MIN_MS


def test_several_are_refused_at_once() -> None:
    relay = WrittenRelay()
    relay.deliver(b"1", b"2", b"3")
    relay.confirm(2)
    relay.refuse(3, multiple=True)
    assert relay.settled() == [(NACK, 1, False), (NACK, 3, False), (ACK, 2, True)]
    assert (relay.forwarder.rejected_count, relay.forwarder.confirmed_count) == (2, 1)


def test_a_limited_number_of_messages_is_forwarded_and_then_all_is_done() -> None:
    relay = WrittenRelay(remaining=2)
    relay.deliver(b"1", b"2", b"3")
    assert relay.published() == [b"1", b"2"]
    relay.confirm(1)
    assert relay.owner.completions == 0
    assert relay.forwarder.unsettled_remaining == 1
    relay.confirm(2)
    assert relay.owner.completions == 1
    assert relay.settled() == [(ACK, 2, True)]


def test_a_refused_message_is_one_of_a_limited_number() -> None:
    relay = WrittenRelay(remaining=2)
    relay.deliver(b"1", b"2", b"3")
    relay.refuse(1)
    assert relay.owner.completions == 0
    relay.confirm(2)
    assert relay.published() == [b"1", b"2"]
    assert relay.owner.completions == 1
    assert relay.settled() == [(NACK, 1, False), (ACK, 2, True)]


@pytest.mark.parametrize("ack_mode", AckMode)
def test_dropped_messages_count_for_a_limited_number(ack_mode: AckMode) -> None:
    relay = WrittenRelay(ack_mode, remaining=2)
    relay.owner.is_wanted = lambda message: False
    relay.deliver(b"1", b"2")
    assert relay.owner.completions == 1


def test_a_finished_forwarder_settles_what_it_has_published() -> None:
    relay = WrittenRelay()
    relay.deliver(b"1")
    relay.forwarder.finish()
    relay.deliver(b"2")
    assert relay.published() == [b"1"]
    assert relay.owner.completions == 0
    relay.confirm(1)
    assert relay.owner.completions == 1
    assert relay.settled() == [(ACK, 1, True)]


def test_a_limited_rate_publishes_when_its_time_has_come() -> None:
    relay = WrittenRelay()
    relay.forwarder.rate_limiter = RateLimiter(2, relay.clock.now / 1000)
    relay.deliver(b"1", b"2", b"3")
    assert relay.published() == [b"1"]
    assert relay.forwarder.hold()[0] is Hold.RATE
    for body in (b"2", b"3"):
        ((pause_ms, wake),) = relay.owner.timers
        assert 490 <= pause_ms <= 510
        relay.owner.timers.clear()
        relay.clock.now += pause_ms
        wake()
        assert relay.published() == [body]
    assert not relay.source.client.is_reading_paused


def test_no_more_than_the_limit_is_unconfirmed_without_a_prefetch() -> None:
    relay = WrittenRelay()
    relay.forwarder._unconfirmed_max = 2
    relay.deliver(b"1", b"2", b"3")
    assert relay.published() == [b"1", b"2"]
    assert relay.forwarder.hold()[0] is Hold.UNCONFIRMED
    relay.confirm(1)
    assert relay.published() == [b"3"]
    assert LINK_UNCONFIRMED_MAX >= 65_535


def test_the_ends_of_both_sides_are_told() -> None:
    relay = WrittenRelay()
    relay.source.write(call(methods.BasicCancel(consumer_tag="c", no_wait=True)))
    assert [error.text for error in relay.owner.source_errors] == [
        "the source has cancelled the consumer 'c'"
    ]
    relay.destination.write(call(methods.ChannelClose(404, "NOT_FOUND - no exchange 'x'", 60, 40)))
    assert [(error.code, error.text) for error in relay.owner.destination_errors] == [
        (404, "404 NOT_FOUND - no exchange 'x'")
    ]
    relay.source.client.lost()
    assert len(relay.owner.source_errors) == 3


def test_an_unconfirmed_publish_says_since_when() -> None:
    relay = WrittenRelay()
    assert relay.forwarder.unconfirmed_since == 0
    relay.clock.now = 5_000
    relay.deliver(b"1", b"2")
    relay.clock.now = 6_000
    assert relay.forwarder.unconfirmed_since == 5_000
    relay.confirm(1)
    assert relay.forwarder.unconfirmed_since == 6_000
    relay.confirm(2)
    assert relay.forwarder.unconfirmed_since == 0


def test_consecutive_equal_messages_are_transformed_once_if_the_owner_agrees() -> None:
    relay = WrittenRelay()
    relay.deliver(b"0", b"1")
    assert relay.owner.transformed == [b"0", b"1"]
    relay.forwarder.reuses_transformed = True
    relay.deliver(b"2", b"3", b"4")
    relay.deliver(b"5")
    assert relay.owner.transformed[2:] == [b"2"]
    assert relay.published() == [b"0", b"1", b"2", b"3", b"4", b"5"]
    relay.confirm(6, multiple=True)
    assert relay.settled() == [(ACK, 6, True)]


def test_a_message_with_another_key_property_or_mark_or_of_another_second_is_transformed_anew() -> None:
    relay = WrittenRelay()
    relay.forwarder.reuses_transformed = True
    relay.deliver(b"1")
    relay.deliver(b"2", key="other")
    relay.deliver(b"3", key="other", app_id="a")
    relay.deliver(b"4", key="other", app_id="a", is_redelivered=True)
    relay.deliver(b"5", key="other", app_id="a", is_redelivered=True)
    relay.clock.now += 1_000
    relay.deliver(b"6", key="other", app_id="a", is_redelivered=True)
    assert relay.owner.transformed == [b"1", b"2", b"3", b"4", b"6"]
    sent = relay.destination.read()
    assert [one.body for one in sent] == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert [one.properties.app_id for one in sent] == [None, None, "a", "a", "a", "a"]


def test_what_is_equal_to_a_dropped_message_is_dropped() -> None:
    relay = WrittenRelay()
    relay.forwarder.reuses_transformed = True
    relay.owner.is_wanted = lambda message: message.routing_key != "other"
    relay.deliver(b"1", b"2", key="other")
    relay.deliver(b"3", b"4")
    assert relay.published() == [b"3", b"4"]
    assert relay.settled() == [(ACK, 2, True)]
    assert (relay.forwarder.dropped_count, relay.forwarder.forwarded_count) == (2, 2)


def test_a_confirm_of_more_than_is_unconfirmed_settles_that_and_no_more() -> None:
    relay = WrittenRelay()
    relay.deliver(*(b"%d" % number for number in range(200)))
    relay.confirm(150, multiple=True)
    relay.confirm(150, multiple=True)
    relay.confirm(100, multiple=True)
    assert relay.settled() == [(ACK, 150, True)]
    assert (relay.forwarder.confirmed_count, relay.forwarder.unconfirmed_count) == (150, 50)
    relay.confirm(0, multiple=True)
    assert relay.settled() == []
    relay.confirm(200, multiple=True)
    assert relay.settled() == [(ACK, 200, True)]
    assert relay.forwarder.unconfirmed_count == 0


def run_timers(relay: WrittenRelay) -> list[int]:
    """Call what waits for its time; returns the pauses in ms."""
    timers, relay.owner.timers = relay.owner.timers, []
    for _, action in timers:
        action()
    return [pause_ms for pause_ms, _ in timers]


def relay_with(count: int) -> WrittenRelay:
    """A relay that has published `count` messages, beside a client that sends."""
    relay = WrittenRelay()
    relay.clock.turn.note_client()
    relay.deliver(*(b"%d" % number for number in range(count)))
    return relay


def test_a_long_run_of_confirms_is_acknowledged_over_several_turns() -> None:
    relay = WrittenRelay()
    count = 2 * LINK_SETTLED_RUN_MAX + 1
    relay.deliver(*(b"%d" % number for number in range(count)))
    relay.confirm(count - 1, multiple=True)
    relay.confirm(count, multiple=True)
    assert relay.settled() == [(ACK, LINK_SETTLED_RUN_MAX, True)]
    assert run_timers(relay) == [0]
    assert relay.settled() == [(ACK, 2 * LINK_SETTLED_RUN_MAX, True)]
    relay.clock.turn.note_client()
    assert run_timers(relay) == [0]
    assert relay.settled() == [(ACK, count, True)]
    assert relay.owner.timers == []


def test_few_confirms_are_acknowledged_in_a_turn_while_clients_send() -> None:
    relay = relay_with(3 * LINK_SETTLED_RUN_SHARED_MAX)
    relay.confirm(3 * LINK_SETTLED_RUN_SHARED_MAX, multiple=True)
    assert relay.settled() == [(ACK, LINK_SETTLED_RUN_SHARED_MAX, True)]
    relay.clock.now += LINK_SHARED_MS
    relay.clock.turn.end()
    assert run_timers(relay) == [0]
    assert relay.settled() == [(ACK, 3 * LINK_SETTLED_RUN_SHARED_MAX, True)]


@pytest.mark.parametrize("is_multiple", [False, True])
def test_a_refusal_behind_confirms_that_wait_for_their_turn_refuses_none_of_them(is_multiple: bool) -> None:
    count = 2 * LINK_SETTLED_RUN_SHARED_MAX
    relay = relay_with(count + 1)
    relay.confirm(count, multiple=True)
    relay.refuse(count, multiple=is_multiple)
    relay.refuse(count + 1, multiple=is_multiple)
    run_timers(relay)
    assert relay.settled() == [(NACK, count + 1, False), (ACK, count, True)]
    assert relay.forwarder.confirmed_count == count
    assert relay.forwarder.unconfirmed_count == 0


def test_a_single_confirm_behind_those_that_wait_is_acknowledged_with_them() -> None:
    count = LINK_SETTLED_RUN_SHARED_MAX + 1
    relay = relay_with(count + 2)
    relay.confirm(count, multiple=True)
    relay.confirm(count + 1)
    assert relay.settled() == [(ACK, LINK_SETTLED_RUN_SHARED_MAX, True)]
    run_timers(relay)
    assert relay.settled() == [(ACK, count + 1, True)]
    assert relay.forwarder.unconfirmed_count == 1


def test_a_link_is_finished_when_the_last_confirm_had_its_turn() -> None:
    count = LINK_SETTLED_RUN_SHARED_MAX + 1
    relay = relay_with(count)
    relay.forwarder.finish()
    relay.confirm(count, multiple=True)
    assert relay.owner.completions == 0
    run_timers(relay)
    assert relay.owner.completions == 1


def test_deliveries_that_nobody_wants_return_to_their_queue() -> None:
    relay = WrittenRelay()
    relay.deliver(b"1")
    relay.forwarder.is_returning = True
    relay.deliver(b"2", b"3")
    assert relay.settled() == [(NACK, 2, False), (NACK, 3, False)]
    relay.forwarder.is_returning = False
    relay.deliver(b"4")
    assert relay.published() == [b"1", b"4"]
    assert relay.forwarder.delivered_count == 4


def test_a_body_that_waits_for_its_confirm_is_not_held() -> None:
    relay = WrittenRelay()
    # The recorded owner would keep what it transforms.
    relay.forwarder.reuses_transformed = True
    size, count = 4_000, 2_000
    tracemalloc.start()
    try:
        for _ in range(count):
            relay.deliver(bytes(size))
            assert [len(body) for body in relay.published()] == [size]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert relay.forwarder.unconfirmed_count == count
    assert held < 200 * size


def test_messages_with_new_properties_take_more_of_a_turn_than_equal_ones() -> None:
    relay = WrittenRelay()
    relay.forwarder.reuses_transformed = True
    count = WORK_PER_TURN_MAX // 3
    equal = b"".join(delivery(tag, b"x") for tag in range(1, count + 1))
    relay.source.client.receive(equal)
    assert len(relay.published()) == count

    different = [delivery(tag, b"x", message_id=str(tag)) for tag in range(count + 1, 2 * count + 1)]
    relay.owner.has_new_properties = True
    relay.source.client.receive(b"".join(different))
    in_a_turn = len(relay.published())
    assert in_a_turn == -(-WORK_PER_TURN_MAX // (3 + LINK_TRANSFORM_WORK))
    assert relay.source.client.has_more
    while relay.source.client.has_more:
        relay.source.client.process_more()
    assert in_a_turn + len(relay.published()) == count
