"""When a message expires is fixed when it enters: what an operator sets later concerns what comes later."""

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
    """Let it be `now`, and wake the queue if it wanted to be woken by then."""
    host.now = now
    if any(when <= now for when in host.wakes):
        host.wakes.clear()
        queue.expire()


def taken_first(paged: Paged) -> int:
    found: list[int] = []
    paged.take_into(found, 1)
    return found[0]


def test_what_waits_when_a_time_to_live_is_set_has_none(host: Host) -> None:
    queue = filled(host, "a", "b")
    change(queue, 50)
    publish(queue, host, "c")
    pass_time(queue, host, 5000)
    assert left(queue) == [b"a", b"b", b"c"]


def test_what_comes_behind_goes_when_it_is_the_first(host: Host) -> None:
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


def test_one_consumer_is_not_given_what_was_behind_and_is_over(host: Host) -> None:
    queue, reader = filled(host, "a"), Reader()
    change(queue, 50)
    publish(queue, host, "b")
    change(queue, None)
    publish(queue, host, "c")
    host.now = 1060
    queue.add_consumer(reader)
    assert reader.bodies == [b"a", b"c"]


@pytest.mark.parametrize("no_ack", [False, True])
def test_nor_is_who_gets(host: Host, no_ack: bool) -> None:
    queue = filled(host, "a")
    change(queue, 50)
    publish(queue, host, "b")
    host.now = 1060
    assert queue.get(no_ack).message.body == b"a"
    assert queue.get(no_ack) is None


@pytest.mark.parametrize(("before", "after"), [(1000, 50), (1000, None), (1000, 9000)])
def test_what_had_a_time_to_live_keeps_it(host: Host, before: int, after: int | None) -> None:
    queue = filled(host, "a", message_ttl_ms=before)
    change(queue, after)
    publish(queue, host, "b")
    pass_time(queue, host, 1999)
    assert left(queue) == [b"a", b"b"]
    pass_time(queue, host, 2000)
    assert left(queue) == ([] if after == 50 else [b"b"])


def test_what_is_out_keeps_its_own_when_it_comes_back(host: Host) -> None:
    queue = filled(host, "a")
    delivery = queue.get()
    change(queue, 50)
    host.now = 5000
    queue.requeue(delivery)
    assert left(queue) == [b"a"]
    assert queue.get().message.body == b"a"


def test_one_with_an_expiration_of_its_own_keeps_the_shorter_one_of_when_it_came(host: Host) -> None:
    queue = made(host)
    publish(queue, host, "a", expiration="500")
    change(queue, 50)
    publish(queue, host, "b", expiration="500")
    pass_time(queue, host, 1050)
    assert left(queue) == [b"a"]
    pass_time(queue, host, 1500)
    assert left(queue) == []


def test_a_queue_that_was_empty_in_between_has_one_time_to_live(host: Host) -> None:
    queue = filled(host, "a")
    change(queue, 50)
    queue.acknowledge(queue.get())
    publish(queue, host, "b")
    pass_time(queue, host, 1050)
    assert left(queue) == []


def test_each_priority_keeps_what_it_had(host: Host) -> None:
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


def test_the_first_of_a_full_queue_may_go_and_the_next_is_looked_after(host: Host) -> None:
    queue = filled(host, "a", length_max=2)
    queue.apply_settings(QueueSettings(length_max=2, message_ttl_ms=50))
    publish(queue, host, "b", "c")
    pass_time(queue, host, 1050)
    assert left(queue) == []


@pytest.mark.parametrize("priority_max", [None, 3])
def test_a_start_knows_what_came_before_a_change(priority_max: int | None) -> None:
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


def test_a_start_has_forgotten_a_change_that_concerns_nothing_any_more() -> None:
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


def test_of_too_many_changes_nothing_goes_before_its_time() -> None:
    changes = TtlChanges()
    for number in range(TTL_CHANGES_MAX + 2):
        changes.add(10 * number + 10, 500 if number else -1)
    assert len(list(changes)) == TTL_CHANGES_MAX
    assert [changes.at(position, 7) for position in (0, 25, 40)] == [-1, -1, 500]
    assert changes.at(10 * TTL_CHANGES_MAX + 20, 7) == 7


def test_a_change_before_anything_came_is_none() -> None:
    changes = TtlChanges()
    changes.add(5, 100)
    changes.add(5, 200)
    assert list(changes) == [(5, 100)]
