"""Long work is divided over the turns of the loop."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import uvloop
from tests.clock import turn_of

from warren.model.turn import Turn
from warren.runtime.clock import Clock
from warren.runtime.timers import Timer
from warren.runtime.turns import TurnQueue, piece_by_piece


def test_each_turn_runs_one_action_in_order_of_request() -> None:
    async def work() -> None:
        turns, done = TurnQueue(turn_of(Clock().now)), []
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
        turns, done = TurnQueue(turn_of(Clock().now)), []

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
        turns, done = TurnQueue(turn_of(Clock().now)), []
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
        turns, done = TurnQueue(turn_of(Clock().now)), []

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
        turns = TurnQueue(turn_of(Clock().now))

        def pieces() -> Iterator[None]:
            yield
            raise ValueError("a piece")

        with pytest.raises(ValueError, match="a piece"):
            await piece_by_piece(pieces(), turns.later)

    asyncio.run(work())


HOUR_MS = 3_600_000
# Calls an action later: the loop, and how it is entered is one of `ENTRIES`.
_Entry = Callable[[asyncio.AbstractEventLoop, Turn, Callable[[], None]], object]


def resumed(loop: asyncio.AbstractEventLoop, _: Turn, action: Callable[[], None]) -> object:
    """As the coroutine of a request or of a job continues."""

    async def request() -> None:
        await asyncio.sleep(0)
        action()

    return loop.create_task(request())


def read(loop: asyncio.AbstractEventLoop, _: Turn, action: Callable[[], None]) -> object:
    """As data arrives from a socket."""
    ours, theirs = socket.socketpair()

    def readable() -> None:
        loop.remove_reader(ours)
        action()
        ours.close()
        theirs.close()

    loop.add_reader(ours, readable)
    return theirs.send(b"x")


def done_by_thread(loop: asyncio.AbstractEventLoop, _: Turn, action: Callable[[], None]) -> object:
    """As a thread has written a batch."""
    return loop.run_in_executor(None, loop.call_soon_threadsafe, action)


ENTRIES: dict[str, _Entry] = {
    "a callback": lambda loop, _, action: loop.call_soon(action),
    "a timer of the loop": lambda loop, _, action: loop.call_later(0.001, action),
    "a timer of ours": lambda loop, turn, action: Timer(loop, turn, lambda _: action()).set(0),
    "an action of its own turn": lambda _, turn, action: TurnQueue(turn).later(lambda _: action()),
    "a coroutine": resumed,
    "a socket": read,
    "a thread": done_by_thread,
}


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_what_the_loop_calls_after_an_hour_has_the_time_of_its_own_turn(
    entry: _Entry, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    readings = [1_000]

    async def work() -> None:
        loop = asyncio.get_running_loop()
        turn = Turn(lambda: readings[-1], loop.call_soon)
        for _ in range(3):
            seen: asyncio.Future[int] = loop.create_future()
            assert turn.now() == readings[-1]
            readings.append(readings[-1] + HOUR_MS)
            assert turn.now() == readings[-2], "the time of a turn does not change"
            await asyncio.sleep(0)
            entry(loop, turn, partial(lambda seen: seen.set_result(turn.now()), seen))
            assert await seen == readings[-1]
            await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(work())
