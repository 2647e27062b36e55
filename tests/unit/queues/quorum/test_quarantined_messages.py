"""Messages in quarantine: they count in the queue, and towards its limits."""

import pytest
from tests.unit.queues.quorum.test_retrying_queue import Retrying, made, taken
from tests.unit.queues.samples import Host, drained, sent

from warren.model.arguments import DelayedRetry, Overflow, QueueSettings
from warren.queues.queue import ACCEPTED, REFUSED
from warren.queues.quorum.quorum_queue import QuorumQueue

REFUSING = {"overflow": Overflow.REJECT_PUBLISH}
LIMITS = [{"length_max": 2}, {"length_bytes_max": 2}]


@pytest.fixture
def host() -> Host:
    return Retrying(1_000)


def failing(host: Host, bodies: str = "", **limits: object) -> QuorumQueue:
    """A queue with a quarantined message for each letter of `bodies`."""
    queue = made(host, retry=DelayedRetry.DISABLED, delivery_limit=0, **limits)
    for body in bodies:
        put_in_quarantine(queue, body)
    return queue


def put_in_quarantine(queue: QuorumQueue, body: str) -> None:
    """Publish a message to `queue`, and exceed its delivery limit."""
    assert queue.publish(sent(body), None, 0) == ACCEPTED
    queue.requeue(taken(queue))


def quarantined(queue: QuorumQueue) -> list[bytes]:
    return [peeked.message.body for peeked in queue.quarantined(0, 99)]


def release_all(queue: QuorumQueue) -> list[bool]:
    return [queue.release_quarantined(place) for place in queue.quarantined_places()]


def test_quarantined_messages_are_among_all_messages(host: Host) -> None:
    queue = failing(host, "ab")
    queue.publish(sent("c"), None, 0)
    status = queue.replication_status()
    assert status is not None
    assert (queue.total_count, status.quarantined_count, status.quarantined_bytes) == (3, 2, 2)
    for place in queue.quarantined_places():
        assert queue.remove_quarantined(place)
    status = queue.replication_status()
    assert status is not None
    assert (queue.total_count, status.quarantined_count, status.quarantined_bytes) == (1, 0, 0)


@pytest.mark.parametrize("limits", LIMITS)
def test_quarantined_messages_fill_a_queue_that_rejects_publishes(
    limits: dict[str, object], host: Host
) -> None:
    queue = failing(host, "ab", **limits, **REFUSING)
    assert queue.publish(sent("c"), None, 0) & REFUSED
    queue.remove_quarantined(queue.quarantined_places()[0])
    assert queue.publish(sent("c"), None, 0) == ACCEPTED


@pytest.mark.parametrize("limits", LIMITS)
def test_a_queue_that_drops_its_head_drops_what_is_in_quarantine_before_what_is_ready(
    limits: dict[str, object], host: Host
) -> None:
    queue = failing(host, "abc", **limits)
    assert quarantined(queue) == [b"b", b"c"]
    for body in "def":
        queue.publish(sent(body), None, 0)
    assert (quarantined(queue), drained(queue)) == ([], [b"e", b"f"])


def test_a_dead_letter_exchange_that_came_later_gets_what_is_dropped_out_of_quarantine(host: Host) -> None:
    queue = failing(host, "abc")
    queue.apply_settings(QueueSettings(kind="quorum", length_max=2, dead_letter_exchange="dlx"))
    assert (host.dead, quarantined(queue)) == ([(b"a", "maxlen")], [b"b", b"c"])


@pytest.mark.parametrize("limits", LIMITS)
def test_a_release_leaves_in_quarantine_what_exceeds_the_limits(
    limits: dict[str, object], host: Host
) -> None:
    queue = failing(host, "abcd")
    queue.apply_settings(QueueSettings(kind="quorum", **limits, **REFUSING))
    assert release_all(queue) == [True, True, False, False]
    assert (queue.message_count, quarantined(queue)) == (2, [b"c", b"d"])
    assert drained(queue) == [b"a", b"b"]
    assert release_all(queue) == [True, True]


def test_a_release_into_a_queue_that_drops_its_head_keeps_to_the_limit(host: Host) -> None:
    queue = failing(host, "abcd", length_max=3)
    assert release_all(queue) == [True, True, True]
    assert drained(queue) == [b"b", b"c", b"d"]
