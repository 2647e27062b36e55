"""The nesting depth of JSON text."""

import pytest

from warren.model.nesting import is_deeper


@pytest.mark.parametrize(
    ("value", "levels"),
    [(5, 0), ("[[[", 0), ([], 1), ({}, 1), ([1, "a", None], 1), ([[]], 2), ({"a": [1], "b": {"c": {}}}, 3)],
)
def test_the_depth_counts_nested_lists_and_objects(value: object, levels: int) -> None:
    assert not is_deeper(value, levels)
    assert levels == 0 or is_deeper(value, levels - 1)
