"""Coroutines without a loop: as far as they go at once, and on when they can."""

import pytest
from tests.unit.session.client import Answer

from warren.vhost.coroutine_driver import drive, step


async def errand(done: list[str], *answers: Answer) -> None:
    for number, answer in enumerate(answers):
        await answer
        done.append(f"{number}")
    done.append("end")


def test_what_need_not_wait_is_done_at_once() -> None:
    done: list[str] = []
    assert step(errand(done)) is None
    drive(errand(done))
    assert done == ["end", "end"]


def test_what_has_to_wait_goes_on_with_each_answer() -> None:
    done: list[str] = []
    first, second = Answer(), Answer()
    drive(errand(done, first, second))
    assert done == []
    first.arrive()
    assert done == ["0"]
    second.arrive()
    assert done == ["0", "1", "end"]


def test_exceptions_come_out_where_it_stands() -> None:
    async def fail(answer: Answer) -> None:
        await answer
        raise ZeroDivisionError

    answer = Answer()
    drive(fail(answer))
    with pytest.raises(ZeroDivisionError):
        answer.arrive()
