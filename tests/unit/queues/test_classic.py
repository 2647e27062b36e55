"""The classic queue: which consumer receives a message, which messages wait, and which are dropped."""

import pytest
from tests.unit.queues.samples import Host, Reader, drained, filled, made, sent

from warren.errors import AccessRefused
from warren.model.arguments import Overflow, QueueSettings
from warren.queues.queue import ACCEPTED, REFUSED


@pytest.fixture
def host() -> Host:
    return Host(now=1000)


# --- delivering ---------------------------------------------------------------------------------


def test_a_message_is_delivered_directly_to_a_ready_consumer(host: Host) -> None:
    queue, reader = made(host), Reader()
    queue.add_consumer(reader)
    assert queue.publish(sent("a"), None, 0) == ACCEPTED
    assert reader.got == [(b"a", False)]
    assert (queue.message_count, queue.unacked_count, queue.unacked_bytes) == (0, 1, 1)


def test_deliveries_without_acknowledgement_are_not_counted_as_unacknowledged(host: Host) -> None:
    queue, reader = made(host), Reader(no_ack=True)
    queue.add_consumer(reader)
    queue.publish(sent("a"), None, 0)
    assert (reader.bodies, queue.unacked_count, queue.delivered_no_ack_count) == ([b"a"], 0, 1)


def test_ready_messages_are_delivered_to_a_new_consumer(host: Host) -> None:
    queue, reader = filled(host, "a", "b"), Reader()
    queue.add_consumer(reader)
    assert reader.bodies == [b"a", b"b"]


def test_prefetch_limits_deliveries_until_an_acknowledgement(host: Host) -> None:
    queue, reader = filled(host, "a", "b", "c"), Reader(prefetch=2)
    queue.add_consumer(reader)
    assert (reader.bodies, queue.message_count) == ([b"a", b"b"], 1)
    queue.acknowledge(reader.unsettled.pop())
    queue.consumer_ready(reader)
    assert (reader.bodies, queue.message_count) == ([b"a", b"b", b"c"], 0)


def test_consumers_share_messages_and_a_full_one_is_skipped(host: Host) -> None:
    queue, a, b = made(host), Reader("a", prefetch=1), Reader("b")
    queue.add_consumer(a)
    queue.add_consumer(b)
    for body in "1234":
        queue.publish(sent(body), None, 0)
    assert (a.bodies, b.bodies) == ([b"1"], [b"2", b"3", b"4"])


def test_a_single_consumer_shares_with_a_second_one_while_it_exists(host: Host) -> None:
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


def test_a_single_consumer_at_its_prefetch_receives_nothing_until_it_acknowledges(host: Host) -> None:
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


def test_a_requeued_message_precedes_those_published_later(host: Host) -> None:
    queue, reader = made(host), Reader()
    queue.add_consumer(reader)
    queue.publish(sent("1"), None, 0)
    queue.requeue(reader.unsettled.pop())
    queue.publish(sent("2"), None, 0)
    queue.pump()
    assert reader.got == [(b"1", False), (b"1", True), (b"2", False)]


def test_the_next_consumer_becomes_active_when_the_active_one_is_cancelled(host: Host) -> None:
    queue, a, b = made(host, single_active_consumer=True), Reader("a"), Reader("b")
    queue.add_consumer(a)
    queue.add_consumer(b)
    queue.publish(sent("1"), None, 0)
    queue.remove_consumer(a)
    queue.publish(sent("2"), None, 0)
    assert (a.bodies, b.bodies) == ([b"1"], [b"2"])


def test_get_returns_the_first_message_or_none(host: Host) -> None:
    queue = filled(host, "a", "b")
    assert queue.get().message.body == b"a"
    assert drained(queue) == [b"b"]
    assert queue.get() is None


# --- settling -----------------------------------------------------------------------------------


def test_a_requeued_message_returns_to_its_position_and_is_redelivered(host: Host) -> None:
    queue = filled(host, "a", "b", "c")
    first, second = queue.get(), queue.get()
    queue.requeue(second)
    queue.requeue(first)
    reader = Reader()
    queue.add_consumer(reader)
    assert reader.got == [(b"a", True), (b"b", True), (b"c", False)]
    assert queue.redelivered_count == 2


def test_a_rejected_message_is_dead_lettered(host: Host) -> None:
    queue = filled(host, "a", dead=True)
    queue.reject(queue.get())
    assert host.dead == [(b"a", "rejected")]
    assert (queue.message_count, queue.unacked_count) == (0, 0)


