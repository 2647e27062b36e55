"""The classic queue: who gets what at once, what waits, and what has to go."""

import pytest
from tests.unit.queues.samples import Host, Reader, drained, filled, made, sent

from warren.errors import AccessRefused
from warren.model.arguments import Overflow, QueueSettings
from warren.queues.queue import ACCEPTED, REFUSED


@pytest.fixture
def host() -> Host:
    return Host(now=1000)


# --- delivering ---------------------------------------------------------------------------------


def test_a_message_goes_straight_to_a_consumer_that_can_take_it(host: Host) -> None:
    queue, reader = made(host), Reader()
    queue.add_consumer(reader)
    assert queue.publish(sent("a"), None, 0) == ACCEPTED
    assert reader.got == [(b"a", False)]
    assert (queue.message_count, queue.unacked_count, queue.unacked_octets) == (0, 1, 1)


def test_what_needs_no_settling_is_not_counted_as_unsettled(host: Host) -> None:
    queue, reader = made(host), Reader(no_ack=True)
    queue.add_consumer(reader)
    queue.publish(sent("a"), None, 0)
    assert (reader.bodies, queue.unacked_count, queue.delivered_no_ack_count) == ([b"a"], 0, 1)


def test_what_waits_is_handed_out_when_a_consumer_comes(host: Host) -> None:
    queue, reader = filled(host, "a", "b"), Reader()
    queue.add_consumer(reader)
    assert reader.bodies == [b"a", b"b"]


def test_a_prefetch_holds_messages_back_until_something_is_settled(host: Host) -> None:
    queue, reader = filled(host, "a", "b", "c"), Reader(prefetch=2)
    queue.add_consumer(reader)
    assert (reader.bodies, queue.message_count) == ([b"a", b"b"], 1)
    queue.acknowledge(reader.unsettled.pop())
    queue.consumer_ready(reader)
    assert (reader.bodies, queue.message_count) == ([b"a", b"b", b"c"], 0)


def test_consumers_share_and_a_full_one_is_passed_over(host: Host) -> None:
    queue, a, b = made(host), Reader("a", prefetch=1), Reader("b")
    queue.add_consumer(a)
    queue.add_consumer(b)
    for body in "1234":
        queue.publish(sent(body), None, 0)
    assert (a.bodies, b.bodies) == ([b"1"], [b"2", b"3", b"4"])


def test_one_that_was_alone_shares_with_who_comes_and_is_alone_again(host: Host) -> None:
    queue, a, b = made(host), Reader("a"), Reader("b")
    queue.add_consumer(a)
    queue.publish(sent("1"), None, 0)
    queue.publish(sent("2"), None, 0)
    queue.add_consumer(b)
    for body in "3456":
        queue.publish(sent(body), None, 0)
    queue.remove_consumer(a)
    queue.publish(sent("7"), None, 0)
    queue.remove_consumer(b)
    queue.publish(sent("8"), None, 0)
    assert sorted([len(a.bodies), len(b.bodies)]) == [3, 4]
    assert b.bodies[-1] == b"7"
    assert queue.message_count == 1


def test_one_that_is_alone_and_full_is_given_nothing_until_it_settles(host: Host) -> None:
    queue, reader = made(host), Reader(prefetch=1)
    queue.add_consumer(reader)
    for body in "123":
        queue.publish(sent(body), None, 0)
    assert (reader.bodies, queue.message_count) == ([b"1"], 2)
    for _ in range(2):
        queue.acknowledge(reader.unsettled.pop())
        queue.consumer_ready(reader)
    queue.acknowledge(reader.unsettled.pop())
    queue.consumer_ready(reader)
    queue.publish(sent("4"), None, 0)
    assert (reader.bodies, queue.message_count) == ([b"1", b"2", b"3", b"4"], 0)


def test_what_is_requeued_comes_before_what_is_published_meanwhile(host: Host) -> None:
    queue, reader = made(host), Reader()
    queue.add_consumer(reader)
    queue.publish(sent("1"), None, 0)
    queue.requeue(reader.unsettled.pop())
    queue.publish(sent("2"), None, 0)
    queue.pump()
    assert reader.got == [(b"1", False), (b"1", True), (b"2", False)]


