"""The expiry of a message is fixed when it enters the queue; a TTL set later applies to later messages."""

import pytest
from tests.unit.queues.samples import Host, Reader, filled, made, sent
from tests.unit.queues.test_disk_backlog import Paged

from warren.limits import TTL_CHANGES_MAX
from warren.model.arguments import QueueSettings
from warren.queues.classic import ClassicQueue
from warren.queues.ttl_changes import TtlChanges


@pytest.fixture
def host() -> Host:
    return Host(now=1000)


def change(queue: ClassicQueue, ttl_ms: int | None) -> None:
    queue.apply_settings(QueueSettings(message_ttl_ms=ttl_ms, priority_max=queue.settings.priority_max))


def publish(queue: ClassicQueue, host: Host, *bodies: str, **properties: object) -> None:
    for body in bodies:
        queue.publish(sent(body, now=host.now, **properties), None, 0)


def left(queue: ClassicQueue) -> list[bytes]:
    return [peeked.message.body for peeked in queue.peek(0, 100)]


def pass_time(queue: ClassicQueue, host: Host, now: int) -> None:
    """Set the time to `now`, and wake the queue if it asked to be woken by then."""
    host.now = now
    if any(when <= now for when in host.wakes):
        host.wakes.clear()
        queue.expire()


def taken_first(paged: Paged) -> int:
    found: list[int] = []
    paged.take_into(found, 1)
    return found[0]


def test_messages_already_queued_have_no_ttl_when_one_is_set(host: Host) -> None:
    queue = filled(host, "a", "b")
    change(queue, 50)
    publish(queue, host, "c")
    pass_time(queue, host, 5000)
    assert left(queue) == [b"a", b"b", b"c"]


def test_a_later_message_with_a_ttl_expires_when_it_becomes_the_first(host: Host) -> None:
    queue, reader = filled(host, "a"), Reader(prefetch=1)
    change(queue, 50)
    publish(queue, host, "b")
    host.now = 1040
    publish(queue, host, "c")
    pass_time(queue, host, 1060)
    queue.add_consumer(reader)
    assert (reader.bodies, left(queue)) == ([b"a"], [b"c"])
    pass_time(queue, host, 1090)
    assert left(queue) == []


def test_a_consumer_does_not_receive_an_expired_message_behind_one_without_a_ttl(host: Host) -> None:
    queue, reader = filled(host, "a"), Reader()
    change(queue, 50)
    publish(queue, host, "b")
    change(queue, None)
    publish(queue, host, "c")
    host.now = 1060
    queue.add_consumer(reader)
    assert reader.bodies == [b"a", b"c"]


@pytest.mark.parametrize("no_ack", [False, True])
def test_get_does_not_return_an_expired_message_behind_one_without_a_ttl(host: Host, no_ack: bool) -> None:
    queue = filled(host, "a")
    change(queue, 50)
    publish(queue, host, "b")
    host.now = 1060
    assert queue.get(no_ack).message.body == b"a"
    assert queue.get(no_ack) is None


@pytest.mark.parametrize(("before", "after"), [(1000, 50), (1000, None), (1000, 9000)])
def test_queued_messages_keep_their_earlier_ttl(host: Host, before: int, after: int | None) -> None:
    queue = filled(host, "a", message_ttl_ms=before)
    change(queue, after)
    publish(queue, host, "b")
    pass_time(queue, host, 1999)
    assert left(queue) == [b"a", b"b"]
    pass_time(queue, host, 2000)
    assert left(queue) == ([] if after == 50 else [b"b"])


def test_an_unacknowledged_message_keeps_its_earlier_ttl_when_it_is_requeued(host: Host) -> None:
    queue = filled(host, "a")
    delivery = queue.get()
    change(queue, 50)
    host.now = 5000
    queue.requeue(delivery)
    assert left(queue) == [b"a"]
    assert queue.get().message.body == b"a"


def test_the_shorter_of_expiration_and_ttl_at_arrival_applies(host: Host) -> None:
    queue = made(host)
    publish(queue, host, "a", expiration="500")
    change(queue, 50)
    publish(queue, host, "b", expiration="500")
    pass_time(queue, host, 1050)
    assert left(queue) == [b"a"]
    pass_time(queue, host, 1500)
    assert left(queue) == []


def test_after_the_queue_was_empty_the_new_ttl_applies_to_all(host: Host) -> None:
    queue = filled(host, "a")
    change(queue, 50)
    queue.acknowledge(queue.get())
    publish(queue, host, "b")
    pass_time(queue, host, 1050)
    assert left(queue) == []


def test_messages_of_each_priority_keep_their_ttl(host: Host) -> None:
    queue = made(host, priority_max=2)
    publish(queue, host, "a", priority=1)
    change(queue, 50)
    publish(queue, host, "b", priority=1)
    publish(queue, host, "c", priority=2)
    pass_time(queue, host, 1050)
    assert left(queue) == [b"a", b"b"]
    assert queue.get().message.body == b"a"
    pass_time(queue, host, 1050)
    assert left(queue) == []


def test_after_the_first_message_is_dropped_the_next_one_expires(host: Host) -> None:
    queue = filled(host, "a", length_max=2)
    queue.apply_settings(QueueSettings(length_max=2, message_ttl_ms=50))
    publish(queue, host, "b", "c")
    pass_time(queue, host, 1050)
    assert left(queue) == []


@pytest.mark.parametrize("priority_max", [None, 3])
def test_a_restart_remembers_which_messages_precede_a_change(priority_max: int | None) -> None:
    paged = Paged(priority_max)
    paged.publish(0)
    change(paged.queue, 50)
    paged.publish(1)
    paged.publish(2)
    paged.write()
    paged.settings["message_ttl_ms"] = 50
    for _ in range(2):
        paged.host.now = 5000
        paged.open()
        assert paged.queue.message_count == 3
    assert taken_first(paged) == 0
    assert paged.queue.get() is None


def test_a_restart_forgets_a_change_without_earlier_messages() -> None:
    paged = Paged()
    paged.publish(0)
    change(paged.queue, 50)
    paged.write()
    assert taken_first(paged) == 0
    paged.publish(1)
    paged.write()
    paged.settings["message_ttl_ms"] = 50
    paged.host.now = 5000
    paged.open()
    paged.queue.expire()
    assert paged.queue.message_count == 0


def test_beyond_the_bound_of_changes_no_message_expires_early() -> None:
    changes = TtlChanges()
    for number in range(TTL_CHANGES_MAX + 2):
        changes.add(10 * number + 10, 500 if number else -1)
    assert len(list(changes)) == TTL_CHANGES_MAX
    assert [changes.at(position, 7) for position in (0, 25, 40)] == [-1, -1, 500]
    assert changes.at(10 * TTL_CHANGES_MAX + 20, 7) == 7


def test_a_second_change_at_one_position_is_not_recorded() -> None:
    changes = TtlChanges()
    changes.add(5, 100)
    changes.add(5, 200)
    assert list(changes) == [(5, 100)]
