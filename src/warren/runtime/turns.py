"""Splits long work over turns of the event loop, so that other connections need not wait for all of it."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

from warren.model.turn import Turn


class TurnQueue:
    """Actions in order, one in each turn of the loop."""

    __slots__ = ("_turn", "_waiting")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._waiting: deque[Callable[[int], None]] = deque()

    def later(self, action: Callable[[int], None]) -> None:
        """Call `action` with the time (ms) in a turn of its own, after earlier actions."""
        self._waiting.append(action)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        try:
            self._waiting[0](self._turn.begin())
        finally:
            self._waiting.popleft()
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._run)


def in_pieces(
    actions: list[Callable[[], None]], per_turn: int, later: Callable[[Callable[[int], None]], None]
) -> "asyncio.Future[None]":
    """Do `actions`, `per_turn` of them in each turn from the next on.

    The future completes when all are done.
    """
    over = asyncio.get_running_loop().create_future()

    def do_some(_: int) -> None:
        for action in actions[-per_turn:]:
            action()
        del actions[-per_turn:]
        if actions:
            later(do_some)
        else:
            over.set_result(None)

    later(do_some)
    return over


def piece_by_piece(
    pieces: Iterator[object], later: Callable[[Callable[[int], None]], None]
) -> "asyncio.Future[None]":
    """Advance `pieces` by one in each turn from the next on.

    The future has the exception it raised, if any.
    """
    over = asyncio.get_running_loop().create_future()

    def go_on(_: int) -> None:
        try:
            next(pieces)
        except StopIteration:
            over.set_result(None)
        except Exception as error:
            over.set_exception(error)
        else:
            later(go_on)

    later(go_on)
    return over
