"""Where a replica keeps the messages of its group: position in the group ─▶ position in the store.

    group    0 … 9 │ 10, 11, 12 of a void entry │ 10 … of the entry that replaced it
    store    0 … 9 │ 10, 11, 12: released        │ 13 …      offset 3 from position 10 on

Positions in a group are those that all its replicas agree on. A replica that has to cut the end of its log
receives other messages at the same positions; in its store each position is used once only, so that no old
message can be taken for a new one.
"""

from bisect import bisect_right
from collections.abc import Iterator

from warren.store.group_record import PositionOffset


class PositionOffsets:
    """The offsets of one priority level, by the position from which each applies."""

    __slots__ = ("_firsts", "_offsets")

    def __init__(self) -> None:
        self._firsts = [0]
        self._offsets = [0]

    def stored(self, position: int) -> int:
        """The position in the store of `position` in the group."""
        return position + self._offsets[bisect_right(self._firsts, position) - 1]

    def logical(self, stored: int) -> int:
        """The position in the group of the message at position `stored` in the store, which is not void."""
        place = len(self._firsts) - 1
        while place and self._firsts[place] + self._offsets[place] > stored:
            place -= 1
        return stored - self._offsets[place]

    def logical_ranges(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """The ranges of positions in the group at positions `first` up to `end` in the store, without void
        ones.
        """
        for place, (begin, offset) in enumerate(zip(self._firsts, self._offsets, strict=True)):
            low, high = max(first - offset, begin), end - offset
            if place + 1 < len(self._firsts):
                high = min(high, self._firsts[place + 1])
            if low < high:
                yield low, high

    def set(self, first: int, offset: int) -> None:
        """Keep the messages from position `first` on at their position + `offset`."""
        while self._firsts and self._firsts[-1] >= first:
            self._firsts.pop()
            self._offsets.pop()
        self._firsts.append(first)
        self._offsets.append(offset)

    def forget(self, low: int) -> None:
        """Forget offsets of positions in the store that are all below `low`, and so settled.

        The first one stays: it leads to positions that are settled as well.
        """
        while len(self._firsts) > 2 and self._firsts[2] + self._offsets[2] <= low:
            del self._firsts[1], self._offsets[1]

    def listed(self, level: int) -> list[PositionOffset]:
        """All offsets but the first, if that is none."""
        pairs = zip(self._firsts, self._offsets, strict=True)
        return [PositionOffset(level, first, offset) for first, offset in pairs if first or offset]

    def void(self, end: int, top: int) -> Iterator[tuple[int, int]]:
        """The ranges of positions in the store, up to `top`, at which the group has no message.

        `end` is the position behind the last message of the group.
        """
        behind = 0
        for place, (first, offset) in enumerate(zip(self._firsts, self._offsets, strict=True)):
            if first + offset > behind:
                yield behind, first + offset
            until = self._firsts[place + 1] if place + 1 < len(self._firsts) else end
            behind = until + offset
        if top > behind:
            yield behind, top
