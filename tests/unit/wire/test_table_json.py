"""Headers as JSON that keeps their types, and as readable strings."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.errors import AmqpSyntaxError
from warren.wire.table import (
    Float32,
    Int8,
    Int16,
    Int32,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Value,
    decode_table,
    encode_table,
)
from warren.wire.table_json import header_text, table_from_json, table_to_json

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 255).map(UInt8),
    st.integers(-128, 127).map(Int8),
    st.integers(0, 2**32 - 1).map(UInt32),
    st.integers(0, 2**63).map(Timestamp),
    st.floats(allow_nan=False),
    st.floats(allow_nan=False, width=32).map(Float32),
    st.binary(max_size=8),
    st.text(max_size=8, alphabet=st.characters(exclude_categories=["Cs"])),
    st.decimals(-1000, 1000, places=2),
)
KEYS = st.text(max_size=8, alphabet=st.characters(exclude_categories=["Cs"], max_codepoint=0x7FF))
TABLES = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_size=4,
)


@given(TABLES)
def test_a_table_converted_to_json_and_back_has_equal_bytes(table: dict[str, Value]) -> None:
    data = encode_table(table)
    assert encode_table(table_from_json(table_to_json(decode_table(data, 4, len(data))))) == data


def test_json_types_need_no_type_mark() -> None:
    table = {"s": "ä", "t": True, "V": None, "l": 5, "d": 0.5, "A": [1, {"x": 2}]}
    assert json.loads(table_to_json(table)) == table


def test_every_other_type_is_marked() -> None:
    table = {
        "b": Int8(1), "B": UInt8(1), "s": Int16(1), "u": UInt16(1), "I": Int32(1), "i": UInt32(1),
        "L": UInt64(1), "T": Timestamp(1), "f": Float32(1.5), "D": Decimal("1.50"), "x": b"\xff",
        "d": float("inf"), "S": "\udcff",
    }  # fmt: skip
    read = json.loads(table_to_json(table))
    assert {key: next(iter(value)) for key, value in read.items()} == {key: f"${key}" for key in table}
    assert read["D"] == {"$D": "1.50"}
    assert read["S"] == {"$S": "/w=="}
    again = table_from_json(table_to_json(table))
    assert again == table
    assert [type(value) for value in again.values()] == [type(value) for value in table.values()]


def test_a_table_whose_only_key_resembles_a_mark_is_not_taken_for_one() -> None:
    table = {"outer": {"$I": "text"}}
    assert table_to_json(table) == '{"outer":{"$F":{"$I":"text"}}}'
    assert table_from_json(table_to_json(table)) == table


@pytest.mark.parametrize("text", ["", "[]", "5", '{"a":{"$Q":1}}', '{"a":{"$x":"?"}}', '{"a":{"$F":1}}'])
def test_json_that_is_not_a_table_is_refused(text: str) -> None:
    with pytest.raises(AmqpSyntaxError):
        table_from_json(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None), (True, "true"), (Int32(5), "5"), (Timestamp(7), "7"),
        ("a\udcff", "a\N{REPLACEMENT CHARACTER}"),
        ("line\n", "line\n"), (b"abc", "abc"), (b"\xff", "/w=="), (1.5, "1.5"), (Decimal("1.50"), "1.50"),
        ([1, "a"], '[1,"a"]'), ({"a": Int32(1)}, '{"a":{"$I":1}}'),
    ],
)  # fmt: skip
def test_a_header_is_shown_readably(value: Value, text: str | None) -> None:
    assert header_text(value) == text
