"""Selects the tests that take long: none, all, or a part of them.

`python tests/long.py 2/4 a b c` prints which of a, b and c are in that part.
"""

import sys
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def chosen(items: Sequence[Item], which: str) -> list[Item]:
    """Return no items for `none`, all for `all`, and for `2/4` the second of four parts."""
    if which in ("none", "all"):
        return list(items) if which == "all" else []
    part, parts = numbers(which)
    return list(items[part - 1 :: parts])


def numbers(which: str) -> tuple[int, int]:
    """Return the part and the number of parts. Raises ValueError if `which` is not a part."""
    part, _, parts = which.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise ValueError(f"{which!r} is neither none nor all nor a part such as 2/4")
    return int(part), int(parts)


def checked(which: str) -> str:
    """Return `which` if it is a valid selection. Raises ValueError otherwise."""
    chosen([], which)
    return which


if __name__ == "__main__":
    print(*chosen(sys.argv[2:], sys.argv[1]))