def test_the_next_consumer_becomes_active_when_the_active_one_goes(host: Host) -> None:
    queue, a, b = made(host, single_active_consumer=True), Reader("a"), Reader("b")
    queue.add_consumer(a)
    queue.add_consumer(b)
    queue.publish(sent("1"), None, 0)
    queue.remove_consumer(a)
    queue.publish(sent("2"), None, 0)
    assert (a.bodies, b.bodies) == ([b"1"], [b"2"])


def test_get_takes_the_first_and_nothing_when_there_is_none(host: Host) -> None:
    queue = filled(host, "a", "b")
    assert queue.get().message.body == b"a"
    assert drained(queue) == [b"b"]
    assert queue.get() is None


# --- settling -----------------------------------------------------------------------------------


def test_what_is_requeued_goes_to_its_place_and_is_redelivered(host: Host) -> None:
    queue = filled(host, "a", "b", "c")
    first, second = queue.get(), queue.get()
    queue.requeue(second)
    queue.requeue(first)
    reader = Reader()
    queue.add_consumer(reader)
    assert reader.got == [(b"a", True), (b"b", True), (b"c", False)]
    assert queue.redelivered_count == 2


def test_rejection_is_death(host: Host) -> None:
    queue = filled(host, "a", dead=True)
    queue.reject(queue.get())
    assert host.dead == [(b"a", "rejected")]
    assert (queue.message_count, queue.unacked_count) == (0, 0)


def test_without_a_dead_letter_exchange_the_dead_are_forgotten(host: Host) -> None:
    queue = filled(host, "a")
    queue.reject(queue.get())
    assert host.dead == []


def test_one_delivery_too_many_is_death(host: Host) -> None:
    queue = filled(host, "a", delivery_limit=2, dead=True)
    for _ in range(3):
        assert host.dead == []
        queue.requeue(queue.get())
    assert host.dead == [(b"a", "delivery_limit")]


def test_what_comes_back_to_a_deleted_queue_is_forgotten(host: Host) -> None:
    queue = filled(host, "a", "b", dead=True)
    one, two = queue.get(), queue.get()
    queue.delete()
    queue.requeue(one)
    queue.reject(two)
    assert (queue.message_count, queue.unacked_count, host.dead) == (0, 0, [])


# --- limits -------------------------------------------------------------------------------------


def test_the_oldest_goes_when_there_are_too_many(host: Host) -> None:
    queue = filled(host, "a", "b", "c", length_max=2, dead=True)
    assert host.dead == [(b"a", "maxlen")]
    assert drained(queue) == [b"b", b"c"]


def test_the_oldest_go_when_they_are_too_large_together(host: Host) -> None:
    queue = filled(host, "aa", "bb", "cccc", length_bytes_max=5, dead=True)
    assert [body for body, _ in host.dead] == [b"aa", b"bb"]
    assert drained(queue) == [b"cccc"]


def test_a_full_queue_may_refuse(host: Host) -> None:
    queue = filled(host, "a", length_max=1, overflow=Overflow.REJECT_PUBLISH, dead=True)
    assert queue.publish(sent("b"), None, 0) == REFUSED
    assert host.dead == []
    assert drained(queue) == [b"a"]
    assert queue.publish(sent("c"), None, 0) == ACCEPTED


def test_a_full_queue_may_bury_what_it_refuses(host: Host) -> None:
    queue = filled(host, "a", length_max=1, overflow=Overflow.REJECT_PUBLISH_DLX, dead=True)
    assert queue.publish(sent("b"), None, 0) == REFUSED
    assert host.dead == [(b"b", "maxlen")]


def test_octets_can_make_a_queue_refuse(host: Host) -> None:
    queue = filled(host, "aaa", length_bytes_max=4, overflow=Overflow.REJECT_PUBLISH)
    assert queue.publish(sent("bb"), None, 0) == REFUSED
    assert queue.publish(sent("b"), None, 0) == ACCEPTED


def test_a_queue_of_length_0_passes_on_and_keeps_nothing(host: Host) -> None:
    queue, reader = made(host, length_max=0, dead=True), Reader(prefetch=1)
    queue.add_consumer(reader)
    for body in "ab":
        assert queue.publish(sent(body), None, 0) == ACCEPTED
    assert reader.bodies == [b"a"]
    assert host.dead == [(b"b", "maxlen")]


