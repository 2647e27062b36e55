"""The settled positions and the delivered position of one queue, or of one of its priority levels."""

from warren.store.position_set import PositionSet

_LEVEL_SHIFT = 56


class QueueCursor(PositionSet):
    """The set of settled positions of one priority level of a queue, and how far it was delivered."""

    __slots__ = (
        "ahead", "delivered_up_to", "is_delivered_dirty", "is_dirty", "is_dropped", "key", "level",
        "noted_in", "queue", "reserved", "run_count", "run_first",
    )  # fmt: skip

    def __init__(self, queue: int, level: int) -> None:
        super().__init__()
        self.queue = queue
        self.level = level
        # The priority level as the highest byte of the positions on disk.
        self.key = level << _LEVEL_SHIFT
        # All positions below this one were delivered at least once.
        self.delivered_up_to = 0
        self.is_delivered_dirty = False
        # The position written to the file of delivered positions, and how far ahead the next write goes.
        self.reserved = 0
        self.ahead = 1
        # The run of positions settled since the last batch, which can still grow.
        self.run_first = 0
        self.run_count = 0
        # True while the store has it on its list for the next batch.
        self.is_dirty = False
        # The number of the last segment whose queues include this one.
        self.noted_in = 0
        # True when the queue was deleted.
        self.is_dropped = False
