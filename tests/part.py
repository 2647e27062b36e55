"""Which tests are run: those of the gate, the long ones, a part of the long ones such as 2/8, or all."""

import sys
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")


class Part(NamedTuple):
    """The tests of the gate or not, and of the long ones part `number` of `of`; none, if `of` is 0."""

    has_gate: bool
    number: int = 0
    of: int = 0

    def __str__(self) -> str:
        """Return the word that `parsed` understands."""
        return next((word for word, part in WORDS.items() if part == self), f"{self.number}/{self.of}")

    @property
    def has_long(self) -> bool:
        """True if it has long tests, at least some."""
        return self.of > 0

    def takes(self, position: int) -> bool:
        """True if the long item at this position belongs to it."""
        return self.of > 0 and position % self.of == self.number - 1

    def chosen(self, items: Sequence[Item]) -> list[Item]:
        """Return those of the long `items` that belong to it."""
        return [item for position, item in enumerate(items) if self.takes(position)]


GATE, LONG, ALL = Part(has_gate=True), Part(False, 1, 1), Part(True, 1, 1)
WORDS = {"gate": GATE, "long": LONG, "all": ALL}


def parsed(word: str) -> Part:
    """Return the part that `word` names. Raises ValueError if it names none."""
    if word in WORDS:
        return WORDS[word]
    number, _, of = word.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise ValueError(f"{word!r} is neither gate nor long nor all nor a part of long such as 2/8")
    return Part(False, int(number), int(of))


if __name__ == "__main__":
    # Which of the words that follow belong to the part: for make.
    print(*parsed(sys.argv[1]).chosen(sys.argv[2:]))
