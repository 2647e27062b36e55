"""Long work is divided over the turns of the loop."""

import asyncio
from collections.abc import Iterator

import pytest

from warren.runtime.clock import Clock
from warren.runtime.turns import TurnQueue, piece_by_piece


def test_each_turn_runs_one_action_in_order_of_request() -> None:
    async def work() -> None:
        turns, done = TurnQueue(Clock()), []
        for name in "abc":
            turns.later(lambda _, name=name: done.append(name))
        seen = []
        for _ in range(4):
            await asyncio.sleep(0)
            seen.append("".join(done))
        assert seen == ["a", "ab", "abc", "abc"]

    asyncio.run(work())


def test_an_action_that_asks_again_comes_after_the_others() -> None:
    async def work() -> None:
        turns, done = TurnQueue(Clock()), []

        def again(_: int) -> None:
            done.append("again")
            if len(done) < 4:
                turns.later(again)

        turns.later(again)
        turns.later(lambda _: done.append("other"))
        for _ in range(8):
            await asyncio.sleep(0)
        assert done == ["again", "other", "again", "again"]

    asyncio.run(work())


def test_a_failing_action_does_not_stop_the_others() -> None:
    async def work() -> None:
        failed: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: failed.append(context["exception"])
        )
        turns, done = TurnQueue(Clock()), []
        turns.later(broken)
        turns.later(done.append)
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(done) == 1
        assert [type(error) for error in failed] == [ValueError]

    asyncio.run(work())


def broken(_: int) -> None:
    raise ValueError


def test_work_in_pieces_takes_a_turn_for_each() -> None:
    async def work() -> None:
        turns, done = TurnQueue(Clock()), []

        def pieces() -> Iterator[None]:
            for name in "abc":
                done.append(name)
                yield

        over = piece_by_piece(pieces(), turns.later)
        seen = []
        while not over.done():
            seen.append("".join(done))
            await asyncio.sleep(0)
        assert seen == ["", "a", "ab", "abc"]

    asyncio.run(work())


def test_a_failing_piece_is_the_last_and_its_exception_is_raised_to_the_waiter() -> None:
    async def work() -> None:
        turns = TurnQueue(Clock())

        def pieces() -> Iterator[None]:
            yield
            raise ValueError("a piece")

        with pytest.raises(ValueError, match="a piece"):
            await piece_by_piece(pieces(), turns.later)

    asyncio.run(work())
