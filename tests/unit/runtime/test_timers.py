"""Deadlines on a loop whose time the test advances."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import cast

from tests.clock import turn_of

from warren.runtime.timers import Deadlines, PeriodicTimer, Timer, wait


class HandClock:
    """A clock that only the loop advances."""

    def __init__(self) -> None:
        self.time = 1_000_000

    def now(self) -> int:
        return self.time

    def follow(self) -> None:
        pass


class Handle:
    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self.at = at
        self.act = act
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class HandLoop:
    """An event loop with timers only."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.handles: list[Handle] = []

    def time(self) -> float:
        return self.clock.time / 1000

    def call_later(self, delay: float, act: Callable[[], None]) -> Handle:
        return self.call_at(self.time() + delay, act)

    def call_at(self, due: float, act: Callable[[], None]) -> Handle:
        handle = Handle(round(due * 1000), act)
        self.handles.append(handle)
        return handle

    def run_until(self, end: int) -> None:
        while True:
            live = [handle for handle in self.handles if not handle.is_cancelled and handle.at <= end]
            if not live:
                break
            first = min(live, key=lambda handle: handle.at)
            self.handles.remove(first)
            self.clock.time = max(self.clock.time, first.at)
            first.act()
        self.clock.time = end

    @property
    def timer_count(self) -> int:
        return sum(not handle.is_cancelled for handle in self.handles)


class Owner:
    __slots__ = ("__weakref__", "again", "deadlines", "slot", "times")

    def __init__(self, deadlines: Deadlines, again: int | None = None) -> None:
        self.slot = 0
        self.deadlines = deadlines
        self.again = again
        self.times: list[int] = []

    def expire(self, now: int) -> None:
        self.times.append(now)
        if self.again:
            self.deadlines.schedule(self, now + self.again)


def make() -> tuple[Deadlines, HandLoop, int]:
    clock = HandClock()
    loop = HandLoop(clock)
    deadlines = Deadlines(cast(asyncio.AbstractEventLoop, loop), turn_of(clock.now))
    return deadlines, loop, clock.time


def test_an_owner_is_called_at_a_near_deadline() -> None:
    deadlines, loop, start = make()
    owners = [Owner(deadlines) for _ in range(50)]
    for step, owner in enumerate(owners):
        deadlines.schedule(owner, start + 37 * step)
    loop.run_until(start + 5_000)
    assert [owner.times for owner in owners] == [[start + 37 * step] for step in range(50)]


def test_an_owner_is_called_at_most_a_thousandth_of_the_time_late_and_never_early() -> None:
    deadlines, loop, start = make()
    distances = [distance for bits in range(28) for distance in (1 << bits, (1 << bits) + 1, 3 << bits)]
    owners = [Owner(deadlines) for _ in distances]
    for distance, owner in zip(distances, owners, strict=True):
        deadlines.schedule(owner, start + distance)
    loop.run_until(start + 2 * max(distances))
    for distance, owner in zip(distances, owners, strict=True):
        [at] = owner.times
        assert 0 <= at - (start + distance) <= distance // 1000


def test_the_number_of_slots_is_bounded() -> None:
    deadlines, loop, start = make()
    for distance in range(100_000):
        deadlines.schedule(Owner(deadlines), start + distance)
    assert len(deadlines._slots) <= 10_000
    assert loop.timer_count == 1


def test_a_deadline_in_the_past_is_due_now() -> None:
    deadlines, loop, start = make()
    owner = Owner(deadlines)
    deadlines.schedule(owner, start - 1_000_000)
    loop.run_until(start)
    assert owner.times == [start]


def test_owners_of_one_slot_share_a_timer() -> None:
    deadlines, loop, start = make()
    for _ in range(1000):
        deadlines.schedule(Owner(deadlines), start + 30_000)
    assert loop.timer_count == 1


def test_an_earlier_deadline_replaces_a_later_one_and_a_later_one_applies_after_it() -> None:
    deadlines, loop, start = make()
    owner = Owner(deadlines)
    deadlines.schedule(owner, start + 10_000)
    deadlines.schedule(owner, start + 500)
    deadlines.schedule(owner, start + 60_000)
    loop.run_until(start + 20_000)
    assert owner.times == [start + 500]


def test_an_owner_may_schedule_itself_again() -> None:
    deadlines, loop, start = make()
    owner = Owner(deadlines, again=1_000)
    deadlines.schedule(owner, start)
    loop.run_until(start + 10_500)
    assert owner.times == [start + 1_000 * step for step in range(11)]


def test_a_removed_owner_is_neither_called_nor_referenced() -> None:
    deadlines, loop, start = make()
    owner = Owner(deadlines)
    deadlines.schedule(owner, start + 30_000)
    deadlines.forget(owner)
    reference = weakref.ref(owner)
    del owner
    gc.collect()
    assert reference() is None
    loop.run_until(start + 40_000)


def test_an_owner_may_remove_another_of_its_slot() -> None:
    deadlines, loop, start = make()
    owners = [Owner(deadlines), Owner(deadlines)]

    class Ender(Owner):
        __slots__ = ()

        def expire(self, now: int) -> None:
            for owner in owners:
                deadlines.forget(owner)

    enders = [Ender(deadlines)]
    for owner in (*owners, *enders):
        deadlines.schedule(owner, start + 100)
    loop.run_until(start + 1_000)
    assert all(len(owner.times) <= 1 for owner in owners)


def test_nothing_is_called_after_stop() -> None:
    deadlines, loop, start = make()
    owner = Owner(deadlines)
    deadlines.schedule(owner, start + 100)
    deadlines.stop()
    loop.run_until(start + 1_000)
    assert owner.times == []


def test_an_alarm_is_a_millisecond_late_at_most_and_can_be_set_again() -> None:
    clock = HandClock()
    loop = HandLoop(clock)
    start = clock.time
    times: list[int] = []

    def ring(now: int) -> int | None:
        times.append(now - start)
        return start + 50 if len(times) == 1 else None

    alarm = Timer(cast(asyncio.AbstractEventLoop, loop), turn_of(clock.now), ring)
    alarm.set(start + 30)
    alarm.set(start + 7)
    alarm.set(start + 20)
    loop.run_until(start + 1_000)
    assert times == [8, 51]
    alarm.set(start + 1_500)
    alarm.stop()
    loop.run_until(start + 2_000)
    assert times == [8, 51]


def test_periodic_timers_of_one_interval_ring_together() -> None:
    clock = HandClock()
    loop = HandLoop(clock)
    times: list[list[int]] = [[], []]
    timers = []
    for one in times:
        loop.run_until(clock.time + 130)
        timers.append(
            PeriodicTimer(
                cast(asyncio.AbstractEventLoop, loop),
                0.4,
                lambda one=one: one.append(clock.time),  # type: ignore[misc]
            )
        )
    loop.run_until(1_002_000)
    assert times == [[1_000_400, 1_000_800, 1_001_200, 1_001_600, 1_002_000]] * 2
    for timer in timers:
        timer.stop()
    assert loop.timer_count == 0


def test_a_wait_ends_at_its_time() -> None:
    async def work() -> float:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await wait(20)
        return loop.time() - before

    assert asyncio.run(work()) >= 0.019


def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    async def work() -> None:
        over = wait(1)
        over.cancel()
        await wait(5)

    asyncio.run(work())
