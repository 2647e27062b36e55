"""Deadlines of very many objects, kept by one timer of the loop.

A deadline is met to the millisecond, or to a thousandth of its distance. Deadlines close to each other share
a slot of that width, and only the earliest slot has a timer. Any number of connections has some thousands of
slots, and ten thousand idle connections cost one call for each slot in use. Postponing a deadline costs
nothing: its owner is called when the old slot is due, and schedules again.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

from warren.model.turn import Turn

# A deadline nearer than two to the power of this (ms) has a slot of one millisecond.
_EXACTNESS_BITS = 11
# The event loop counts whole milliseconds, and rounds.
_PRECISION_S = 0.002


class DeadlineOwner(Protocol):
    """An object with a deadline: `slot` is the time of the call (ms; 0: none) of `expire`, 0 at first."""

    slot: int

    def expire(self, now: int) -> None:
        """Called when the slot is due; the owner checks whether anything is due, and schedules again."""


class Deadlines:
    """The deadlines of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turn: Turn) -> None:
        self._loop = loop
        self._turn = turn
        self._entries: dict[int, set[DeadlineOwner]] = {}
        self._slots: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_slot = 0

    def schedule(self, owner: DeadlineOwner, due: int) -> None:
        """Call `owner.expire` at `due` or up to a thousandth later; an earlier slot is kept."""
        if 0 < owner.slot <= due:
            return
        distance = max(0, due - self._turn.now())
        width_bits = max(0, distance.bit_length() - _EXACTNESS_BITS)
        # Rounded up, so that no call is early.
        slot = -(-due >> width_bits) << width_bits
        if 0 < owner.slot <= slot:
            return
        self.forget(owner)
        owner.slot = slot
        entries = self._entries.get(slot)
        if entries is not None:
            entries.add(owner)
            return
        self._entries[slot] = {owner}
        heappush(self._slots, slot)
        if self._timer is None or slot < self._timer_slot:
            self._arm()

    def forget(self, owner: DeadlineOwner) -> None:
        """Cancel the deadline of `owner`, and release the reference to it."""
        if owner.slot:
            entries = self._entries.get(owner.slot)
            if entries is not None:
                entries.discard(owner)
            owner.slot = 0

    def stop(self) -> None:
        """Make no further calls."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._entries.clear()
        self._slots.clear()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_slot = self._slots[0]
        delay_ms = max(0, self._timer_slot - self._turn.now())
        self._timer = self._loop.call_later(delay_ms / 1000, self._run)

    def _run(self) -> None:
        self._timer = None
        now = self._turn.begin()
        while self._slots and self._slots[0] <= now:
            slot = heappop(self._slots)
            for owner in self._entries.pop(slot):
                # An owner that expired before it in this loop may have cancelled it.
                if owner.slot == slot:
                    owner.slot = 0
                    owner.expire(now)
        if self._slots:
            self._arm()


class Timer:
    """A deadline that can be moved, met to a millisecond and never too early."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, turn: Turn, ring: Callable[[int], int | None]
    ) -> None:
        self._loop = loop
        self._turn = turn
        # Called with the time; returns the time of the next call.
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0

    def set(self, due: int) -> None:
        """Call at `due` (ms), unless an earlier call is scheduled."""
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        # The event loop counts whole milliseconds from the begin of its iteration: with one more, the call is
        # hardly ever too early, which would need another one.
        delay_ms = due - self._turn.now()
        self._timer = self._loop.call_later((delay_ms + 1 if delay_ms > 0 else 0) / 1000, self._run)

    def stop(self) -> None:
        """Cancel the call."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        self._timer = None
        now = self._turn.begin()
        # The event loop has another clock: a second call is better than an early one.
        due = self._ring(now) if now >= self._due else self._due
        if due is not None:
            self.set(due)


def aligned(due: float, step: float) -> float:
    """The last multiple of `step` that is not after `due`; all in seconds of the event loop's clock.

    Timers with a common step ring in the same iteration of the event loop: an idle process wakes up less.
    """
    # What is early by less than the loop's precision is not rung twice.
    return (due + _PRECISION_S) // step * step


class PeriodicTimer:
    """Calls a function at each multiple of an interval of the loop's clock, until it is stopped."""

    def __init__(self, loop: asyncio.AbstractEventLoop, interval_s: float, act: Callable[[], None]) -> None:
        self._loop = loop
        self._interval_s = interval_s
        self._act = act
        self._timer = self._next()

    def stop(self) -> None:
        """Make no further calls."""
        self._timer.cancel()

    def _run(self) -> None:
        self._timer = self._next()
        self._act()

    def _next(self) -> asyncio.TimerHandle:
        due = aligned(self._loop.time() + self._interval_s, self._interval_s)
        return self._loop.call_at(due, self._run)


def wait(pause_ms: int) -> "asyncio.Future[None]":
    """A future that completes after `pause_ms`."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.call_later(pause_ms / 1000, lambda: None if over.done() else over.set_result(None))
    return over
