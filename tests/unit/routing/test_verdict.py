"""Formatting of values and texts in the reasons of a route trace."""

import pytest

from warren.routing.verdict import likeness, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("orders", "'orders'"),
        (b"or\xffders", "'or\ufffdders'"),
        (True, "true"),
        (12, "12"),
        (None, "nothing"),
        ({"a": 1, "b": 2}, "a table of 2"),
        ([1], "an array of 1"),
        ("x" * 200, "'" + "x" * 80 + "…'"),
    ],
)
def test_a_value_is_shown_readably(value: object, text: str) -> None:
    assert shown(value) == text


def test_texts_are_similar_by_their_common_prefix_and_suffix() -> None:
    keys = ["order.created.eu", "order.created.us", "order.shipped.us", "invoice"]
    assert sorted(keys, key=lambda key: likeness(key, "order.created.de"), reverse=True) == keys
    assert likeness("", "order") == 0
    assert likeness("aaaa", "aaa") < 1
