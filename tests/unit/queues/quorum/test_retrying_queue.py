"""When a quorum queue delivers messages again that came back: `x-delayed-retry-type`, `-min` and `-max`."""

import pytest
from tests.unit.queues.samples import Host, Reader, drained, sent

from warren.metadata.incarnation import Incarnation
from warren.model.arguments import DelayedRetry, Overflow, QueueSettings
from warren.queues.queue import CHANNEL_ENDED, NACKED, REJECTED, TIMED_OUT, Delivery, Expirable
from warren.queues.quorum.quorum_queue import QuorumQueue

ALL, FAILED, RETURNED = DelayedRetry.ALL, DelayedRetry.FAILED, DelayedRetry.RETURNED


class Retrying(Host):
    """A host that takes note of nothing that waits for a route."""

    def retry_dead_letters(self, waiting: Expirable, when: int) -> None:
        assert when == -1


@pytest.fixture
def host() -> Host:
    return Retrying(1_000)


def made(host: Host, *bodies: str, retry: DelayedRetry = ALL, **more: object) -> QuorumQueue:
    """A quorum queue in memory with messages of these bodies; they are delayed by 100, 200 and 250 ms."""
    delays: dict[str, object] = {"delayed_retry_ms_min": 100, "delayed_retry_ms_max": 250}
    settings = QueueSettings(kind="quorum", delayed_retry=retry, **(delays | more))
    queue = QuorumQueue("q", "v", host, settings, incarnation=Incarnation(1, 1))
    for body in bodies:
        queue.publish(sent(body, now=host.now), None, 0)
    return queue


def taken(queue: QuorumQueue) -> Delivery:
    """The first ready message."""
    delivery = queue.get()
    assert delivery is not None
    return delivery


def returned(queue: QuorumQueue, reason: int = REJECTED) -> None:
    """Take the first ready message, and return it."""
    queue.requeue(taken(queue), reason)
    queue.pump()


def delay_of(queue: QuorumQueue, host: Host) -> int:
    """The time until the message that came back is ready, in which nothing is."""
    begin = host.now
    if queue.message_count:
        return 0
    wake = host.wakes[-1]
    host.now = wake - 1
    queue.expire()
    queue.pump()
    assert queue.get() is None
    host.now = wake
    queue.expire()
    assert queue.message_count == 1
    return wake - begin


@pytest.mark.parametrize(
    ("retry", "reason", "delays"),
    [
        (ALL, REJECTED, [100, 200, 250, 250]),
        (ALL, CHANNEL_ENDED, [100, 200, 250, 250]),
        (ALL, NACKED, [100, 100, 100]),
        (ALL, TIMED_OUT, [100, 100, 100]),
        (FAILED, REJECTED, [100, 200, 250]),
        (FAILED, CHANNEL_ENDED, [100, 200, 250]),
        (FAILED, NACKED, [0, 0]),
        (FAILED, TIMED_OUT, [0, 0]),
        (RETURNED, REJECTED, [0, 0]),
        (RETURNED, CHANNEL_ENDED, [0, 0]),
        (RETURNED, NACKED, [100, 100, 100]),
        (RETURNED, TIMED_OUT, [100, 100, 100]),
        (DelayedRetry.DISABLED, REJECTED, [0, 0]),
    ],
)
def test_a_message_waits_for_the_minimum_times_its_failures_up_to_the_maximum(
    host: Host, retry: DelayedRetry, reason: int, delays: list[int]
) -> None:
    queue = made(host, "a", retry=retry)
    found = []
    for _ in delays:
        returned(queue, reason)
        found.append(delay_of(queue, host))
    assert found == delays


def test_a_return_that_is_no_failure_does_not_make_the_next_delay_longer(host: Host) -> None:
    queue = made(host, "a")
    found = []
    for reason in (REJECTED, NACKED, TIMED_OUT, REJECTED, NACKED):
        returned(queue, reason)
        found.append(delay_of(queue, host))
    assert found == [100, 100, 100, 200, 200]


