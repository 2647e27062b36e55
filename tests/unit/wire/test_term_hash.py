"""The hash of a field table equals Erlang's, measured as part of bindings' `properties_key` with 3.10.8."""

from base64 import urlsafe_b64decode
from decimal import Decimal

import pytest

from warren.wire.table import (
    Float32,
    Int8,
    Int16,
    Int32,
    Table,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    decode_table,
    encode_table,
)
from warren.wire.term_hash import table_hash

MEASURED: list[tuple[Table, str]] = [
    ({"x-match": "all"}, "3ujGfg"), ({"n": 1}, "hadFaw"), ({"n": 255}, "z7a0EA"), ({"n": 256}, "FCEsPw"),
    ({"n": -1}, "M1Hvuw"), ({"n": 300}, "HMYQag"), ({"n": Int32(5)}, "mk4cxw"), ({"n": Int32(-5)}, "4Do_cw"),
    ({"n": 2**31}, "X1Wuww"), ({"n": -(2**31)}, "Cd3yEg"), ({"n": -(2**31) - 1}, "Bf7brQ"),
    ({"n": 2**40}, "TJjKpw"), ({"n": -(2**40)}, "HW3FZA"), ({"n": 2**62}, "9XBilQ"),
    ({"n": -(2**63)}, "E7TSWA"), ({"n": UInt64(2**63 + 5)}, "5v4gCw"), ({"b": True}, "_sQtSA"),
    ({"b": False}, "QvGL9Q"), ({"v": None}, "wLtq5A"), ({"f": 1.5}, "fF0G0A"),
    ({"f": Float32(0.1)}, "ibhpGw"), ({"t": Timestamp(1700000000)}, "xStV5w"),
    ({"d": Decimal("1.25")}, "-ZhbpA"), ({"d": Decimal("-3")}, "406BeA"), ({"x": b"\x00\xff"}, "PxDlWA"),
    ({"s": "ü"}, "oHDerQ"), ({"s": ""}, "-HWwFg"), ({"long" * 10: "v" * 300}, "bY9jjw"),
    (
        {"b8": Int8(-3), "s": Int16(-300), "ub": UInt8(200), "ui": UInt32(4000000000), "us": UInt16(65000)},
        "JZFUfA",
    ),
    ({"arr": [1, "a", True, None, [2], {"z": 1, "a": 2}]}, "ue0iyw"), ({"arr": []}, "SjulXA"),
    ({"t": {}}, "nUcNOQ"), ({"t": {"b": 1, "a": 2}}, "GER3ag"), ({"aa": 2, "mm": "x", "zz": 1}, "RFJWVg"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "measured"), MEASURED, ids=lambda value: repr(value)[:40])
def test_the_hash_of_a_table_equals_that_of_erlang(table: Table, measured: str) -> None:
    data = encode_table(table)
    kept = decode_table(data, 4, len(data))
    assert table_hash(kept) == int.from_bytes(urlsafe_b64decode(measured + "=="), "big")


def test_the_hash_of_an_empty_table_is_that_of_an_empty_list() -> None:
    assert table_hash({}) == 3468870702
