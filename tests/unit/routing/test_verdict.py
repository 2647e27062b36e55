"""Values and texts as they stand in reasons."""

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
def test_a_value_is_shown_as_one_reads_it(value: object, text: str) -> None:
    assert shown(value) == text


def test_texts_are_the_more_alike_the_more_of_both_ends_is_equal() -> None:
    keys = ["order.created.eu", "order.created.us", "order.shipped.us", "invoice"]
    assert sorted(keys, key=lambda key: likeness(key, "order.created.de"), reverse=True) == keys
    assert likeness("", "order") == 0
    assert likeness("aaaa", "aaa") < 1
