"""Where the records of one segment are now, or were at first: in order of their place there."""

from array import array
from bisect import bisect_left


class RelocationMap:
    """Place of a record in a segment -> location of the same message elsewhere; twelve octets for each."""

    __slots__ = ("_at", "_locations")

    def __init__(self) -> None:
        self._at = array("I")
        self._locations = array("Q")

    def append(self, at: int, location: int) -> None:
        """The record at `at`, behind all others, belongs to `location`."""
        self._at.append(at)
        self._locations.append(location)

    def find(self, at: int) -> int:
        """The location of the record at `at`; 0 if there is none."""
        index = bisect_left(self._at, at)
        if index == len(self._at) or self._at[index] != at:
            return 0
        location: int = self._locations[index]
        return location

    def replace(self, at: int, location: int) -> None:
        """The record at `at`, which is there, belongs to `location` from now on."""
        self._locations[bisect_left(self._at, at)] = location
