"""A clock that the test moves, with a turn that always has its time."""

from collections.abc import Callable

from warren.model.turn import Turn


class ManualClock:
    """Stands still until the test sets `now`."""

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self.turn = turn_of(lambda: self.now)


def turn_of(clock: Callable[[], int]) -> Turn:
    """A turn that reads `clock` at each use."""
    return Turn(clock, lambda end: end())
