"""The messages that recovery found for one queue, or for one priority level of it."""

from bisect import bisect_left

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


def locations_of(found: RecoveredQueue, first: int, count: int) -> list[int]:
    """The locations of the messages at `count` positions from `first` on; 0 for each that was not found."""
    positions, locations = found.positions, found.locations
    place, end = _place_of(positions, first), found.count
    there: list[int] = []
    for position in range(first, first + count):
        if place < end and positions.get(place) == position:
            there.append(locations.get(place))
            place += 1
        else:
            there.append(0)
    return there


def _place_of(column: Column, number: int) -> int:
    """The place of the first number in the sorted `column` that is not below `number`."""
    return bisect_left(range(column.count), number, key=column.get)
