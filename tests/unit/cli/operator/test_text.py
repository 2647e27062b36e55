"""Values as text for a terminal."""

import pytest

from warren.cli.operator.text import aligned, cell_text, escaped, width


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("größe 队列", "größe 队列"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\tb\nc", "a\\x09b\\x0ac"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eevil", "\\u202eevil"),
        ("\u2028", "\\u2028"),
        ("\udcff", "\\udcff"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_nothing_is_left_that_a_terminal_obeys(text: str, expected: str) -> None:
    assert escaped(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        (True, "true"),
        (0, "0"),
        (1.5, "1.5"),
        ([], ""),
        (["a", "b"], "a,b"),
        ({"x-max-length": 5}, '{"x-max-length":5}'),
        ([{"a": "\x1b"}], '[{"a":"\\u001b"}]'),
    ],
)
def test_a_value_is_one_cell(value: object, expected: str) -> None:
    assert cell_text(value) == expected


def test_columns_stand_below_each_other_however_wide_the_characters_are() -> None:
    lines = aligned([["name", "messages"], ["队列", "1"], ["e\u0301e", "2"]])
    assert lines == ["name  messages", "队列  1", "e\u0301e    2"]
    assert width("队列") == 4
    assert width("e\u0301e") == 2


def test_nothing_has_no_lines() -> None:
    assert aligned([]) == []
