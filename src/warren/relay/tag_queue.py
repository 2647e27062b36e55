"""Delivery tags that wait for the confirms of their publishes: first in, first out, without boxed integers.

_items   │ 9 │ 10 │   │   │ 5 │ 6 │ 7 │ 8 │      a ring whose size is a power of two
                    ▲       ▲ _head
"""

from array import array

_ROOM_MIN = 64


class TagQueue:
    """A queue of `count` delivery tags."""

    __slots__ = ("_array", "_head", "_items", "_mask", "count")

    def __init__(self) -> None:
        self.count = 0
        # Compiled, `_items` is a view of the array.
        self._array = array("Q", bytes(8 * _ROOM_MIN))
        self._items = self._array
        self._mask = _ROOM_MIN - 1
        self._head = 0

    def append(self, tag: int) -> None:
        """Append `tag`."""
        if self.count > self._mask:
            self._grow()
        self._items[(self._head + self.count) & self._mask] = tag
        self.count += 1

    def get(self, place: int) -> int:
        """Return the tag at `place`, which must exist."""
        if not 0 <= place < self.count:
            raise IndexError(place)
        return self._items[(self._head + place) & self._mask]

    def take(self, count: int) -> int:
        """Remove the first `count` tags, at least one, which must exist; return the last of them."""
        last = self.get(count - 1)
        self._head = (self._head + count) & self._mask
        self.count -= count
        return last

    def _grow(self) -> None:
        """Double the room, with the first tag at its beginning."""
        first, second = self._array[self._head :], self._array[: self._head]
        self._array = first + second + array("Q", bytes(8 * (self._mask + 1)))
        self._items = self._array
        self._mask = 2 * self._mask + 1
        self._head = 0
