"""Runs coroutines below the waterline without an event loop.

A coroutine runs until it yields a future, and continues when the future completes; any object with
`add_done_callback` is a future. On a single node only coroutines with more than a turn's work yield.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from typing import Protocol, TypeAlias

from warren.errors import AmqpError

# Port: calls an action in a later turn, with the time (ms), after all connections had theirs.
Later: TypeAlias = Callable[[Callable[[int], None]], None]


class Pending(Protocol):
    """What an awaitable yields while it has no result."""

    def add_done_callback(self, callback: Callable[[object], None], /) -> object:
        """Call `callback` once, when the result is available."""


class NextTurn:
    """An awaitable that completes in a later turn, after all connections had theirs."""

    __slots__ = ("_later",)

    def __init__(self, later: Later) -> None:
        self._later = later

    def __await__(self) -> Generator["NextTurn", None, None]:
        yield self

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` in the next turn."""
        self._later(lambda _: callback(self))


def step(coroutine: Coroutine[Pending, None, None]) -> Pending | None:
    """Run `coroutine` until it ends, which returns None, or yields a future, which is returned."""
    try:
        return coroutine.send(None)
    except StopIteration:
        return None


def drive(coroutine: Coroutine[Pending, None, None]) -> None:
    """Run `coroutine` to its end, now or later; an exception is raised from wherever it is running."""
    pending = step(coroutine)
    if pending is not None:
        pending.add_done_callback(lambda _: drive(coroutine))


class _Unfinished:
    """An awaitable that completes when a number of coroutines have ended."""

    __slots__ = ("_callback", "count")

    def __init__(self) -> None:
        self.count = 0
        self._callback: Callable[[object], None] | None = None

    def finish_one(self) -> None:
        """Count a coroutine that has ended."""
        self.count -= 1
        if not self.count and self._callback is not None:
            self._callback(self)

    def __await__(self) -> Generator["_Unfinished", None, None]:
        if self.count:
            yield self

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` when the last one ends."""
        self._callback = callback


async def await_all(awaitables: Iterable[Awaitable[object]]) -> None:
    """Start all `awaitables` at once, and wait until each has ended.

    Then raise the first AmqpError, if any.
    """
    unfinished = _Unfinished()
    errors: list[AmqpError] = []

    async def finish(awaitable: Awaitable[object]) -> None:
        try:
            await awaitable
        except AmqpError as error:
            errors.append(error)
        unfinished.finish_one()

    begun = list(awaitables)
    unfinished.count = len(begun)
    for awaitable in begun:
        drive(finish(awaitable))
    await unfinished
    if errors:
        raise errors[0]
