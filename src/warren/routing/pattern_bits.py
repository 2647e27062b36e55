"""Many topic patterns matched at once: a bit for each place in each of them, moved by operations on integers.

    a.#.b    bit 0: before a    1: before #    2: before b    3: its end, behind which the next pattern begins

A word of a key costs some operations on as many bits as there are places, whatever the patterns are: a
microsecond for ten thousand. The trie costs more for each place that is reached, and nothing for others.
"""

import re
from array import array

# Wildcards: `*` stands for one word, `#` for any number of words.
ONE = "*"
ANY = "#"

# The bits of a word are computed from its places, of which there may be many; those of recent words are
# cached.
_KEPT_MAX = 16
_NOT_EMPTY = re.compile(rb"[^\0]")


class PatternBits:
    """A set of topic patterns."""

    __slots__ = ("_any", "_bases", "_dead", "_ends", "_kept", "_literal", "_one", "_size", "_starts")

    def __init__(self) -> None:
        # The number of bits, and how many of them belong to removed patterns.
        self._size = 0
        self._dead = 0
        self._starts = bytearray()
        self._one = bytearray()
        self._any = bytearray()
        # The places of each word; the first place of each pattern; and the pattern of each last place.
        self._literal: dict[str, array[int]] = {}
        self._bases: dict[str, int] = {}
        self._ends: dict[int, str] = {}
        self._kept: dict[str, int] = {}

    @property
    def is_mostly_dead(self) -> bool:
        """True if most bits belong to removed patterns, so that rebuilding makes it smaller."""
        return self._dead > self._size - self._dead

    def add(self, pattern: str) -> None:
        """Add `pattern`."""
        base = self._size
        at = base
        before = ""
        for word in pattern.split(".") if pattern else ():
            # `##` is equivalent to `#`: merged, so that no place is entered from one that was just entered.
            if word == before == ANY:
                continue
            before = word
            self._grow(at)
            if word == ANY:
                _set(self._any, at)
            elif word == ONE:
                _set(self._one, at)
            else:
                self._literal.setdefault(word, array("Q")).append(at)
            at += 1
        self._grow(at)
        _set(self._starts, base)
        self._bases[pattern] = base
        self._ends[at] = pattern
        self._size = at + 1
        self._kept.clear()

    def remove(self, pattern: str) -> None:
        """Remove `pattern`: no bit enters it any more."""
        base = self._bases.pop(pattern)
        self._starts[base >> 3] &= ~(1 << (base & 7))
        end = base
        while self._ends.get(end) != pattern:
            end += 1
        del self._ends[end]
        self._dead += end + 1 - base
        self._kept.clear()

    def match(self, words: list[str]) -> list[str]:
        """The patterns that match exactly `words`."""
        one, loops = (int.from_bytes(bits, "little") for bits in (self._one, self._any))
        places = int.from_bytes(self._starts, "little")
        places |= (places & loops) << 1
        for word in words:
            led = places & (one | self._bits_of(word))
            places = led << 1 | places & loops
            places |= (places & loops) << 1
            if not places:
                return []
        data = places.to_bytes(len(self._starts) + 1, "little")
        occupied = [match.start() for match in _NOT_EMPTY.finditer(data)]
        reached = (
            place for at in occupied for place in range(at << 3, (at + 1) << 3) if data[at] >> (place & 7) & 1
        )
        return [self._ends[place] for place in reached if place in self._ends]

    def _grow(self, place: int) -> None:
        """Make room for the bit `place`."""
        if place >> 3 >= len(self._starts):
            for bits in (self._starts, self._one, self._any):
                bits.append(0)

    def _bits_of(self, word: str) -> int:
        """The places that are left by `word`."""
        places = self._literal.get(word)
        if places is None:
            return 0
        kept = self._kept.get(word)
        if kept is None:
            bits = bytearray(len(self._starts))
            for place in places:
                _set(bits, place)
            if len(self._kept) >= _KEPT_MAX:
                self._kept.clear()
            kept = self._kept[word] = int.from_bytes(bits, "little")
        return kept


def _set(bits: bytearray, place: int) -> None:
    bits[place >> 3] |= 1 << (place & 7)
