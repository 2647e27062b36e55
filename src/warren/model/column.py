"""A growing column of integers, 0 to 2**64 - 1: an `array` that compiled code accesses without boxing.

    _array  │ 17 │ 4 │ 99 │ 3 │   │   │   │   │
              0    1    2   3   count          _room

Compiled, `_items` is a view of the array, which cannot be resized while a view exists.
"""

from array import array

_ROOM_MIN = 8
_BLANK = array("Q", bytes(8 * _ROOM_MIN))
# The fraction by which a column grows, as a shift: at most an eighth is unused.
_GROWTH_SHIFT = 3


class Column:
    """An array of `count` integers, by place."""

    __slots__ = ("_array", "_items", "_room", "count")

    def __init__(self) -> None:
        self.count = 0
        self._array = _BLANK[:]
        self._items = self._array
        self._room = _ROOM_MIN

    def append(self, number: int) -> None:
        """Append `number`."""
        if self.count == self._room:
            self._grow()
        self._items[self.count] = number
        self.count += 1

    def reserve(self, count: int) -> None:
        """Make room for `count` more numbers at once."""
        if self._room - self.count < count:
            self._grow_by(count)

    def get(self, place: int) -> int:
        """The number at `place`. IndexError outside of the column."""
        if not 0 <= place < self.count:
            raise IndexError(place)
        return self._items[place]

    def put(self, place: int, number: int) -> None:
        """Set the number at `place`. IndexError outside of the column."""
        if not 0 <= place < self.count:
            raise IndexError(place)
        self._items[place] = number

    def cut(self, count: int) -> None:
        """Truncate to the first `count` numbers, which must exist."""
        if not 0 <= count <= self.count:
            raise IndexError(count)
        self.count = count

    def numbers(self, first: int = 0) -> "array[int]":
        """Copy the numbers from place `first` on."""
        return self._array[first : self.count]

    def _grow(self) -> None:
        self._grow_by(max(self.count >> _GROWTH_SHIFT, _ROOM_MIN))

    def _grow_by(self, more: int) -> None:
        self._items = _BLANK
        self._array.extend(array("Q", bytes(8 * more)))
        self._items = self._array
        self._room += more
