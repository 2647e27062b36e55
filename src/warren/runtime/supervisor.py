"""Supervises a unit of the node: stops it when it fails, and restarts it a limited number of times.

    begun ────────────────────┐
                              ▼
    RUNNING ── failed ──▶ RESTARTING ── started ──▶ RUNNING
                          │      ▲ cannot be started: counts as a failure
                          └──────┴── too often, or permanently ──▶ DOWN ── started on request ──▶ RUNNING

The caller defines what a unit is and how it is started and stopped; `RestartIntensity` limits the restarts.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Protocol

_MS = 1000


class UnitState(Enum):
    """The state of a unit."""

    RUNNING = "running"
    RESTARTING = "restarting"
    DOWN = "down"


class PermanentFailure(Exception):
    """A unit cannot be started, and another attempt would fail too."""


class TemporaryFailure(Exception):
    """A unit cannot be started now for an external reason; attempts do not count as restarts."""

    def __init__(self, text: str, pause_ms: int) -> None:
        super().__init__(text)
        self.pause_ms = pause_ms


class Unit(Protocol):
    """A part of the node that is stopped and started as a whole."""

    async def stop(self, error: Exception) -> None:
        """Release all resources because of `error`; also after an incomplete start."""

    async def start(self) -> None:
        """Start; any exception but TemporaryFailure and PermanentFailure counts as another failure."""

    def restarted(self) -> None:
        """Called when the unit runs again."""

    def given_up(self, error: Exception) -> None:
        """Called when the unit stays down; `error` was the last failure."""


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
        """The pause (ms) before a restart after a failure at `now` (ms); None if it failed too often."""
        restarts = self._restarts
        while restarts and restarts[0] <= now - self._window_ms:
            restarts.popleft()
        if len(restarts) >= self._restarts_max:
            return None
        restarts.append(now)
        return self._pauses_ms[min(len(restarts), len(self._pauses_ms)) - 1]

    def forget(self) -> None:
        """Forget all earlier failures."""
        self._restarts.clear()


def contain(action: Callable[[], None], failed: Callable[[Exception], None]) -> None:
    """Run `action` of a unit; an unexpected exception is passed to `failed` and goes no further."""
    try:
        action()
    except Exception as error:
        failed(error)


class Supervisor:
    """One unit and its state."""

    def __init__(self, unit: Unit, intensity: RestartIntensity, now: Callable[[], int]) -> None:
        self._unit = unit
        self._intensity = intensity
        self._now = now
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self.state = UnitState.RUNNING

    def begin(self) -> None:
        """Start the unit for the first time; an exception counts as a failure."""
        self.state = UnitState.RESTARTING
        self._task = asyncio.get_running_loop().create_task(self._begin())

    def failed(self, error: Exception) -> None:
        """Report a failure of the unit; ignored while it is being restarted, or after the end."""
        if self.state is UnitState.RUNNING and not self._ended.is_set():
            self.state = UnitState.RESTARTING
            self._task = asyncio.get_running_loop().create_task(self._restart(error))

    def down(self, error: Exception) -> None:
        """Report that the first start of the unit was not possible."""
        self.state = UnitState.DOWN
        self._unit.given_up(error)

    async def start_again(self) -> Exception | None:
        """Start the unit again if it is down, on request; returns the reason if that fails."""
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
        """Stop supervising; a stop or start in progress is completed."""
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
                # A unit that cannot be stopped must not be started a second time.
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
        """The pause (ms) before a restart after `error`; None if it is not restarted."""
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
