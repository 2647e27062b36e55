"""Serialisation of replies as JSON."""

import json

from warren.management.replies import encoded
from warren.wire.table import Float32, Int8, Timestamp, UInt64


def test_numeric_field_values_become_json_numbers() -> None:
    value = {"a": [Timestamp(5), Int8(-1), UInt64(2**64 - 1)], "f": Float32(0.5), "t": True}
    assert json.loads(encoded(value)) == {"a": [5, -1, 2**64 - 1], "f": 0.5, "t": True}


def test_invalid_utf_8_does_not_prevent_an_answer() -> None:
    name = b"a\xffb".decode("utf-8", "surrogateescape")
    assert json.loads(encoded({"name": name, name: [name]})) == {"name": "a\ufffdb", "a\ufffdb": ["a\ufffdb"]}
