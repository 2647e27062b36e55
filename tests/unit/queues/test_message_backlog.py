"""Ready messages in order of position, with requeueing and removal in the middle."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.queues.samples import Host, made, sent

from warren.model.message import Message
from warren.queues.message_backlog import MessageBacklog
from warren.queues.queue import Delivery

NONE = -1
QUEUE = made(Host())


def ready(*bodies: str) -> MessageBacklog:
    waiting = MessageBacklog()
    for body in bodies:
        waiting.push(sent(body))
    return waiting


def pushed(waiting: MessageBacklog, message: Message, ttl_ms: int = NONE) -> int:
    waiting.push(message)
    return waiting.push_deadline(message, ttl_ms)


def popped(waiting: MessageBacklog) -> list[bytes]:
    return [waiting.pop(QUEUE).message.body for _ in range(waiting.count)]


def expired(waiting: MessageBacklog, now: int, ttl_ms: int = NONE) -> list[bytes]:
    bodies = []
    while (message := waiting.pop_expired(now, ttl_ms)) is not None:
        bodies.append(message.body)
    return bodies


def test_messages_leave_in_order_of_arrival_with_increasing_positions() -> None:
    waiting = ready("a", "b", "c")
    assert waiting.first().body == b"a"
    deliveries = [waiting.pop(QUEUE) for _ in range(3)]
    assert [one.message.body for one in deliveries] == [b"a", b"b", b"c"]
    assert [one.position for one in deliveries] == [0, 1, 2]
    assert (waiting.count, waiting.byte_count) == (0, 0)


def test_a_message_delivered_directly_takes_a_position() -> None:
    waiting = ready()
    first = waiting.push_delivered(sent("a"), QUEUE)
    waiting.push(sent("b"))
    waiting.push_back(first, NONE)
    assert popped(waiting) == [b"a", b"b"]


def test_the_size_in_bytes_is_that_of_the_bodies() -> None:
    waiting = ready("aaa", "", "bb")
    assert (waiting.count, waiting.byte_count) == (3, 5)
    waiting.pop(QUEUE)
    assert waiting.byte_count == 2


def test_requeued_messages_return_to_their_positions_in_any_order() -> None:
    waiting = ready("a", "b", "c", "d")
    out = [waiting.pop(QUEUE) for _ in range(3)]
    for one in (out[1], out[2], out[0]):
        waiting.push_back(one, NONE)
    waiting.push(sent("e"))
    assert popped(waiting) == [b"a", b"b", b"c", b"d", b"e"]


def test_a_message_expires_behind_one_with_a_longer_ttl() -> None:
    waiting = ready("long")
    assert pushed(waiting, sent("short", expiration="10")) == 10
    pushed(waiting, sent("other"))
    assert expired(waiting, 9) == []
    assert expired(waiting, 10) == [b"short"]
    assert (waiting.count, waiting.byte_count) == (2, 9)
    assert popped(waiting) == [b"long", b"other"]


def test_the_front_skips_positions_of_expired_messages() -> None:
    waiting = ready("a")
    for body in ("b", "c"):
        pushed(waiting, sent(body, expiration="10"))
    waiting.push(sent("d"))
    assert expired(waiting, 10) == [b"b", b"c"]
    waiting.pop(QUEUE)
    assert waiting.first().body == b"d"
    assert waiting.pop(QUEUE).position == 3


def test_the_last_positions_may_be_empty_when_the_front_reaches_them() -> None:
    waiting = ready("a")
    pushed(waiting, sent("b", expiration="10"))
    assert expired(waiting, 10) == [b"b"]
    assert popped(waiting) == [b"a"]
    assert waiting.push_delivered(sent("c"), QUEUE).position == 2


def test_a_requeued_message_expires_at_its_position() -> None:
    waiting = ready()
    pushed(waiting, sent("a"))
    pushed(waiting, sent("b", expiration="10"))
    first, second = waiting.pop(QUEUE), waiting.pop(QUEUE)
    waiting.push_back(first, NONE)
    assert waiting.push_back(second, NONE) == 10
    assert expired(waiting, 10) == [b"b"]
    assert popped(waiting) == [b"a"]


def test_the_ttl_of_the_queue_applies_where_it_is_shorter() -> None:
    waiting = ready()
    assert pushed(waiting, sent("a", now=5, expiration="10"), 100) == 15
    assert pushed(waiting, sent("b", now=5, expiration="1000"), 100) == 105
    assert pushed(waiting, sent("c", now=5), 100) == 105
    assert waiting.deadline(100) == 15
    assert expired(waiting, 104, 100) == [b"a"]
    assert expired(waiting, 105, 100) == [b"b", b"c"]


def test_without_ttls_there_is_no_deadline() -> None:
    waiting = ready("a")
    assert pushed(waiting, sent("b")) == NONE
    assert waiting.deadline(NONE) == NONE
    assert expired(waiting, 2**62) == []


def test_a_deadline_is_removed_with_its_message() -> None:
    waiting = ready()
    pushed(waiting, sent("a", expiration="10"))
    waiting.pop(QUEUE)
    assert waiting.deadline(NONE) == NONE
    pushed(waiting, sent("b", expiration="20"))
    assert waiting.deadline(NONE) == 20
    assert expired(waiting, 15) == []


def test_deadlines_of_removed_messages_do_not_accumulate() -> None:
    waiting = ready()
    pushed(waiting, sent("first", expiration="9"))
    for _ in range(1000):
        pushed(waiting, sent("x", expiration="1000"))
        waiting.pop(QUEUE)
    assert waiting.count == 1
    assert waiting.deadline(NONE) == 1000
    assert expired(waiting, 1000) == [b"x"]


def test_purging_removes_everything_but_the_next_position() -> None:
    waiting = ready("a", "b")
    out = waiting.pop(QUEUE)
    pushed(waiting, sent("c", expiration="10"))
    waiting.clear()
    assert (waiting.count, waiting.byte_count, waiting.deadline(NONE)) == (0, 0, NONE)
    waiting.push(sent("d"))
    waiting.push_back(out, NONE)
    assert popped(waiting) == [b"a", b"d"]


class SortedListModel:
    """A model of `MessageBacklog` with a sorted list."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, int, Message]] = []
        self.positions = 0

    def push(self, deadline: int, message: Message) -> None:
        self.waiting.append((self.positions, deadline, message))
        self.positions += 1

    def expire(self, now: int) -> list[bytes]:
        due = [entry for entry in self.waiting if 0 <= entry[1] <= now]
        self.waiting = [entry for entry in self.waiting if entry not in due]
        return sorted(entry[2].body for entry in due)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(0, 60) | st.none()),
        st.tuples(st.just("pass by"), st.none()),
        st.tuples(st.just("pop"), st.none()),
        st.tuples(st.just("return"), st.integers(0, 20)),
        st.tuples(st.just("settle"), st.integers(0, 20)),
        st.tuples(st.just("expire"), st.integers(0, 30)),
        st.tuples(st.just("clear"), st.none()),
    ),
    max_size=60,
)


