"""Entries in front of the others."""

from warren.federation.header_entries import prepended
from warren.wire.table import Table

ENTRY: Table = {"uri": "amqp://h"}


def test_the_entry_is_the_first_and_other_headers_stay() -> None:
    assert prepended({"n": 1}, "x", ENTRY) == {"n": 1, "x": [ENTRY]}
    assert prepended({"x": ["old"]}, "x", ENTRY) == {"x": [ENTRY, "old"]}


def test_the_headers_of_the_message_are_not_changed() -> None:
    headers: Table = {"x": ["old"]}
    prepended(headers, "x", ENTRY)
    assert headers == {"x": ["old"]}


def test_a_value_that_is_no_array_is_kept_among_the_invalid_headers() -> None:
    assert prepended({"x": 5}, "x", ENTRY) == {"x": [ENTRY], "x-invalid-headers": {"x": [5]}}
    headers: Table = {"x": 6, "x-invalid-headers": {"x": [5], "y": [1]}}
    assert prepended(headers, "x", ENTRY)["x-invalid-headers"] == {"x": [6, 5], "y": [1]}
    headers = {"x": 6, "x-invalid-headers": "text"}
    assert prepended(headers, "x", ENTRY)["x-invalid-headers"] == {
        "x-invalid-headers": ["text"],
        "x": [6],
    }
