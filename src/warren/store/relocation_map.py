"""Maps the records of one segment to the locations of the same messages elsewhere."""

from array import array
from bisect import bisect_left


class RelocationMap:
    """A sorted map from the place of a record in a segment to a location; 12 bytes for each entry."""

    __slots__ = ("_at", "_locations")

    def __init__(self) -> None:
        self._at = array("I")
        self._locations = array("Q")

    def append(self, at: int, location: int) -> None:
        """Add the location of the record at `at`, which must be behind all others."""
        self._at.append(at)
        self._locations.append(location)

    def find(self, at: int) -> int:
        """The location for the record at `at`; 0 if there is none."""
        index = bisect_left(self._at, at)
        if index == len(self._at) or self._at[index] != at:
            return 0
        location: int = self._locations[index]
        return location

    def replace(self, at: int, location: int) -> None:
        """Replace the location of the record at `at`, which must exist."""
        self._locations[bisect_left(self._at, at)] = location