def test_without_a_maximum_the_delay_does_not_grow_and_without_a_minimum_there_is_none(host: Host) -> None:
    queue = made(host, "a", delayed_retry_ms_max=None)
    found = []
    for _ in range(4):
        returned(queue)
        found.append(delay_of(queue, host))
    assert found == [100, 100, 100, 100]
    queue = made(host, "a", delayed_retry_ms_min=None)
    returned(queue)
    assert queue.message_count == 1


def test_a_delayed_message_is_neither_ready_nor_unacknowledged_and_is_counted(host: Host) -> None:
    queue = made(host, "abc", "d")
    returned(queue)
    status = queue.replication_status()
    assert status is not None
    assert (status.delayed_count, status.delayed_bytes) == (1, 3)
    assert (queue.message_count, queue.ready_bytes, queue.unacked_count, queue.unacked_bytes) == (1, 1, 0, 0)
    assert queue.counts().delayed_count == 1
    assert [peeked.message.body for peeked in queue.peek(0, 9)] == [b"d"]


def test_a_message_that_was_delayed_is_at_its_place_and_redelivered(host: Host) -> None:
    queue = made(host, "a", "b", "c")
    returned(queue)
    queue.acknowledge(taken(queue))
    host.now += 100
    queue.expire()
    found = [taken(queue), taken(queue)]
    assert [(each.message.body, each.attempts) for each in found] == [(b"a", 1), (b"c", 0)]


def test_a_waiting_consumer_gets_a_message_as_soon_as_its_delay_has_ended(host: Host) -> None:
    queue = made(host, "a")
    reader = Reader()
    queue.add_consumer(reader)
    queue.requeue(reader.unsettled.pop(), REJECTED)
    queue.pump()
    host.now += 99
    queue.expire()
    assert reader.got == [(b"a", False)]
    host.now += 1
    queue.expire()
    assert reader.got == [(b"a", False), (b"a", True)]


def test_the_queue_is_woken_for_the_delay_that_ends_first(host: Host) -> None:
    queue = made(host, "a", "b")
    first = taken(queue)
    queue.requeue(first, REJECTED)
    host.now += 60
    second = taken(queue)
    queue.requeue(second, REJECTED)
    assert host.wakes == [1_100]
    host.now = 1_100
    queue.expire()
    assert host.wakes == [1_100, 1_160]
    assert drained(queue) == [b"a"]
    host.now = 1_160
    queue.expire()
    assert drained(queue) == [b"b"]


def test_a_delayed_message_expires_while_it_waits(host: Host) -> None:
    queue = made(host, "a", message_ttl_ms=50, dead_letter_exchange="dlx")
    returned(queue)
    host.now += 50
    queue.expire()
    assert host.dead == [(b"a", "expired")]
    assert queue.counts().delayed_count == 0
    queue = made(host, dead_letter_exchange="dlx")
    queue.publish(sent("b", now=host.now, expiration="30"), None, 0)
    queue.publish(sent("c", now=host.now, expiration="1000"), None, 0)
    returned(queue)
    returned(queue)
    host.now += 30
    queue.expire()
    assert host.dead[1:] == [(b"b", "expired")]
    host.now += 70
    queue.expire()
    assert drained(queue) == [b"c"]


def test_a_delayed_message_keeps_its_time_to_live_when_that_of_the_queue_changes(host: Host) -> None:
    queue = made(host, "a", message_ttl_ms=50)
    returned(queue)
    queue.apply_settings(QueueSettings(kind="quorum", message_ttl_ms=5_000))
    host.now += 50
    queue.expire()
    queue.pump()
    assert (queue.message_count, queue.counts().delayed_count) == (0, 0)


def test_a_change_of_the_settings_leaves_messages_that_wait_alone(host: Host) -> None:
    queue = made(host, "a")
    returned(queue)
    queue.apply_settings(QueueSettings(kind="quorum"))
    assert queue.message_count == 0
    host.now += 100
    queue.expire()
    assert queue.message_count == 1
    returned(queue)
    assert queue.message_count == 1


