"""Selection of columns in a request for rows."""

import pytest

from warren.arrow.columns import COLUMN_NAMES, parse_columns


def test_without_a_selection_all_columns_are_returned() -> None:
    assert parse_columns(None) == COLUMN_NAMES


def test_selected_columns_are_in_the_order_of_the_schema_and_unique() -> None:
    assert parse_columns("body,offset,body") == ("offset", "body")


@pytest.mark.parametrize("text", ["", "body,", "Body", "nothing"])
def test_an_unknown_column_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="there is no column"):
        parse_columns(text)
