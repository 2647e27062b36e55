"""Formatting of values for a terminal."""

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
def test_terminal_control_sequences_are_removed(text: str, expected: str) -> None:
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
def test_a_value_takes_one_cell(value: object, expected: str) -> None:
    assert cell_text(value) == expected


def test_columns_are_aligned_for_wide_characters() -> None:
    lines = aligned([["name", "messages"], ["队列", "1"], ["e\u0301e", "2"]])
    assert lines == ["name  messages", "队列  1", "e\u0301e    2"]
    assert width("队列") == 4
    assert width("e\u0301e") == 2


def test_an_empty_table_has_no_lines() -> None:
    assert aligned([]) == []
