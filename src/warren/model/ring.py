"""A row of references in blocks of one size: first in, first out, and any place in between.

What a deque cannot do in constant time, and both sides of the broker need: look at, or take out,
the n-th from the front. A place that was taken holds None until the front passes it. Nothing is
copied when a long row grows, and memory goes block by block as the front passes.

    _first      |  .   |  .   |  2   |  3   |       the front is position 2
    _behind     |  4   |  5   |  6   |  7   |
                |  8   |  9   |  .   |  .   |       _last

A position is counted from the start of the row and belongs to a place of a block for ever. Most rows are
short, though: a block that is alone is a ring, and doubles until it has the size that all others have.
"""

_SIZE_MIN = 8
# 8 bytes for each reference, and some 90 for the block: larger ones would save little.
_SHIFT = 9
_SIZE_MAX = 1 << _SHIFT
_MASK_MAX = _SIZE_MAX - 1
# Blocks that the front has passed leave gaps at the start of `_behind`, which is cut when it has so many.
_GAPS_MAX = 64


class Ring:
    """`count` places in order, counted from the front; a place holds an object or None."""

    __slots__ = ("_behind", "_first", "_gaps", "_head", "_last", "_limit", "_mask", "_spare", "count")

    def __init__(self) -> None:
        self._first: list[object] = [None] * _SIZE_MIN
        self._last = self._first
        self._mask = _SIZE_MIN - 1
        # The positions of the front, and of the place that needs to be looked at before it is filled.
        self._head = 0
        self._limit = _SIZE_MIN
        self.count = 0
        # The blocks behind the first; None where the front has passed one.
        self._behind: list[list[object] | None] | None = None
        self._gaps = 0
        # A block that the front has passed: a row that keeps its length uses its blocks in turn.
        self._spare: list[object] | None = None

    def append(self, item: object) -> None:
        """Put `item` behind the last place."""
        at = self._head + self.count
        if at == self._limit:
            at = self._make_room()
        self._last[at & self._mask] = item
        self.count += 1

    def popleft(self) -> object:
        """Take the first place away and give what it held. IndexError when there is none."""
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
        """What the `place`-th place from the front holds. IndexError outside of the ring."""
        if place < 0 or place >= self.count:
            raise IndexError(place)
        at = self._head + place
        if place == 0 or self._first is self._last:
            return self._first[at & self._mask]
        return self._block(at)[at & self._mask]

    def take(self, place: int) -> object:
        """Leave None in the `place`-th place and give what it held. IndexError outside of the ring."""
        if place < 0 or place >= self.count:
            raise IndexError(place)
        at = self._head + place
        block = self._block(at)
        at &= self._mask
        item = block[at]
        block[at] = None
        return item

    def clear(self) -> None:
        """Forget everything."""
        self._use([None] * _SIZE_MIN, 0)
        self._behind = None
        self._gaps = 0
        self._spare = None

    def _use(self, items: list[object], count: int) -> None:
        """Let `items`, the first `count` of which hold something, be the only block."""
        self._first = items
        self._last = items
        self._mask = len(items) - 1
        self._head = 0
        self._limit = len(items)
        self.count = count

    def _block(self, position: int) -> list[object]:
        """The block that `position` lies in."""
        number = (position >> _SHIFT) - (self._head >> _SHIFT)
        if number == 0 or self._first is self._last:
            return self._first
        return self._behind[self._gaps + number - 1]  # type: ignore[index, return-value]

    def _make_room(self) -> int:
        """Have a place behind the last; answers its position."""
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
        """Go on in one more block; what an only block holds of it already moves there."""
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
        """The front has passed the end of the first block."""
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
