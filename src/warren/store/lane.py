"""What one queue, or one priority level of it, is done with: positions, in as few runs as may be.

A queue that is read in order is described by one number, `low`. What is settled out of order forms runs above
it, which grow together and vanish into it when the gap below them closes.
"""

_LEVEL_SHIFT = 56


class Lane:
    """One lane of a store; a message keeps its position in it for life."""

    __slots__ = (
        "_ends", "_starts", "has_reached", "is_dirty", "is_dropped", "key", "level", "low", "queue",
        "reached", "run_count", "run_first",
    )  # fmt: skip

    def __init__(self, queue: int, level: int) -> None:
        self.queue = queue
        self.level = level
        # What its positions begin with on the disk.
        self.key = level << _LEVEL_SHIFT
        # Everything below is done with.
        self.low = 0
        # Everything below was handed out at least once.
        self.reached = 0
        self.has_reached = False
        # Runs of positions above `low` that are done with: first -> behind the last, and the other way.
        self._starts: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        # The run that was released since the last batch, and may still grow.
        self.run_first = 0
        self.run_count = 0
        # True while the store has it on its list for the next batch.
        self.is_dirty = False
        # True when its queue is gone.
        self.is_dropped = False

    def release(self, first: int, end: int) -> None:
        """The positions from `first` up to, not including, `end` are done with; they were not before."""
        if first == self.low:
            self.low = end
            if self._starts:
                self._close_gap()
            return
        start = self._ends.pop(first, first)
        behind = self._starts.pop(end, end)
        if start != first:
            del self._starts[start]
        if behind != end:
            del self._ends[behind]
        self._starts[start] = behind
        self._ends[behind] = start

    def runs(self) -> list[tuple[int, int]]:
        """All that is done with, as (first, behind the last), in order."""
        below = [(0, self.low)] if self.low else []
        return below + sorted(self._starts.items())

    def _close_gap(self) -> None:
        while True:
            end = self._starts.pop(self.low, -1)
            if end < 0:
                return
            del self._ends[end]
            self.low = end
