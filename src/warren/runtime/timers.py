"""Deadlines of very many objects, kept by one timer of the loop.

A deadline is met to the millisecond, or to a thousandth of how far it is away: deadlines that lie together
are gathered into slots of that width, and only the earliest slot has a timer. So the slots of any number of
connections are some thousands, and ten thousand idle ones cost one call per slot that holds some of them.
Moving a deadline back costs nothing: its owner is asked again when the old slot comes round.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush

from warren.runtime.clock import Clock

# A deadline that is nearer than two to the power of this has a slot of one millisecond (ms).
_EXACTNESS_BITS = 11


class DeadlineOwner:
    """What has a deadline: `slot` is when it is called (ms; 0: never), `expire` is what is called then."""

    __slots__ = ("slot",)

    def __init__(self) -> None:
        self.slot = 0

    def expire(self, now: int) -> None:
        """The slot has come; the owner looks whether anything is really due, and schedules again."""
        raise NotImplementedError


class Deadlines:
    """All deadlines of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._entries: dict[int, set[DeadlineOwner]] = {}
        self._slots: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_slot = 0

    def schedule(self, owner: DeadlineOwner, due: int) -> None:
        """Call `owner.expire` at `due` or a thousandth of the way later; an earlier appointment stays."""
        if 0 < owner.slot <= due:
            return
        distance = max(0, due - self._clock.now())
        width_bits = max(0, distance.bit_length() - _EXACTNESS_BITS)
        # Rounded up: nobody is called early.
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
        """`owner` waits for nothing any more, and is not held in memory."""
        if owner.slot:
            entries = self._entries.get(owner.slot)
            if entries is not None:
                entries.discard(owner)
            owner.slot = 0

    def stop(self) -> None:
        """No further calls."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._entries.clear()
        self._slots.clear()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_slot = self._slots[0]
        delay_ms = max(0, self._timer_slot - self._clock.now())
        self._timer = self._loop.call_later(delay_ms / 1000, self._run)

    def _run(self) -> None:
        self._timer = None
        now = self._clock.now()
        while self._slots and self._slots[0] <= now:
            slot = heappop(self._slots)
            for owner in self._entries.pop(slot):
                # One that expired before it in this loop may have ended it.
                if owner.slot == slot:
                    owner.slot = 0
                    owner.expire(now)
        if self._slots:
            self._arm()


class Timer:
    """One deadline that is met to the millisecond, and may be moved."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, ring: Callable[[int], int | None]
    ) -> None:
        self._loop = loop
        self._clock = clock
        # Called with the time; answers when it wants to be called again.
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0

    def set(self, due: int) -> None:
        """Ring at `due`, unless it rings before."""
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_later(max(0, due - self._clock.now()) / 1000, self._run)

    def stop(self) -> None:
        """Do not ring any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        self._timer = None
        now = self._clock.now()
        # The loop's clock and ours are not one: rather ring twice than early.
        due = self._ring(now) if now >= self._due else self._due
        if due is not None:
            self.set(due)


class PeriodicTimer:
    """Calls a function every so often until it is stopped."""

    def __init__(self, loop: asyncio.AbstractEventLoop, interval_s: float, act: Callable[[], None]) -> None:
        self._loop = loop
        self._interval_s = interval_s
        self._act = act
        self._timer = loop.call_later(interval_s, self._run)

    def stop(self) -> None:
        """No further calls."""
        self._timer.cancel()

    def _run(self) -> None:
        self._timer = self._loop.call_later(self._interval_s, self._run)
        self._act()


def wait(pause_ms: int) -> "asyncio.Future[None]":
    """Over after `pause_ms`."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.call_later(pause_ms / 1000, lambda: None if over.done() else over.set_result(None))
    return over
