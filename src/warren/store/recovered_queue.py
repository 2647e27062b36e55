"""What was found in a store of one queue, or of one priority level of it."""

from dataclasses import dataclass

from warren.model.column import Column


# Not frozen, which takes four times as long to make: there is one for each queue.
@dataclass(slots=True, kw_only=True)
class RecoveredQueue:
    """Its messages, which stay on the disk until somebody needs them."""

    # Their positions, in order, and where each lies.
    positions: Column
    locations: Column
    # The octets of their bodies.
    octets: int
    # (position, location) of those that carry an expiration of their own.
    expiring: list[tuple[int, int]]
    # All before this position were handed out at least once.
    delivered_up_to: int
    # No position from here on was ever used.
    end: int

    @property
    def count(self) -> int:
        """How many messages."""
        return self.positions.count