def test_what_comes_back_may_be_too_many(host: Host) -> None:
    queue = filled(host, "a", "b", length_max=2, dead=True)
    delivery = queue.get()
    queue.publish(sent("c"), None, 0)
    queue.requeue(delivery)
    assert host.dead == [(b"a", "maxlen")]


def test_a_policy_that_lowers_a_limit_drops_at_once(host: Host) -> None:
    queue = filled(host, "a", "b", "c", dead=True)
    queue.apply_settings(QueueSettings(length_max=1, dead_letter_exchange="dlx"))
    assert [body for body, _ in host.dead] == [b"a", b"b"]


# --- time ---------------------------------------------------------------------------------------


def test_messages_expire_after_the_time_of_the_queue(host: Host) -> None:
    queue = filled(host, "a", message_ttl_ms=50, dead=True)
    assert host.wakes == [1050]
    host.now = 1049
    queue.expire()
    assert (host.dead, queue.message_count) == ([], 1)
    host.now = 1050
    queue.expire()
    assert (host.dead, queue.message_count) == ([(b"a", "expired")], 0)


def test_a_message_with_no_time_goes_to_a_consumer_or_dies(host: Host) -> None:
    queue = filled(host, "a", message_ttl_ms=0, dead=True)
    assert host.dead == [(b"a", "expired")]
    reader = Reader()
    queue.add_consumer(reader)
    queue.publish(sent("b", now=1000), None, 0)
    queue.publish(sent("c", now=1000, expiration="0"), None, 0)
    assert reader.bodies == [b"b", b"c"]


def test_the_next_time_is_asked_for_after_each(host: Host) -> None:
    queue = made(host)
    for expiration in ("30", "20", "40"):
        queue.publish(sent(expiration, now=1000, expiration=expiration), None, 0)
    assert host.wakes == [1030, 1020]
    host.now = 1020
    queue.expire()
    assert host.wakes == [1030, 1020, 1030]
    assert drained(queue) == [b"30", b"40"]


def test_nothing_is_handed_out_after_its_time_though_nobody_woke_the_queue(host: Host) -> None:
    queue, reader = filled(host, "a", message_ttl_ms=50), Reader()
    host.now = 2000
    queue.add_consumer(reader)
    assert reader.bodies == []
    queue.publish(sent("b", now=2000), None, 0)
    assert reader.bodies == [b"b"]


def test_a_requeued_message_still_expires(host: Host) -> None:
    queue = filled(host, "a", message_ttl_ms=50, dead=True)
    delivery = queue.get()
    host.now = 1060
    queue.expire()
    assert host.dead == []
    queue.requeue(delivery)
    assert host.dead == [(b"a", "expired")]


def test_an_unused_queue_goes_when_its_time_is_over(host: Host) -> None:
    queue = made(host, expires_ms=100)
    assert host.wakes == [1100]
    host.now = 1100
    queue.expire()
    assert host.deleted == [queue]


@pytest.mark.parametrize("use", ["get", "touch"])
def test_use_starts_the_time_of_a_queue_anew(host: Host, use: str) -> None:
    queue = made(host, expires_ms=100)
    host.now = 1060
    getattr(queue, use)()
    host.now = 1100
    queue.expire()
    assert (host.deleted, host.wakes) == ([], [1100, 1160])
    host.now = 1160
    queue.expire()
    assert host.deleted == [queue]


def test_a_queue_with_a_consumer_does_not_expire_and_one_that_lost_it_does(host: Host) -> None:
    queue, reader = made(host, expires_ms=100), Reader()
    queue.add_consumer(reader)
    host.now = 1100
    queue.expire()
    assert host.deleted == []
    host.now = 1150
    queue.remove_consumer(reader)
    assert host.wakes[-1] == 1250
    host.now = 1250
    queue.expire()
    assert host.deleted == [queue]


def test_a_policy_may_give_it_a_time_and_take_it_away(host: Host) -> None:
    queue = made(host)
    queue.apply_settings(QueueSettings(expires_ms=10))
    queue.apply_settings(QueueSettings())
    host.now = 9999
    queue.expire()
    assert host.deleted == []


# --- the end ------------------------------------------------------------------------------------


