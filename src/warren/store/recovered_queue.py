"""The messages that recovery found for one queue, or for one priority level of it."""

from msgspec import Struct

from warren.model.column import Column


# Not frozen, which takes four times as long to make: there is one for each queue.
class RecoveredQueue(Struct, kw_only=True):
    """The recovered messages of one priority level of a queue; their bodies stay on disk."""

    # The positions in order, and the location of each.
    positions: Column
    locations: Column
    # The size of the bodies in bytes.
    byte_count: int
    # (position, location) of messages with an expiration of their own.
    expiring: list[tuple[int, int]]
    # All messages before this position were delivered at least once.
    delivered_up_to: int
    # No position from here on was ever used.
    end: int

    @property
    def count(self) -> int:
        """The number of messages."""
        return self.positions.count