def test_without_a_dead_letter_exchange_dead_letters_are_discarded(host: Host) -> None:
    queue = filled(host, "a")
    queue.reject(queue.get())
    assert host.dead == []


def test_a_message_beyond_its_delivery_limit_is_dead_lettered(host: Host) -> None:
    queue = filled(host, "a", delivery_limit=2, dead=True)
    for _ in range(3):
        assert host.dead == []
        queue.requeue(queue.get())
    assert host.dead == [(b"a", "delivery_limit")]


def test_a_message_requeued_to_a_deleted_queue_is_discarded(host: Host) -> None:
    queue = filled(host, "a", "b", dead=True)
    one, two = queue.get(), queue.get()
    queue.delete()
    queue.requeue(one)
    queue.reject(two)
    assert (queue.message_count, queue.unacked_count, host.dead) == (0, 0, [])


# --- limits -------------------------------------------------------------------------------------


def test_above_max_length_the_oldest_message_is_dropped(host: Host) -> None:
    queue = filled(host, "a", "b", "c", length_max=2, dead=True)
    assert host.dead == [(b"a", "maxlen")]
    assert drained(queue) == [b"b", b"c"]


def test_above_max_length_bytes_the_oldest_messages_are_dropped(host: Host) -> None:
    queue = filled(host, "aa", "bb", "cccc", length_bytes_max=5, dead=True)
    assert [body for body, _ in host.dead] == [b"aa", b"bb"]
    assert drained(queue) == [b"cccc"]


def test_a_full_queue_can_reject_publishes(host: Host) -> None:
    queue = filled(host, "a", length_max=1, overflow=Overflow.REJECT_PUBLISH, dead=True)
    assert queue.publish(sent("b"), None, 0) == REFUSED
    assert host.dead == []
    assert drained(queue) == [b"a"]
    assert queue.publish(sent("c"), None, 0) == ACCEPTED


def test_a_full_queue_can_dead_letter_what_it_rejects(host: Host) -> None:
    queue = filled(host, "a", length_max=1, overflow=Overflow.REJECT_PUBLISH_DLX, dead=True)
    assert queue.publish(sent("b"), None, 0) == REFUSED
    assert host.dead == [(b"b", "maxlen")]


def test_a_queue_can_reject_publishes_by_its_size_in_bytes(host: Host) -> None:
    queue = filled(host, "aaa", length_bytes_max=4, overflow=Overflow.REJECT_PUBLISH)
    assert queue.publish(sent("bb"), None, 0) == REFUSED
    assert queue.publish(sent("b"), None, 0) == ACCEPTED


def test_a_queue_of_max_length_0_delivers_and_stores_nothing(host: Host) -> None:
    queue, reader = made(host, length_max=0, dead=True), Reader(prefetch=1)
    queue.add_consumer(reader)
    for body in "ab":
        assert queue.publish(sent(body), None, 0) == ACCEPTED
    assert reader.bodies == [b"a"]
    assert host.dead == [(b"b", "maxlen")]


def test_a_requeued_message_may_exceed_max_length(host: Host) -> None:
    queue = filled(host, "a", "b", length_max=2, dead=True)
    delivery = queue.get()
    queue.publish(sent("c"), None, 0)
    queue.requeue(delivery)
    assert host.dead == [(b"a", "maxlen")]


def test_a_policy_that_lowers_a_limit_drops_messages_at_once(host: Host) -> None:
    queue = filled(host, "a", "b", "c", dead=True)
    queue.apply_settings(QueueSettings(length_max=1, dead_letter_exchange="dlx"))
    assert [body for body, _ in host.dead] == [b"a", b"b"]


# --- time ---------------------------------------------------------------------------------------


def test_messages_expire_after_the_message_ttl_of_the_queue(host: Host) -> None:
    queue = filled(host, "a", message_ttl_ms=50, dead=True)
    assert host.wakes == [1050]
    host.now = 1049
    queue.expire()
    assert (host.dead, queue.message_count) == ([], 1)
    host.now = 1050
    queue.expire()
    assert (host.dead, queue.message_count) == ([(b"a", "expired")], 0)


def test_a_message_with_ttl_0_is_delivered_at_once_or_dead_lettered(host: Host) -> None:
    queue = filled(host, "a", message_ttl_ms=0, dead=True)
    assert host.dead == [(b"a", "expired")]
    reader = Reader()
    queue.add_consumer(reader)
    queue.publish(sent("b", now=1000), None, 0)
    queue.publish(sent("c", now=1000, expiration="0"), None, 0)
    assert reader.bodies == [b"b", b"c"]


