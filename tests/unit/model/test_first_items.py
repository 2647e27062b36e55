"""Removing the first items of a list."""

import pytest

from warren.model.first_items import drop_first


@pytest.mark.parametrize(("count", "left"), [(0, [1, 2, 3]), (2, [3]), (3, [])])
def test_the_first_items_are_removed(count: int, left: list[int]) -> None:
    items = [1, 2, 3]
    drop_first(items, count)
    assert items == left
