"""A clock that the test sets, and a turn that always reads it."""

from collections.abc import Callable

from warren.model.turn import Turn


class ManualClock:
    """A clock that shows `now`, which the test sets."""

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self.turn = turn_of(lambda: self.now)


def turn_of(clock: Callable[[], int]) -> Turn:
    """A turn that reads `clock` at each use."""
    return Turn(clock, lambda end: end())
