"""Time that passes for the links of a node, without the jumps of a clock."""

from warren.limits_cluster import CLUSTER_ELAPSED_MS_MAX

_STEP_MAX = CLUSTER_ELAPSED_MS_MAX


class ElapsedTime:
    """Milliseconds since the start, by a clock that may be set forward and back.

    A look at the clock adds at most `CLUSTER_ELAPSED_MS_MAX`, so that it has to be looked at more often.
    """

    __slots__ = ("_seen", "now")

    def __init__(self, clock: int) -> None:
        self._seen = clock
        self.now = 0

    def follow(self, clock: int) -> None:
        """Note that the clock shows `clock`."""
        step = clock - self._seen
        if step > 0:
            self.now += min(step, _STEP_MAX)
        self._seen = clock

    def clock_at(self, due: int) -> int:
        """Return what the clock shows at `due`, a time of this object, if it is not set meanwhile."""
        return self._seen + max(0, due - self.now)
