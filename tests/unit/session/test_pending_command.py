"""A waiting command, and the frames that are held behind it."""

from collections.abc import Callable

import pytest
from tests.unit.session.client import Answer

from warren.session.pending_command import PendingCommand


class PendingCommandHarness:
    """One pending command, and the turns in which it resumes."""

    def __init__(self) -> None:
        self.turns: list[Callable[[int], None]] = []
        self.resumed: list[int] = []
        self.pending = PendingCommand(self.turns.append, self.resumed.append)
        self.answer = Answer()
        self.done: list[str] = []

    async def wait(self) -> None:
        self.done.append("started")
        await self.answer
        self.done.append("ended")


def test_a_command_that_need_not_wait_completes_at_once() -> None:
    harness = PendingCommandHarness()
    harness.answer.arrive()
    harness.pending.start(harness.wait(), 5)
    assert harness.done == ["started", "ended"]
    assert not harness.pending.is_waiting


def test_a_waiting_command_resumes_in_a_turn_of_its_own() -> None:
    harness = PendingCommandHarness()
    harness.pending.start(harness.wait(), 5)
    assert (harness.pending.is_waiting, harness.pending.started_at) == (True, 5)
    harness.answer.arrive()
    assert harness.resumed == []
    harness.turns.pop()(7)
    assert harness.resumed == [7]
    harness.pending.proceed()
    assert harness.done == ["started", "ended"]
    assert not harness.pending.is_waiting


def test_an_exception_is_raised_where_the_command_resumes() -> None:
    harness = PendingCommandHarness()

    async def fail() -> None:
        await harness.answer
        raise ZeroDivisionError

    harness.pending.start(fail(), 0)
    harness.answer.arrive()
    with pytest.raises(ZeroDivisionError):
        harness.pending.proceed()
    assert not harness.pending.is_waiting


def test_a_command_of_a_closed_connection_does_not_resume() -> None:
    harness = PendingCommandHarness()
    harness.pending.start(harness.wait(), 0)
    harness.pending.close()
    harness.answer.arrive()
    harness.turns.pop()(7)
    assert harness.resumed == []
    assert not harness.pending.is_waiting
