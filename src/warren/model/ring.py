"""A queue of references in blocks of one size, with access to any place.

Unlike a deque, it reads and removes the n-th item in constant time, as queues and channels need.
A removed item leaves None until the front passes its place. Growing copies nothing, and memory is released
block by block as the front passes.

    _first      |  .   |  .   |  2   |  3   |       the front is position 2
    _behind     |  4   |  5   |  6   |  7   |
                |  8   |  9   |  .   |  .   |       _last

A position is counted from the start and always belongs to the same place of a block. Most rings are short,
however: a single block is used circularly, and doubles until it has the common block size.
"""

_SIZE_MIN = 8
# 8 bytes per reference, and about 90 per block: larger blocks would save little.
_SHIFT = 9
_SIZE_MAX = 1 << _SHIFT
_MASK_MAX = _SIZE_MAX - 1
# Passed blocks leave gaps at the start of `_behind`, which is cut when it has this many.
_GAPS_MAX = 64


class Ring:
    """`count` places in order, counted from the front; a place holds an object or None."""

    __slots__ = ("_behind", "_first", "_gaps", "_head", "_last", "_limit", "_mask", "_spare", "count")

    def __init__(self) -> None:
        self._first: list[object] = [None] * _SIZE_MIN
        self._last = self._first
        self._mask = _SIZE_MIN - 1
        # The position of the front, and the position at which the next append needs a check.
        self._head = 0
        self._limit = _SIZE_MIN
        self.count = 0
        # The blocks after the first; None for a passed block.
        self._behind: list[list[object] | None] | None = None
        self._gaps = 0
        # A passed block for reuse: a ring of constant length uses its blocks in turn.
        self._spare: list[object] | None = None

    def append(self, item: object) -> None:
        """Append `item`."""
        at = self._head + self.count
        if at == self._limit:
            at = self._make_room()
        self._last[at & self._mask] = item
        self.count += 1

    def popleft(self) -> object:
        """Remove and return the item at the front. IndexError if the ring is empty."""
        if not self.count:
            raise IndexError("the ring is empty")
        at = self._head
        self._head = at + 1
        self.count -= 1
        mask = self._mask
        at &= mask
        item = self._first[at]
        self._first[at] = None
        if at == mask:
            self._pass_block()
        return item

    def get(self, place: int) -> object:
        """The item at `place` from the front. IndexError outside of the ring."""
        if place < 0 or place >= self.count:
            raise IndexError(place)
        at = self._head + place
        if place == 0 or self._first is self._last:
            return self._first[at & self._mask]
        return self._block(at)[at & self._mask]

    def take(self, place: int) -> object:
        """Replace the item at `place` by None and return it. IndexError outside of the ring."""
        if place < 0 or place >= self.count:
            raise IndexError(place)
        at = self._head + place
        block = self._block(at)
        at &= self._mask
        item = block[at]
        block[at] = None
        return item

    def clear(self) -> None:
        """Remove all items."""
        self._use([None] * _SIZE_MIN, 0)
        self._behind = None
        self._gaps = 0
        self._spare = None

    def _use(self, items: list[object], count: int) -> None:
        """Use `items`, the first `count` of which are filled, as the only block."""
        self._first = items
        self._last = items
        self._mask = len(items) - 1
        self._head = 0
        self._limit = len(items)
        self.count = count

    def _block(self, position: int) -> list[object]:
        """The block of `position`."""
        number = (position >> _SHIFT) - (self._head >> _SHIFT)
        if number == 0 or self._first is self._last:
            return self._first
        return self._behind[self._gaps + number - 1]  # type: ignore[index, return-value]

    def _make_room(self) -> int:
        """Add a place at the end; return its position."""
        if self._first is self._last and self.count <= self._mask:
            self._limit = self._head + self._mask + 1
        elif self._mask < _MASK_MAX:
            start = self._head & self._mask
            items = self._first
            self._use(items[start:] + items[:start] + [None] * self.count, self.count)
        else:
            self._add_block()
        return self._head + self.count

    def _add_block(self) -> None:
        """Add a block; the part of a circular single block that belongs there is moved."""
        items = self._first
        block = self._spare
        self._spare = None
        if block is None:
            block = [None] * _SIZE_MAX
        if items is self._last:
            for place in range(self._head & _MASK_MAX):
                block[place] = items[place]
                items[place] = None
        self._last = block
        if self._behind is None:
            self._behind = []
        self._behind.append(block)
        self._limit = ((self._head + self.count) | _MASK_MAX) + 1

    def _pass_block(self) -> None:
        """Release the first block, whose end the front has passed."""
        behind = self._behind
        if behind is None or self._first is self._last:
            return
        self._spare = self._first
        self._first = behind[self._gaps]  # type: ignore[assignment]
        behind[self._gaps] = None
        self._gaps += 1
        if self._gaps > _GAPS_MAX and self._gaps << 1 > len(behind):
            del behind[: self._gaps]
            self._gaps = 0
