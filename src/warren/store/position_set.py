"""A set of positions that fills from below, such as the settled positions of a queue.

    │ all below `low` │ page │ page │ …        a page: 4,096 positions, a bit for each

Positions added in order are represented by one number. Positions added out of order are bits in pages above
it, which are dropped when the gap below them closes; a page takes less memory than a message.
"""

_PAGE_SHIFT = 12
_PAGE_SIZE = 1 << _PAGE_SHIFT
_FULL = b"\xff" * (_PAGE_SIZE >> 3)


class PositionSet:
    """A set of positions from 0 on; adding a position twice is allowed."""

    __slots__ = ("_pages", "end", "low")

    def __init__(self) -> None:
        # All positions below are in the set.
        self.low = 0
        # No position from here on is in the set.
        self.end = 0
        # Position >> 12 -> bits of the positions of that page. Bits below `low` have no meaning.
        self._pages: dict[int, bytearray] = {}

    def add(self, first: int, end: int) -> None:
        """Add the positions from `first` up to, not including, `end`."""
        if end > self.end:
            self.end = end
        if first > self.low:
            self._mark(first, end)
        elif end > self.low:
            before = self.low
            self.low = end
            if self._pages:
                self._absorb(before)
                if self.low == self.end:
                    self._pages.clear()

    def has(self, position: int) -> bool:
        """True if `position` is in the set."""
        if position < self.low:
            return True
        page = self._pages.get(position >> _PAGE_SHIFT)
        if page is None:
            return False
        at = position & (_PAGE_SIZE - 1)
        return page[at >> 3] >> (at & 7) & 1 != 0

    def runs(self) -> list[tuple[int, int]]:
        """All ranges of positions in the set, in order, as (first, end); `end` is not included."""
        runs = [(0, self.low)] if self.low else []
        first = behind = 0
        for number in sorted(self._pages):
            page = self._pages[number]
            base = number << _PAGE_SHIFT
            for at in range(max(self.low - base, 0), _PAGE_SIZE):
                if page[at >> 3] >> (at & 7) & 1:
                    position = base + at
                    if position != behind:
                        if behind:
                            runs.append((first, behind))
                        first = position
                    behind = position + 1
        if behind:
            runs.append((first, behind))
        return runs

    def _mark(self, first: int, end: int) -> None:
        """Set the bits from `first`, which is above `low`, up to `end`."""
        while first < end:
            number = first >> _PAGE_SHIFT
            base = number << _PAGE_SHIFT
            stop = min(end - base, _PAGE_SIZE)
            if stop - (first - base) == _PAGE_SIZE:
                self._pages[number] = bytearray(_FULL)
            else:
                page = self._pages.get(number)
                if page is None:
                    page = self._pages[number] = bytearray(_PAGE_SIZE >> 3)
                for at in range(first - base, stop):
                    page[at >> 3] |= 1 << (at & 7)
            first = base + stop

    def _absorb(self, before: int) -> None:
        """Raise `low`, which was `before`, over the positions in the pages directly above it."""
        for number in range(before >> _PAGE_SHIFT, self.low >> _PAGE_SHIFT):
            self._pages.pop(number, None)
        while True:
            number = self.low >> _PAGE_SHIFT
            page = self._pages.get(number)
            if page is None:
                return
            at = self.low & (_PAGE_SIZE - 1)
            while at < _PAGE_SIZE and page[at >> 3] >> (at & 7) & 1:
                at += 1
            self.low = (number << _PAGE_SHIFT) + at
            if at < _PAGE_SIZE:
                return
            del self._pages[number]
