"""Runs a coroutine of ours without a loop: as far as it goes now, and on when what it waits for is there.

Below the waterline nothing knows of asyncio. What a coroutine yields is any future, since all of them can
call back; on a node that agrees with itself alone, none ever yields.
"""

from collections.abc import Callable, Coroutine
from typing import Protocol


class Pending(Protocol):
    """What an awaitable that cannot answer yet yields."""

    def add_done_callback(self, callback: Callable[[object], None], /) -> object:
        """Call `callback` once, when the answer is there."""


def step(coroutine: Coroutine[Pending, None, None]) -> Pending | None:
    """Run `coroutine` to its end, which is None, or to what it has to wait for."""
    try:
        return coroutine.send(None)
    except StopIteration:
        return None


def run(coroutine: Coroutine[Pending, None, None]) -> None:
    """Run `coroutine` to its end, now or later; its exceptions come out where it stands."""
    pending = step(coroutine)
    if pending is not None:
        pending.add_done_callback(lambda _: run(coroutine))
