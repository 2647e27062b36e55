"""Reduces a list of actions that breaks a promise to a short one that breaks it as well (delta debugging)."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def shrink(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool], tries_max: int) -> list[Item]:
    """Return a part of `items`, in order, for which `fails` is true, after at most `tries_max` calls."""
    left = list(items)
    size = max(1, len(left) // 2)
    tries = 0
    while True:
        at = 0
        is_smaller = False
        while at < len(left) and tries < tries_max:
            without = left[:at] + left[at + size :]
            tries += 1
            if fails(without):
                left = without
                is_smaller = True
            else:
                at += size
        if tries >= tries_max or (size == 1 and not is_smaller):
            return left
        size = max(1, size // 2)
