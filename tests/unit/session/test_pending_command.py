"""A command that waits, and the frames behind it."""

from collections.abc import Callable

import pytest
from tests.unit.session.client import Answer

from warren.session.pending_command import PendingCommand


class Scene:
    """One command at a time, and the turns in which it is continued."""

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


def test_a_command_that_does_not_wait_ends_at_once() -> None:
    scene = Scene()
    scene.answer.arrive()
    scene.pending.start(scene.wait(), 5)
    assert scene.done == ["started", "ended"]
    assert not scene.pending.is_waiting


def test_a_command_that_waits_is_continued_in_a_turn_of_its_own() -> None:
    scene = Scene()
    scene.pending.start(scene.wait(), 5)
    assert (scene.pending.is_waiting, scene.pending.started_at) == (True, 5)
    scene.answer.arrive()
    assert scene.resumed == []
    scene.turns.pop()(7)
    assert scene.resumed == [7]
    scene.pending.proceed()
    assert scene.done == ["started", "ended"]
    assert not scene.pending.is_waiting


def test_an_exception_is_raised_where_the_command_is_continued() -> None:
    scene = Scene()

    async def fail() -> None:
        await scene.answer
        raise ZeroDivisionError

    scene.pending.start(fail(), 0)
    scene.answer.arrive()
    with pytest.raises(ZeroDivisionError):
        scene.pending.proceed()
    assert not scene.pending.is_waiting


def test_a_connection_that_has_ended_is_not_continued() -> None:
    scene = Scene()
    scene.pending.start(scene.wait(), 0)
    scene.pending.close()
    scene.answer.arrive()
    scene.turns.pop()(7)
    assert scene.resumed == []
    assert not scene.pending.is_waiting
