"""Coroutines without an event loop run until they have to wait, and resume with the answer."""

import pytest
from tests.unit.session.client import Answer

from warren.model.coroutine_driver import drive, step


async def add_answers(done: list[str], *answers: Answer) -> None:
    for number, answer in enumerate(answers):
        await answer
        done.append(f"{number}")
    done.append("end")


def test_a_coroutine_that_need_not_wait_completes_at_once() -> None:
    done: list[str] = []
    assert step(add_answers(done)) is None
    drive(add_answers(done))
    assert done == ["end", "end"]


def test_a_waiting_coroutine_resumes_with_each_answer() -> None:
    done: list[str] = []
    first, second = Answer(), Answer()
    drive(add_answers(done, first, second))
    assert done == []
    first.arrive()
    assert done == ["0"]
    second.arrive()
    assert done == ["0", "1", "end"]


def test_exceptions_are_raised_where_the_coroutine_waits() -> None:
    async def fail(answer: Answer) -> None:
        await answer
        raise ZeroDivisionError

    answer = Answer()
    drive(fail(answer))
    with pytest.raises(ZeroDivisionError):
        answer.arrive()