def test_the_last_consumer_takes_an_auto_delete_queue_along(host: Host) -> None:
    queue, a, b = made(host), Reader("a"), Reader("b")
    queue.is_auto_delete = True
    queue.add_consumer(a)
    queue.add_consumer(b)
    queue.remove_consumer(a)
    queue.remove_consumer(a)
    assert host.deleted == []
    queue.remove_consumer(b)
    assert host.deleted == [queue]


def test_a_deletion_cancels_the_consumers_and_counts_what_was_ready(host: Host) -> None:
    queue, reader = filled(host, "a", "b", "c", expires_ms=10), Reader(prefetch=1)
    queue.add_consumer(reader)
    assert queue.delete() == 2
    assert (reader.cancels, queue.consumer_count, queue.message_count) == (1, 0, 0)
    assert host.wakes[-1] == -1
    host.now = 9999
    queue.expire()
    assert host.deleted == []


def test_purging_leaves_what_is_unsettled(host: Host) -> None:
    queue = filled(host, "a", "b", "c")
    delivery = queue.get()
    assert queue.purge() == 2
    assert (queue.message_count, queue.ready_octets, queue.unacked_count) == (0, 0, 1)
    queue.requeue(delivery)
    assert drained(queue) == [b"a"]


def test_an_exclusive_consumer_is_alone(host: Host) -> None:
    queue = made(host)
    queue.add_consumer(Reader("a"))
    text = "queue 'q' in vhost 'v' in exclusive use"
    with pytest.raises(AccessRefused, match=text):
        queue.check_consumer(Reader("b", is_exclusive=True))
    queue.check_consumer(Reader("b"))
    other = made(host)
    other.check_consumer(exclusive := Reader("a", is_exclusive=True))
    other.add_consumer(exclusive)
    with pytest.raises(AccessRefused, match=text):
        other.check_consumer(Reader("b"))
    with pytest.raises(AccessRefused, match=text):
        made(host, single_active_consumer=True).check_consumer(exclusive)


# --- pausing --------------------------------------------------------------------------------------


def test_a_paused_queue_hands_nothing_out_and_takes_all(host: Host) -> None:
    queue, reader = made(host), Reader()
    queue.add_consumer(reader)
    queue.publish(sent("a"), None, 0)
    queue.pause()
    assert queue.is_paused
    for body in "bc":
        assert queue.publish(sent(body), None, 0) == ACCEPTED
    queue.acknowledge(reader.unsettled.pop())
    queue.consumer_ready(reader)
    late = Reader("late")
    queue.add_consumer(late)
    queue.pump()
    assert queue.get() is None
    assert (queue.got_empty_count, queue.message_count, late.bodies) == (1, 2, [])
    queue.pause()
    queue.resume()
    assert sorted(reader.bodies + late.bodies) == [b"a", b"b", b"c"]
    queue.publish(sent("d"), None, 0)
    assert queue.is_empty


def test_what_is_requeued_to_a_paused_queue_is_handed_out_first_when_it_goes_on(host: Host) -> None:
    queue, reader = filled(host, "a", "b"), Reader(prefetch=1)
    queue.add_consumer(reader)
    queue.pause()
    queue.requeue(reader.unsettled.pop())
    queue.consumer_ready(reader)
    assert reader.got == [(b"a", False)]
    queue.resume()
    assert reader.got == [(b"a", False), (b"a", True)]


def test_limits_and_times_hold_while_a_queue_is_paused(host: Host) -> None:
    queue = made(host, dead=True, length_max=2, message_ttl_ms=10)
    queue.pause()
    for body in "abc":
        queue.publish(sent(body, now=host.now), None, 0)
    assert host.dead == [(b"a", "maxlen")]
    host.now += 10
    queue.expire()
    assert [reason for _, reason in host.dead] == ["maxlen", "expired", "expired"]


def test_a_single_active_consumer_stays_the_active_one_over_a_pause(host: Host) -> None:
    queue, first, second = made(host, single_active_consumer=True), Reader("a"), Reader("b")
    queue.add_consumer(first)
    queue.add_consumer(second)
    queue.pause()
    queue.publish(sent("x"), None, 0)
    assert first.bodies == []
    queue.resume()
    assert (first.bodies, second.bodies) == ([b"x"], [])