def test_the_host_is_asked_to_wake_the_queue_at_the_next_expiry(host: Host) -> None:
    queue = made(host)
    for expiration in ("30", "20", "40"):
        queue.publish(sent(expiration, now=1000, expiration=expiration), None, 0)
    assert host.wakes == [1030, 1020]
    host.now = 1020
    queue.expire()
    assert host.wakes == [1030, 1020, 1030]
    assert drained(queue) == [b"30", b"40"]


def test_expired_messages_are_not_delivered_before_the_queue_is_woken(host: Host) -> None:
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


def test_an_unused_queue_is_deleted_after_its_expires_time(host: Host) -> None:
    queue = made(host, expires_ms=100)
    assert host.wakes == [1100]
    host.now = 1100
    queue.expire()
    assert host.deleted == [queue]


@pytest.mark.parametrize("use", ["get", "touch"])
def test_use_restarts_the_expires_time_of_a_queue(host: Host, use: str) -> None:
    queue = made(host, expires_ms=100)
    host.now = 1060
    getattr(queue, use)()
    host.now = 1100
    queue.expire()
    assert (host.deleted, host.wakes) == ([], [1100, 1160])
    host.now = 1160
    queue.expire()
    assert host.deleted == [queue]


def test_a_queue_with_a_consumer_does_not_expire_and_expires_after_losing_it(host: Host) -> None:
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


def test_a_policy_can_set_and_remove_the_expires_time(host: Host) -> None:
    queue = made(host)
    queue.apply_settings(QueueSettings(expires_ms=10))
    queue.apply_settings(QueueSettings())
    host.now = 9999
    queue.expire()
    assert host.deleted == []


# --- deletion -----------------------------------------------------------------------------------


def test_an_auto_delete_queue_is_deleted_with_its_last_consumer(host: Host) -> None:
    queue, a, b = made(host), Reader("a"), Reader("b")
    queue.is_auto_delete = True
    queue.add_consumer(a)
    queue.add_consumer(b)
    queue.remove_consumer(a)
    queue.remove_consumer(a)
    assert host.deleted == []
    queue.remove_consumer(b)
    assert host.deleted == [queue]


def test_a_deletion_cancels_the_consumers_and_counts_ready_messages(host: Host) -> None:
    queue, reader = filled(host, "a", "b", "c", expires_ms=10), Reader(prefetch=1)
    queue.add_consumer(reader)
    assert queue.delete() == 2
    assert (reader.cancels, queue.consumer_count, queue.message_count) == (1, 0, 0)
    assert host.wakes[-1] == -1
    host.now = 9999
    queue.expire()
    assert host.deleted == []


def test_purging_leaves_unacknowledged_messages(host: Host) -> None:
    queue = filled(host, "a", "b", "c")
    delivery = queue.get()
    assert queue.clear() == 2
    assert (queue.message_count, queue.ready_bytes, queue.unacked_count) == (0, 0, 1)
    queue.requeue(delivery)
    assert drained(queue) == [b"a"]


def test_an_exclusive_consumer_is_the_only_consumer(host: Host) -> None:
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


def test_a_paused_queue_delivers_nothing_and_accepts_messages(host: Host) -> None:
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


def test_a_message_requeued_to_a_paused_queue_is_delivered_first_after_resuming(host: Host) -> None:
    queue, reader = filled(host, "a", "b"), Reader(prefetch=1)
    queue.add_consumer(reader)
    queue.pause()
    queue.requeue(reader.unsettled.pop())
    queue.consumer_ready(reader)
    assert reader.got == [(b"a", False)]
    queue.resume()
    assert reader.got == [(b"a", False), (b"a", True)]


def test_limits_and_ttls_apply_while_a_queue_is_paused(host: Host) -> None:
    queue = made(host, dead=True, length_max=2, message_ttl_ms=10)
    queue.pause()
    for body in "abc":
        queue.publish(sent(body, now=host.now), None, 0)
    assert host.dead == [(b"a", "maxlen")]
    host.now += 10
    queue.expire()
    assert [reason for _, reason in host.dead] == ["maxlen", "expired", "expired"]


def test_the_single_active_consumer_stays_active_over_a_pause(host: Host) -> None:
    queue, first, second = made(host, single_active_consumer=True), Reader("a"), Reader("b")
    queue.add_consumer(first)
    queue.add_consumer(second)
    queue.pause()
    queue.publish(sent("x"), None, 0)
    assert first.bodies == []
    queue.resume()
    assert (first.bodies, second.bodies) == ([b"x"], [])
