"""What is done to lists once for each message, where a slice would cost more than the rest."""

from typing import Any


def drop_first(items: list[Any], count: int) -> None:
    """Remove the first `count` of `items`, often all of them."""
    if count == len(items):
        items.clear()
    elif count:
        del items[:count]
