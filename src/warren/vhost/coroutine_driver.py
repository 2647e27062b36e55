"""Runs a coroutine of ours without a loop: as far as it goes now, and on when what it waits for is there.

Below the waterline nothing knows of asyncio. What a coroutine yields is any future, since all of them can
call back. On a node that agrees with itself alone, only those yield that have more than a turn's work to do.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from typing import Protocol, TypeAlias

from warren.errors import AmqpError

# Port: has an action called in a later turn, with the time (ms), after everybody else had theirs.
Later: TypeAlias = Callable[[Callable[[int], None]], None]


class Pending(Protocol):
    """What an awaitable that cannot answer yet yields."""

    def add_done_callback(self, callback: Callable[[object], None], /) -> object:
        """Call `callback` once, when the answer is there."""


class NextTurn:
    """Awaited, it is over when everybody else had a turn."""

    __slots__ = ("_later",)

    def __init__(self, later: Later) -> None:
        self._later = later

    def __await__(self) -> Generator["NextTurn", None, None]:
        yield self

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` in the next turn."""
        self._later(lambda _: callback(self))


def step(coroutine: Coroutine[Pending, None, None]) -> Pending | None:
    """Run `coroutine` to its end, which is None, or to what it has to wait for."""
    try:
        return coroutine.send(None)
    except StopIteration:
        return None


def drive(coroutine: Coroutine[Pending, None, None]) -> None:
    """Run `coroutine` to its end, now or later; its exceptions come out where it stands."""
    pending = step(coroutine)
    if pending is not None:
        pending.add_done_callback(lambda _: drive(coroutine))


class _Unfinished:
    """Awaited, it is over when none of those that were counted is left."""

    __slots__ = ("_callback", "count")

    def __init__(self) -> None:
        self.count = 0
        self._callback: Callable[[object], None] | None = None

    def finish_one(self) -> None:
        """One of them has ended."""
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
    """Begin all `awaitables` at once, and wait until each has ended; the first AmqpError is raised then."""
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
