"""Partial sorting: the places of the keys of one page, without sorting all keys.

A sample of the keys gives two bounds between which the page lies. One pass, in slices, collects the keys
between them, and only those are sorted. Keys equal to a bound, possibly nearly all keys, are only counted.
Equal keys are ordered by place, as in a stable sort of all.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from warren.limits import RANKED_PER_TURN

# The number of keys in the sample, and by how many of them the bounds lie outside of the page.
_SAMPLE = 1_024
_MARGIN = 40
# The factor by which the margin grows each time that the page was not within the bounds.
_WIDER = 8
# The sample takes keys at this share of all apart, which no period in the keys coincides with.
_GOLDEN = 0.6180339887


async def partial_argsort(keys: Sequence[Any], start: int, end: int) -> list[int]:
    """The places in `keys` of the items from `start` to `end` of the sorted order."""
    count = len(keys)
    if not start < min(end, count):
        return []
    ranges: list[tuple[Any, Any]] = []
    for at in range(0, count, RANKED_PER_TURN):
        piece = keys[at : at + RANKED_PER_TURN]
        ranges.append((min(piece), max(piece)))
        await asyncio.sleep(0)
    lowest, highest = min(low for low, _ in ranges), max(high for _, high in ranges)
    stride = int(count * _GOLDEN) | 1
    sample = sorted([keys[at * stride % count] for at in range(min(_SAMPLE, count))])
    margin = _MARGIN
    while True:
        below = start * len(sample) // count - margin
        above = end * len(sample) // count + margin
        found = _KeyRange(
            keys,
            low=sample[below] if below > 0 else lowest,
            high=sample[above] if above < len(sample) else highest,
        )
        for at, (low, high) in enumerate(ranges):
            found.look_at(at, low, high)
            await asyncio.sleep(0)
        if found.has(start, end):
            return found.places(start, end)
        margin *= _WIDER


class _KeyRange:
    """The keys between two bounds."""

    __slots__ = ("_below", "_high", "_highs", "_keys", "_low", "_lows", "_middle")

    def __init__(self, keys: Sequence[Any], low: Any, high: Any) -> None:
        self._keys = keys
        self._low = low
        self._high = high
        self._below = 0
        # For each piece, how many keys equal `low`, and how many equal `high` if that is another key.
        self._lows: list[int] = []
        self._highs: list[int] = []
        # The places of keys strictly between the bounds.
        self._middle: list[int] = []

    def look_at(self, number: int, lowest: Any, highest: Any) -> None:
        """Examine piece `number`, whose keys are between `lowest` and `highest`."""
        low, high = self._low, self._high
        piece = self._piece(number)
        if lowest < low:
            self._below += sum([key < low for key in piece])
        is_inside = lowest <= high and highest >= low
        self._lows.append(piece.count(low) if is_inside else 0)
        self._highs.append(piece.count(high) if is_inside and low != high else 0)
        if is_inside and lowest < high and low < highest and low != high:
            first = number * RANKED_PER_TURN
            self._middle += [place for place, key in enumerate(piece, first) if low < key < high]

    def has(self, start: int, end: int) -> bool:
        """True if the items from `start` to `end` of the sorted order are all within the bounds."""
        there = sum(self._lows) + len(self._middle) + sum(self._highs)
        return self._below <= start and end <= self._below + there

    def places(self, start: int, end: int) -> list[int]:
        """The places of the items from `start` to `end` of the sorted order."""
        start, end = start - self._below, end - self._below
        found = self._equal(self._low, self._lows, start, end)
        start, end = start - sum(self._lows), end - sum(self._lows)
        if start < len(self._middle) and end > 0:
            middle = sorted(self._middle, key=self._keys.__getitem__)
            found += middle[max(0, start) : end]
        start, end = start - len(self._middle), end - len(self._middle)
        return found + self._equal(self._high, self._highs, start, end)

    def _equal(self, key: Any, counts: list[int], start: int, end: int) -> list[int]:
        """The places from `start` to `end` among keys equal to `key`; `counts` has their number per piece."""
        found: list[int] = []
        for number, count in enumerate(counts):
            if start < count and end > 0:
                first = number * RANKED_PER_TURN
                places = [place for place, other in enumerate(self._piece(number), first) if other == key]
                found += places[max(0, start) : end]
            start, end = start - count, end - count
        return found

    def _piece(self, number: int) -> Sequence[Any]:
        return self._keys[number * RANKED_PER_TURN : (number + 1) * RANKED_PER_TURN]
