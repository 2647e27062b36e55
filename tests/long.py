"""Which of the tests that take long are run: none, all, or the part that is due.

`python tests/long.py 2/4 a b c` prints which of a, b and c are in that part.
"""

import sys
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def chosen(items: Sequence[Item], which: str) -> list[Item]:
    """`none` or `all` of them, or of `2/4` the second of four parts, which together are all."""
    if which in ("none", "all"):
        return list(items) if which == "all" else []
    part, parts = numbers(which)
    return list(items[part - 1 :: parts])


def numbers(which: str) -> tuple[int, int]:
    """The part and how many there are; a ValueError if it is none of these."""
    part, _, parts = which.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise ValueError(f"{which!r} is neither none nor all nor a part such as 2/4")
    return int(part), int(parts)


def checked(which: str) -> str:
    """The same, if it says something; a ValueError otherwise."""
    chosen([], which)
    return which


if __name__ == "__main__":
    print(*chosen(sys.argv[2:], sys.argv[1]))