def test_delayed_messages_count_towards_the_limits_of_the_queue(host: Host) -> None:
    queue = made(host, "a", "b", length_max=2, overflow=Overflow.REJECT_PUBLISH)
    returned(queue)
    assert queue.refuses(sent("c", now=host.now))
    queue = made(host, "abc", "def", length_bytes_max=6, overflow=Overflow.REJECT_PUBLISH)
    returned(queue)
    assert queue.refuses(sent("c", now=host.now))


def test_a_queue_that_drops_its_head_drops_ready_messages_for_delayed_ones(host: Host) -> None:
    queue = made(host, "a", "b", length_max=2, dead_letter_exchange="dlx")
    delivery = taken(queue)
    queue.publish(sent("c", now=host.now), None, 0)
    queue.requeue(delivery, REJECTED)
    assert host.dead == [(b"b", "maxlen")]
    queue.publish(sent("d", now=host.now), None, 0)
    assert host.dead == [(b"b", "maxlen"), (b"c", "maxlen")]
    host.now += 100
    queue.expire()
    assert drained(queue) == [b"a", b"d"]


def test_a_delayed_message_that_exceeds_the_delivery_limit_dies_at_once(host: Host) -> None:
    queue = made(host, "a", delivery_limit=1, dead_letter_exchange="dlx")
    returned(queue)
    host.now += 100
    queue.expire()
    returned(queue)
    assert host.dead == [(b"a", "delivery_limit")]
    assert queue.counts().delayed_count == 0


def test_a_released_message_begins_with_the_shortest_delay(host: Host) -> None:
    queue = made(host, "a", delivery_limit=1)
    returned(queue)
    host.now += 100
    queue.expire()
    returned(queue)
    [place] = queue.quarantined_places()
    assert queue.release_quarantined(place)
    delivery = taken(queue)
    delivery.attempts = 0
    queue.requeue(delivery, REJECTED)
    assert delay_of(queue, host) == 100


def test_a_purge_and_a_deletion_drop_delayed_messages(host: Host) -> None:
    queue = made(host, "a", "b")
    returned(queue)
    assert queue.clear() == 2
    host.now += 100
    queue.expire()
    assert queue.message_count == 0
    queue = made(host, "a", "b")
    returned(queue)
    assert queue.delete() == 2
    assert queue.counts().delayed_count == 0


def test_a_message_that_comes_back_to_a_deleted_queue_does_not_wait(host: Host) -> None:
    queue = made(host, "a")
    delivery = taken(queue)
    queue.delete()
    queue.requeue(delivery, REJECTED)
    assert queue.counts().delayed_count == 0


@pytest.mark.parametrize(
    ("counts_all_returns", "reasons", "counts"),
    [
        (True, [NACKED, TIMED_OUT, REJECTED], [(1, 1), (2, 2), None]),
        (False, [NACKED, TIMED_OUT, NACKED, REJECTED], [(0, 1), (0, 2), (0, 3), (1, 4)]),
        (False, [REJECTED, NACKED, CHANNEL_ENDED, NACKED, REJECTED], [(1, 1), (1, 2), (2, 3), (2, 4), None]),
    ],
)
def test_returns_count_towards_the_delivery_limit_if_all_do_or_if_the_delivery_has_failed(
    host: Host, counts_all_returns: bool, reasons: list[int], counts: list[tuple[int, int] | None]
) -> None:
    host.counts_all_returns = counts_all_returns
    queue = made(host, "a", retry=DelayedRetry.DISABLED, delivery_limit=2, dead_letter_exchange="dlx")
    delivery: Delivery | None = taken(queue)
    found: list[tuple[object, object] | None] = []
    for reason in reasons:
        assert delivery is not None
        queue.requeue(delivery, reason)
        delivery = queue.get()
        headers = {} if delivery is None else queue.outgoing(delivery).properties().headers or {}
        found.append((headers["x-delivery-count"], headers["x-acquired-count"]) if headers else None)
    assert found == counts
    assert host.dead == ([(b"a", "delivery_limit")] if counts[-1] is None else [])
