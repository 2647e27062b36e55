"""What one queue, or one priority level of it, is done with, and how far its consumers have come."""

from warren.store.position_set import PositionSet

_LEVEL_SHIFT = 56


class QueueCursor(PositionSet):
    """One lane of a store: the set of the positions that are done with. A message keeps its own for life."""

    __slots__ = (
        "ahead", "delivered_up_to", "is_delivered_dirty", "is_dirty", "is_dropped", "key", "level",
        "noted_in", "queue", "reserved", "run_count", "run_first",
    )  # fmt: skip

    def __init__(self, queue: int, level: int) -> None:
        super().__init__()
        self.queue = queue
        self.level = level
        # What its positions begin with on the disk.
        self.key = level << _LEVEL_SHIFT
        # Everything below was handed out at least once.
        self.delivered_up_to = 0
        self.is_delivered_dirty = False
        # How far the file of what may have been handed out goes, and how far ahead it goes next.
        self.reserved = 0
        self.ahead = 1
        # The run that was released since the last batch, and may still grow.
        self.run_first = 0
        self.run_count = 0
        # True while the store has it on its list for the next batch.
        self.is_dirty = False
        # The number of the last segment that knows of its queue.
        self.noted_in = 0
        # True when its queue is gone.
        self.is_dropped = False
