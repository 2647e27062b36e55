"""Each queue is woken at the time that it asked for last."""

from hypothesis import given
from hypothesis import strategies as st

from warren.queues.queue import Queue
from warren.vhost.expiry import Expiry


class Sleeper(Queue):
    """A queue that counts how often it was woken, and may ask again."""

    def __init__(self, expiry: Expiry, again: int | None = None) -> None:
        self.expiry = expiry
        self.again = again
        self.woken = 0

    def expire(self) -> None:
        self.woken += 1
        if self.again is not None:
            self.expiry.schedule(self, self.again)


def made(*times: int) -> tuple[Expiry, list[Sleeper]]:
    expiry = Expiry()
    sleepers = [Sleeper(expiry) for _ in times]
    for sleeper, when in zip(sleepers, times, strict=True):
        expiry.schedule(sleeper, when)
    return expiry, sleepers


def test_queues_are_woken_at_their_time() -> None:
    expiry, (a, b) = made(20, 10)
    assert expiry.earliest() == 10
    expiry.run(9)
    assert (a.woken, b.woken) == (0, 0)
    expiry.run(10)
    assert (a.woken, b.woken, expiry.earliest()) == (0, 1, 20)
    expiry.run(99)
    assert (a.woken, b.woken, expiry.earliest()) == (1, 1, None)


def test_a_queue_that_asks_for_now_while_it_is_woken_waits_for_the_next_turn() -> None:
    expiry, (a, b) = made(10, 10)
    a.again = 10
    for woken in (1, 2, 3):
        expiry.run(10)
        assert (a.woken, b.woken, expiry.earliest()) == (woken, 1, 10)


def test_the_latest_request_of_a_queue_counts() -> None:
    expiry, (a,) = made(10)
    expiry.schedule(a, 30)
    assert expiry.earliest() == 30
    expiry.run(29)
    assert a.woken == 0
    expiry.schedule(a, 5)
    expiry.run(99)
    assert a.woken == 1


def test_a_deleted_queue_is_not_woken() -> None:
    expiry, (a,) = made(10)
    expiry.forget(a)
    expiry.forget(a)
    assert expiry.earliest() is None
    expiry.run(99)
    assert a.woken == 0


def test_a_request_for_a_past_time_wakes_the_queue_again() -> None:
    expiry = Expiry()
    sleeper = Sleeper(expiry, again=20)
    expiry.schedule(sleeper, 10)
    expiry.run(15)
    assert (sleeper.woken, expiry.earliest()) == (1, 20)


def test_only_an_earlier_time_is_announced() -> None:
    expiry, reported = Expiry(), []
    expiry.notify = reported.append
    for when in (30, 40, 20, 20, 25):
        expiry.schedule(Sleeper(expiry), when)
    assert reported == [30, 20]


def test_superseded_times_do_not_accumulate() -> None:
    expiry, (a,) = made(1)
    for when in range(2, 10_000):
        expiry.schedule(a, 10**9 + when)
        expiry.schedule(gone := Sleeper(expiry), 10**9)
        expiry.forget(gone)
    assert len(expiry._due) < 100


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 30), st.integers(0, 5)), max_size=40))
def test_it_behaves_as_a_table_of_times(steps: list[tuple[int, int, int]]) -> None:
    expiry, now = Expiry(), 0
    sleepers = [Sleeper(expiry) for _ in range(4)]
    table: dict[Sleeper, int] = {}
    for at, when, passes in steps:
        sleeper = sleepers[at]
        if when < 0:
            expiry.forget(sleeper)
            table.pop(sleeper, None)
        else:
            expiry.schedule(sleeper, when)
            table[sleeper] = when
        now += passes
        before = [one.woken for one in sleepers]
        expiry.run(now)
        due = [int(table.get(one, now + 1) <= now) for one in sleepers]
        assert [one.woken - was for one, was in zip(sleepers, before, strict=True)] == due
        table = {one: time for one, time in table.items() if time > now}
        assert expiry.earliest() == min(table.values(), default=None)
