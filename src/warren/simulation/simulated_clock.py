"""A clock that only the simulation sets, and a turn that reads it at each use."""

from warren.model.turn import Turn


class SimulatedClock:
    """Unix time in milliseconds, which advances when the simulation says so."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.turn = Turn(lambda: self.now, lambda end: end())
