"""The locations of messages that are only on disk, in order of position.

It takes eight bytes for each message. Locations are stored in blocks of consecutive positions; a missing
position, whose message was settled, is stored as 0, or starts a new block if many are missing.

    block  │ first position │ location, location, 0, location …
"""

from array import array

from warren.limits import PAGED_BLOCK_SIZE, PAGED_GAP_MAX
from warren.model.column import Column
from warren.model.ring import Ring

_BLOCK_SIZE = PAGED_BLOCK_SIZE
_GAP_MAX = PAGED_GAP_MAX


class IndexBlock:
    """The locations of consecutive positions."""

    __slots__ = ("first", "locations", "passed")

    def __init__(self, first: int) -> None:
        self.first = first
        # The number of places at the start that were taken.
        self.passed = 0
        self.locations = Column()


class PagedIndex:
    """Rows of (position, location) in order of position; the first place always holds a location."""

    __slots__ = ("_blocks", "_last", "count")

    def __init__(self) -> None:
        # The number of messages, and the blocks with their locations.
        self.count = 0
        self._blocks = Ring()
        self._last: IndexBlock | None = None

    def append(self, position: int, location: int) -> None:
        """Append the message at `position`, which lies at `location`."""
        last = self._last
        if last is not None:
            length = last.locations.count
            gap = position - last.first - length
            if length >= _BLOCK_SIZE or gap > _GAP_MAX:
                last = None
            else:
                for _ in range(gap):
                    last.locations.append(0)
        if last is None:
            last = self._last = IndexBlock(position)
            self._blocks.append(last)
        last.locations.append(location)
        self.count += 1

    def first_position(self) -> int:
        """The position of the first message. Only while `count` is not 0."""
        block: IndexBlock = self._blocks.get(0)  # type: ignore[assignment]
        return block.first + block.passed

    def first_location(self) -> int:
        """The location of the first message. Only while `count` is not 0."""
        block: IndexBlock = self._blocks.get(0)  # type: ignore[assignment]
        return block.locations.get(block.passed)

    def pass_first(self) -> None:
        """Remove the first message. Only while `count` is not 0."""
        block: IndexBlock = self._blocks.get(0)  # type: ignore[assignment]
        block.passed += 1
        self.count -= 1
        self._trim(block)

    def peek(self, first: int, count: int) -> list[tuple[int, int]]:
        """(position, location) of up to `count` messages from position `first` on."""
        found: list[tuple[int, int]] = []
        number = self._first_behind(first)
        while number < self._blocks.count and len(found) < count:
            block: IndexBlock = self._blocks.get(number)  # type: ignore[assignment]
            locations = block.locations
            begin = first - block.first
            for place in range(max(begin, block.passed), locations.count):
                if locations.get(place):
                    found.append((block.first + place, locations.get(place)))
                    if len(found) == count:
                        break
            number += 1
        return found

    def take_some(self, count: int) -> "array[int]":
        """Remove about `count` messages from the front and return their locations; empty if none are left."""
        taken = array("Q")
        while self.count and len(taken) < count:
            block: IndexBlock = self._blocks.popleft()  # type: ignore[assignment]
            for location in block.locations.numbers(block.passed):
                if location:
                    taken.append(location)
                    self.count -= 1
        return taken

    def end(self) -> int:
        """The position behind the last message. Only while `count` is not 0."""
        last: IndexBlock = self._last  # type: ignore[assignment]
        return last.first + last.locations.count

    def holds(self, position: int) -> bool:
        """True if the message at `position` is in the index."""
        block = self._block_of(position)
        return block is not None and block.locations.get(position - block.first) != 0

    def take(self, position: int) -> int:
        """Remove the message at `position` and return its location; 0 if it is not in the index."""
        block = self._block_of(position)
        if block is None:
            return 0
        location = block.locations.get(position - block.first)
        if location:
            block.locations.put(position - block.first, 0)
            self.count -= 1
            self._trim(self._blocks.get(0))  # type: ignore[arg-type]
        return location

    def columns(self) -> tuple[Column, Column]:
        """The positions of all messages, in order, and their locations."""
        positions, all_locations = Column(), Column()
        for number in range(self._blocks.count):
            block: IndexBlock = self._blocks.get(number)  # type: ignore[assignment]
            locations = block.locations
            for place in range(block.passed, locations.count):
                location = locations.get(place)
                if location:
                    positions.append(block.first + place)
                    all_locations.append(location)
        return positions, all_locations

    def _trim(self, block: IndexBlock) -> None:
        """Advance the front, which is in `block`, over empty places."""
        while True:
            locations = block.locations
            while block.passed < locations.count and locations.get(block.passed) == 0:
                block.passed += 1
            if block.passed < locations.count:
                return
            self._blocks.popleft()
            if not self._blocks.count:
                self._last = None
                return
            block = self._blocks.get(0)  # type: ignore[assignment]

    def _block_of(self, position: int) -> IndexBlock | None:
        """The block with the place of `position`, unless the front has passed it; else None."""
        number = self._first_behind(position)
        if number == self._blocks.count:
            return None
        block: IndexBlock = self._blocks.get(number)  # type: ignore[assignment]
        return None if position < block.first + block.passed else block

    def _first_behind(self, position: int) -> int:
        """The number of the first block that ends behind `position`."""
        low, high = 0, self._blocks.count
        while low < high:
            middle = (low + high) >> 1
            block: IndexBlock = self._blocks.get(middle)  # type: ignore[assignment]
            if position >= block.first + block.locations.count:
                low = middle + 1
            else:
                high = middle
        return low
