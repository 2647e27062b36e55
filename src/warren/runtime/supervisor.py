"""Keeps a unit of the node alive: stops it when it fails, and starts it again, up to so many times.

    begun ────────────────────┐
                              ▼
    RUNNING ── failed ──▶ RESTARTING ── started ──▶ RUNNING
                          │      ▲ cannot be started: that, too, is a failure
                          └──────┴── once too often, or in vain ──▶ DOWN ── revived by somebody ──▶ RUNNING

The caller defines what a unit is and how it is started and stopped; `RestartIntensity` says how often.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Protocol

_MS = 1000


class UnitState(Enum):
    """How a unit is."""

    RUNNING = "running"
    RESTARTING = "restarting"
    DOWN = "down"


class PermanentFailure(Exception):
    """A unit cannot be started, and trying again would not help."""


class TemporaryFailure(Exception):
    """A unit cannot be started now, by no fault of its own: trying again is no restart."""

    def __init__(self, text: str, pause_ms: int) -> None:
        super().__init__(text)
        self.pause_ms = pause_ms


class Unit(Protocol):
    """What is stopped and started as a whole."""

    async def stop(self, error: Exception) -> None:
        """Let go of everything, because of `error`; also after half a start."""

    async def start(self) -> None:
        """Be there again; any exception is one more failure, except NotYet and Hopeless."""

    def restarted(self) -> None:
        """It runs again."""

    def given_up(self, error: Exception) -> None:
        """It stays down; `error` was the last straw."""


class RestartIntensity:
    """How often something may be started again: `restarts_max` times within `window_ms`.

    `pauses_ms` says how long to wait before the first restart within the window, the second, and so on; the
    last one counts for all further ones.
    """

    def __init__(self, restarts_max: int, window_ms: int, pauses_ms: tuple[int, ...]) -> None:
        self._restarts_max = restarts_max
        self._window_ms = window_ms
        self._pauses_ms = pauses_ms
        self._restarts: deque[int] = deque()

    def restart(self, now: int) -> int | None:
        """It failed at `now` (ms): the pause before it is started again; None if it failed too often."""
        restarts = self._restarts
        while restarts and restarts[0] <= now - self._window_ms:
            restarts.popleft()
        if len(restarts) >= self._restarts_max:
            return None
        restarts.append(now)
        return self._pauses_ms[min(len(restarts), len(self._pauses_ms)) - 1]

    def forget(self) -> None:
        """What has happened so far does not count any more."""
        self._restarts.clear()


def contain(action: Callable[[], None], failed: Callable[[Exception], None]) -> None:
    """Do `action`, which belongs to a unit: what it did not expect is told to `failed`, and no further."""
    try:
        action()
    except Exception as error:
        failed(error)


class Supervisor:
    """One unit and how it is."""

    def __init__(self, unit: Unit, intensity: RestartIntensity, now: Callable[[], int]) -> None:
        self._unit = unit
        self._intensity = intensity
        self._now = now
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self.state = UnitState.RUNNING

    def begin(self) -> None:
        """Start the unit for the first time; what is in the way of that is a failure."""
        self.state = UnitState.RESTARTING
        self._task = asyncio.get_running_loop().create_task(self._begin())

    def failed(self, error: Exception) -> None:
        """The unit does not work any more. While that is being seen to, or at the end, it is no news."""
        if self.state is UnitState.RUNNING and not self._ended.is_set():
            self.state = UnitState.RESTARTING
            self._task = asyncio.get_running_loop().create_task(self._restart(error))

    def down(self, error: Exception) -> None:
        """The unit could not even be started for the first time."""
        self.state = UnitState.DOWN
        self._unit.given_up(error)

    async def start_again(self) -> Exception | None:
        """Start the unit once more if it is down, as somebody wishes; answers what is in the way."""
        if self.state is not UnitState.DOWN or self._ended.is_set():
            return None
        self.state = UnitState.RESTARTING
        try:
            await self._unit.start()
        except Exception as error:
            self.down(error)
            return error
        self.state = UnitState.RUNNING
        self._intensity.forget()
        self._unit.restarted()
        return None

    async def end(self) -> None:
        """See to nothing any more; what is being stopped or started now is, and nothing after it."""
        self._ended.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _begin(self) -> None:
        try:
            await self._unit.start()
        except Exception as error:
            await self._restart(error)
        else:
            self.state = UnitState.RUNNING

    async def _restart(self, error: Exception) -> None:
        while True:
            try:
                await self._unit.stop(error)
            except Exception as reason:
                # What cannot even be stopped must not be started beside itself.
                self.down(reason)
                return
            pause = self._pause(error)
            if pause is None:
                self.down(error)
                return
            if await self._is_ended_within(pause):
                return
            try:
                await self._unit.start()
            except Exception as reason:
                error = reason
            else:
                self.state = UnitState.RUNNING
                self._unit.restarted()
                return

    def _pause(self, error: Exception) -> int | None:
        """How long to wait (ms) after `error`; None when it is not to be started again."""
        match error:
            case TemporaryFailure(pause_ms=pause):
                return pause
            case PermanentFailure():
                return None
            case _:
                return self._intensity.restart(self._now())

    async def _is_ended_within(self, pause_ms: int) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), pause_ms / _MS)
        return self._ended.is_set()
