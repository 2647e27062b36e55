"""Ready messages by priority: the highest first, and in order of arrival within a priority."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.queues.samples import Host, made, sent

from warren.model.arguments import QueueSettings
from warren.queues.classic import ClassicQueue
from warren.queues.message_backlog import MessageBacklog
from warren.queues.priority_backlog import PriorityBacklog

NONE = -1
QUEUE = made(Host())


def waiting(*messages: tuple[str, int | None], priority_max: int = 3) -> PriorityBacklog:
    ready = PriorityBacklog(priority_max, lambda _: MessageBacklog())
    for body, priority in messages:
        ready.push(sent(body, priority=priority))
    return ready


def popped(ready: PriorityBacklog) -> list[bytes]:
    return [ready.pop(QUEUE).message.body for _ in range(ready.count)]


def test_the_highest_priority_is_first() -> None:
    assert popped(waiting(("a", 0), ("b", 2), ("c", 1), ("d", 2))) == [b"b", b"d", b"c", b"a"]


def test_no_priority_is_the_lowest_and_priorities_above_the_maximum_are_capped() -> None:
    assert popped(waiting(("a", None), ("b", 200), ("c", 3), ("d", 0))) == [b"b", b"c", b"a", b"d"]


def test_a_requeued_message_returns_to_its_position_in_its_priority() -> None:
    ready = waiting(("a", 1), ("b", 1), ("c", 0))
    first, second = ready.pop(QUEUE), ready.pop(QUEUE)
    ready.push_back(second, NONE)
    ready.push_back(first, NONE)
    ready.push(sent("d", priority=2))
    assert ready.first().body == b"d"
    assert popped(ready) == [b"d", b"a", b"b", b"c"]


def test_messages_of_every_priority_expire() -> None:
    ready = waiting(("keep", 3))
    for priority in (0, 3):
        message = sent(f"{priority}", priority=priority, expiration="10")
        ready.push(message)
        assert ready.push_deadline(message, NONE) == 10
    assert ready.deadline(NONE) == 10
    bodies = {ready.pop_expired(10, NONE).body for _ in range(2)}
    assert bodies == {b"0", b"3"}
    assert ready.pop_expired(10, NONE) is None
    assert (ready.count, ready.byte_count, ready.deadline(NONE)) == (1, 4, NONE)


def test_purging_empties_every_priority() -> None:
    ready = waiting(("a", 0), ("b", 3))
    ready.clear()
    assert (ready.count, ready.byte_count) == (0, 0)
    ready.push(sent("c", priority=1))
    assert popped(ready) == [b"c"]


STEPS = st.sampled_from(["pop", "pop_message", "push_back", "expire", "clear"]) | st.integers(0, 6)


@given(st.lists(STEPS, max_size=50))
def test_a_priority_backlog_behaves_as_a_stable_sort(steps: list[str | int]) -> None:
    ready, naive, held = waiting(priority_max=4), [], []
    for number, step in enumerate(steps):
        naive.sort(key=lambda entry: entry[0])
        if isinstance(step, int):
            message = sent(f"{number}", priority=step, expiration=str(1 + number % 9))
            ready.push(message)
            ready.push_deadline(message, NONE)
            naive.append(((-min(step, 4), number), message))
        elif step == "clear":
            ready.clear()
            naive.clear()
        elif step == "expire":
            now = number % 7
            while (expired := ready.pop_expired(now, NONE)) is not None:
                [found] = [entry for entry in naive if entry[1] is expired]
                naive.remove(found)
            assert all(int(message.properties().expiration) > now for _, message in naive)
        elif step == "push_back" and held:
            place, delivery = held.pop()
            ready.push_back(delivery, NONE)
            naive.append((place, delivery.message))
        elif step == "pop" and naive:
            held.append((naive[0][0], ready.pop(QUEUE)))
            assert held[-1][1].message is naive.pop(0)[1]
        elif step == "pop_message" and naive and ready.is_fresh():
            assert ready.pop_message() is naive.pop(0)[1]
        assert ready.count == len(naive)
        assert ready.byte_count == sum(message.body_size for _, message in naive)
    naive.sort(key=lambda entry: entry[0])
    assert popped(ready) == [message.body for _, message in naive]


def test_a_message_taken_from_the_middle_returns_to_its_priority() -> None:
    queue = made(Host(), priority_max=3)
    for body, priority in zip("abcd", [1, 3, 1, 0], strict=True):
        queue.publish(sent(body, priority=priority), None, 0)
    at = {peeked.message.body: peeked for peeked in queue.peek(0, 9)}
    extent = queue.extent()
    queue.publish(sent("e", priority=3), None, 0)
    found = [peeked.message.body for peeked in queue.peek(0, 9) if any(peeked.place in one for one in extent)]
    assert found == [b"b", b"a", b"c", b"d"]
    last = queue.peek(queue.last_place(sent(priority=9)), 1)
    assert last[0].message.body == b"e"
    taken = queue.take(at[b"c"])
    assert (taken.message.body, queue.message_count, queue.take(at[b"c"])) == (b"c", 4, None)
    queue.give_back(taken)
    assert [queue.get().message.body for _ in range(5)] == [b"b", b"e", b"a", b"c", b"d"]


def test_a_backlog_that_becomes_level_0_keeps_its_messages() -> None:
    before = MessageBacklog()
    before.push(sent("a"))
    before.push(sent("b"))
    ready = PriorityBacklog(3, lambda _: MessageBacklog())
    ready.adopt(before)
    ready.push(sent("c", priority=1))
    assert (ready.count, ready.byte_count) == (3, 3)
    assert popped(ready) == [b"c", b"a", b"b"]


def test_a_queue_tells_what_is_ready_by_priority_and_the_age_of_the_oldest() -> None:
    host = Host(1_000)
    queue = made(host, priority_max=3)
    assert (queue.ready_by_priority, queue.oldest_ready_ms) == ({}, None)
    for body, priority in zip("abc", [1, 3, 9], strict=True):
        queue.publish(sent(body, now=host.now, priority=priority), None, 0)
        host.now += 10
    assert (queue.ready_by_priority, queue.oldest_ready_ms) == ({1: 1, 3: 2}, 30)
    assert queue.oldest_ready_at == host.now - 30
    assert queue.get().message.body == b"b"
    oldest = queue.peek(0, 9)[-1]
    taken = queue.take(oldest)
    assert (queue.ready_by_priority, queue.oldest_ready_ms) == ({3: 1}, 10)
    queue.give_back(taken)
    assert (queue.ready_by_priority, queue.oldest_ready_ms) == ({1: 1, 3: 1}, 30)
    plain = ClassicQueue("q", "/", host, QueueSettings())
    plain.publish(sent("a", now=0), None, 0)
    assert (plain.ready_by_priority, plain.oldest_ready_ms) == (None, host.now)
