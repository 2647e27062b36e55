"""The columns that somebody asks for."""

import pytest

from warren.arrow.columns import COLUMN_NAMES, parse_columns


def test_all_are_asked_for_where_nothing_is_said() -> None:
    assert parse_columns(None) == COLUMN_NAMES


def test_they_come_in_the_order_of_the_rows_and_once() -> None:
    assert parse_columns("body,offset,body") == ("offset", "body")


@pytest.mark.parametrize("text", ["", "body,", "Body", "nothing"])
def test_what_is_no_column_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="there is no column"):
        parse_columns(text)
