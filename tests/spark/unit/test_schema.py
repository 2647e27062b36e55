"""The columns of a message, and which of them can be read and written."""

import pytest

from pyspark_warren.schema import COLUMNS, arrow_schema, check_read, check_written, ddl


def test_columns_have_one_order_for_spark_and_for_arrow() -> None:
    assert arrow_schema(COLUMNS).names == list(COLUMNS)
    assert ddl(["offset", "headers"]) == "`offset` bigint, `headers` map<string,string>"


def test_a_schema_may_have_some_columns_in_any_order() -> None:
    assert check_read([("body", "binary"), ("offset", "bigint")]) == ("body", "offset")
    with pytest.raises(ValueError, match="unknown column 'size'; columns are queue, offset"):
        check_read([("size", "int")])
    with pytest.raises(ValueError, match="'offset' has the type bigint, not int"):
        check_read([("offset", "int")])


def test_rows_that_were_read_can_be_written() -> None:
    check_written(list(COLUMNS.items()))
    check_written([("body", "string"), ("priority", "bigint")])


@pytest.mark.parametrize(
    ("fields", "reported"),
    [
        ([("value", "string")], "must have a column 'body'"),
        ([("body", "binary"), ("key", "string")], "the column 'key' cannot be written"),
        ([("body", "int")], "'body' must have the type binary or string, not int"),
        ([("body", "binary"), ("headers", "string")], "must have the type map<string,string>"),
    ],
)
def test_a_column_that_cannot_be_sent_is_named(fields: list[tuple[str, str]], reported: str) -> None:
    with pytest.raises(ValueError, match=reported):
        check_written(fields)