@given(STEPS, st.sampled_from([NONE, 40]))
def test_a_backlog_behaves_as_a_sorted_list(steps: list[tuple[str, int | None]], ttl_ms: int) -> None:
    waiting, naive, now = ready(), SortedListModel(), 0
    out: list[tuple[Delivery, int]] = []
    for number, (step, value) in enumerate(steps):
        if step in ("push", "pass by"):
            expiration = None if value is None else str(value)
            message = sent(f"{number}", now=now, expiration=expiration)
            own = [now + life for life in (value, ttl_ms if ttl_ms >= 0 else None) if life is not None]
            deadline = min(own, default=NONE)
            if step == "push":
                assert pushed(waiting, message, ttl_ms) == deadline
                naive.push(deadline, message)
            elif not naive.waiting:
                out.append((waiting.push_delivered(message, QUEUE), deadline))
                naive.positions += 1
        elif step == "pop" and naive.waiting:
            position, deadline, message = naive.waiting.pop(0)
            delivery = waiting.pop(QUEUE)
            assert (delivery.position, delivery.message.body) == (position, message.body)
            out.append((delivery, deadline))
        elif step in ("return", "settle") and out:
            delivery, deadline = out.pop((value or 0) % len(out))
            if step == "return":
                assert waiting.push_back(delivery, ttl_ms) == deadline
                naive.waiting.append((delivery.position, deadline, delivery.message))
                naive.waiting.sort(key=lambda entry: entry[0])
        elif step == "expire":
            now += value or 0
            assert sorted(expired(waiting, now, ttl_ms)) == naive.expire(now)
        elif step == "clear":
            waiting.clear()
            naive.waiting = []
        assert waiting.count == len(naive.waiting)
        assert waiting.byte_count == sum(len(entry[2].body) for entry in naive.waiting)
        deadlines = [entry[1] for entry in naive.waiting if entry[1] >= 0]
        if naive.waiting and ttl_ms < 0:
            assert waiting.deadline(ttl_ms) == min(deadlines, default=NONE)
    assert popped(waiting) == [entry[2].body for entry in naive.waiting]


def test_a_message_taken_from_the_middle_returns_to_its_position() -> None:
    waiting = ready("a", "b", "c", "d")
    at = {peeked.message.body: peeked for peeked in waiting.peek(0, 9)}
    out = [waiting.take(at[body], QUEUE) for body in (b"c", b"a")]
    assert waiting.take(at[b"c"], QUEUE) is None
    assert (waiting.count, waiting.byte_count, waiting.first().body) == (2, 2, b"b")
    for one in out:
        waiting.push_back(one, NONE)
    assert [peeked.message.body for peeked in waiting.peek(0, 3)] == [b"a", b"b", b"c"]
    assert [peeked.message.body for peeked in waiting.peek(1, 9)] == [b"b", b"c", b"d"]
    taken = waiting.take(at[b"c"], QUEUE)
    waiting.push_back(taken, NONE)
    assert [waiting.drop().body for _ in range(2)] == [b"a", b"b"]
    assert popped(waiting) == [b"c", b"d"]


def test_the_extent_contains_present_messages_and_no_later_ones() -> None:
    waiting = ready("a", "b")
    [extent] = waiting.extent()
    waiting.push(sent("c"))
    assert [peeked.place in extent for peeked in waiting.peek(0, 9)] == [True, True, False]
    assert waiting.last_place(sent("c")) == waiting.peek(2, 1)[0].place
