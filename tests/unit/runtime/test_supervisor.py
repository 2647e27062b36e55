"""How often a unit is restarted, and when it is not."""

import asyncio

import pytest

from warren.runtime.supervisor import (
    PermanentFailure,
    RestartIntensity,
    Supervisor,
    TemporaryFailure,
    UnitState,
    contain,
)


def test_restarts_within_the_window_are_limited() -> None:
    intensity = RestartIntensity(3, 1000, (0, 10))
    assert [intensity.restart(now) for now in (0, 1, 2, 3, 999)] == [0, 10, 10, None, None]


def test_the_window_moves_with_time() -> None:
    intensity = RestartIntensity(2, 1000, (0, 10))
    assert [intensity.restart(now) for now in (0, 999, 1000, 1001, 1999)] == [0, 10, 10, None, 10]


def test_an_unexpected_exception_is_reported_and_contained() -> None:
    reported: list[Exception] = []
    contain(lambda: None, reported.append)
    error = ValueError("x")

    def fail() -> None:
        raise error

    contain(fail, reported.append)
    assert reported == [error]


class Recorded:
    """A unit that records its calls, and whose starts end as given: with an exception, or None."""

    def __init__(self, *starts: Exception | None, stop: Exception | None = None) -> None:
        self.starts = list(starts)
        self.stop_error = stop
        self.log: list[str] = []
        self.over = asyncio.Event()

    async def stop(self, error: Exception) -> None:
        self.log.append(f"stop: {error}")
        if self.stop_error is not None:
            raise self.stop_error

    async def start(self) -> None:
        self.log.append("start")
        error = self.starts.pop(0)
        if error is not None:
            raise error

    def restarted(self) -> None:
        self.log.append("restarted")
        self.over.set()

    def given_up(self, error: Exception) -> None:
        self.log.append(f"given up: {error}")
        self.over.set()


def outcome(unit: Recorded, *, restarts_max: int = 3) -> tuple[list[str], UnitState]:
    """The calls of `unit` after it has failed."""

    async def work() -> UnitState:
        supervisor = Supervisor(unit, RestartIntensity(restarts_max, 1000, (0,)), lambda: 0)
        supervisor.failed(OSError("first"))
        supervisor.failed(OSError("no news"))
        assert supervisor.state is UnitState.RESTARTING
        await asyncio.wait_for(unit.over.wait(), 5)
        return supervisor.state

    state = asyncio.run(work())
    return unit.log, state


def test_a_failed_unit_is_stopped_and_started_once() -> None:
    assert outcome(Recorded(None)) == (["stop: first", "start", "restarted"], UnitState.RUNNING)


def test_a_failed_start_counts_as_a_failure() -> None:
    log, state = outcome(Recorded(OSError("second"), OSError("third")), restarts_max=2)
    assert log == [
        "stop: first", "start", "stop: second", "start", "stop: third", "given up: third",
    ]  # fmt: skip
    assert state is UnitState.DOWN


def test_waiting_for_a_resource_is_not_a_failure() -> None:
    late = TemporaryFailure("no room", 0)
    log, state = outcome(Recorded(late, late, late, None), restarts_max=1)
    assert log[-2:] == ["start", "restarted"]
    assert state is UnitState.RUNNING


def test_a_hopeless_unit_is_not_restarted() -> None:
    log, state = outcome(Recorded(PermanentFailure("newer")))
    assert log == ["stop: first", "start", "stop: newer", "given up: newer"]
    assert state is UnitState.DOWN


def test_a_unit_that_cannot_be_stopped_is_not_started() -> None:
    log, state = outcome(Recorded(stop=ValueError("stuck")))
    assert log == ["stop: first", "given up: stuck"]
    assert state is UnitState.DOWN


def test_a_unit_that_is_down_can_be_started_on_request() -> None:
    async def work() -> None:
        unit = Recorded(PermanentFailure("newer"), OSError("still"), None, None)
        supervisor = Supervisor(unit, RestartIntensity(1, 1000, (0,)), lambda: 0)
        assert await supervisor.start_again() is None
        assert not unit.log
        supervisor.failed(OSError("first"))
        await asyncio.wait_for(unit.over.wait(), 5)
        assert str(await supervisor.start_again()) == "still"
        assert supervisor.state is UnitState.DOWN
        assert await supervisor.start_again() is None
        assert supervisor.state is UnitState.RUNNING
        # Its earlier failures do not count any more.
        unit.over.clear()
        supervisor.failed(OSError("again"))
        await asyncio.wait_for(unit.over.wait(), 5)
        assert unit.log[-1] == "restarted"

    asyncio.run(work())


@pytest.mark.parametrize("is_failed", [True, False])
def test_after_the_end_nothing_is_started(is_failed: bool) -> None:
    async def work() -> list[str]:
        unit = Recorded(None)
        supervisor = Supervisor(unit, RestartIntensity(3, 1000, (60_000,)), lambda: 0)
        if is_failed:
            supervisor.failed(OSError("first"))
            await asyncio.sleep(0)
        await asyncio.wait_for(supervisor.end(), 5)
        supervisor.failed(OSError("too late"))
        await asyncio.sleep(0)
        return unit.log

    assert asyncio.run(work()) == (["stop: first"] if is_failed else [])


def begun(unit: Recorded) -> tuple[list[str], UnitState]:
    """The calls of `unit` when it is started for the first time."""

    async def work() -> UnitState:
        supervisor = Supervisor(unit, RestartIntensity(3, 1000, (0,)), lambda: 0)
        supervisor.begin()
        supervisor.failed(OSError("no news before it runs"))
        assert supervisor.state is UnitState.RESTARTING
        await supervisor.end()
        return supervisor.state

    state = asyncio.run(work())
    return unit.log, state


def test_a_first_start_is_not_reported_as_a_restart() -> None:
    assert begun(Recorded(None)) == (["start"], UnitState.RUNNING)


def test_a_failed_first_start_is_a_failure() -> None:
    unit = Recorded(OSError("first"), None)

    async def work() -> UnitState:
        supervisor = Supervisor(unit, RestartIntensity(3, 1000, (0,)), lambda: 0)
        supervisor.begin()
        await asyncio.wait_for(unit.over.wait(), 5)
        return supervisor.state

    assert asyncio.run(work()) is UnitState.RUNNING
    assert unit.log == ["start", "stop: first", "start", "restarted"]
