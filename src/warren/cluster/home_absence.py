"""Those that wait for a home that is away, to ask it about a queue that is not durable.

Such a queue ends with its home, but only when the members have agreed that the home is down. Until then
nobody knows whether it is there, and a client that declares it can neither have it nor another one of its
name.
"""

from collections.abc import Callable
from functools import partial

from warren.client.answer import Answer
from warren.cluster.queue_traffic import QueueTraffic
from warren.limits_cluster import HOME_ABSENCE_MS_MAX
from warren.model.coroutine_driver import Later


class HomeAbsence:
    """What is awaited while one home is away."""

    __slots__ = ("_after", "_later", "_waiting")

    def __init__(self, later: Later, after: Callable[[int, Callable[[], None]], None]) -> None:
        """`after` calls an action after a time in milliseconds."""
        self._later = later
        self._after = after
        self._waiting: dict[Answer[None], QueueTraffic] = {}

    def wait(self, traffic: QueueTraffic) -> Answer[None]:
        """Complete in a later turn when the home is back, or the queue of `traffic` is gone.

        Or after `HOME_ABSENCE_MS_MAX`, if neither happens.
        """
        waiting: Answer[None] = Answer()
        self._waiting[waiting] = traffic
        self._after(HOME_ABSENCE_MS_MAX, partial(self._complete, waiting, 0))
        return waiting

    def over(self) -> None:
        """The home is back."""
        for waiting in self._waiting:
            self._later(partial(self._complete, waiting))

    def gone(self, traffic: QueueTraffic) -> None:
        """The queue of `traffic` was deleted."""
        for waiting, awaited in self._waiting.items():
            if awaited is traffic:
                self._later(partial(self._complete, waiting))

    def _complete(self, waiting: Answer[None], now: int) -> None:
        if self._waiting.pop(waiting, None) is not None:
            waiting.complete(None)
