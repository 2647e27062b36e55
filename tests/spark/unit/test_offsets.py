"""Offsets are decoded as they were encoded, and foreign ones are refused."""

from typing import Any

import pytest

from pyspark_warren.offsets import StreamOffset, decode, encode


def test_offsets_are_decoded_as_they_were_encoded() -> None:
    places = {"//orders": StreamOffset("e1", 250_000), "other/q": StreamOffset("", 0)}
    assert encode(places) == {
        "v": 1,
        "s": {"//orders": {"epoch": "e1", "next": 250_000}, "other/q": {"epoch": "", "next": 0}},
    }
    assert decode(encode(places)) == places


@pytest.mark.parametrize(
    ("offset", "reported"),
    [
        ({"v": 2, "s": {}}, "format version 2"),
        ({"v": 1, "lease": "x", "n": 5}, "of another read mode"),
        ({"v": 1, "s": {"//q": 5}}, "must have the form"),
        ({"v": 1, "s": {"//q": {"next": -1}}}, "must have the form"),
        ({"v": 1, "s": {"//q": {"epoch": ""}}}, "must have the form"),
    ],
)
def test_an_invalid_offset_is_refused(offset: dict[str, Any], reported: str) -> None:
    with pytest.raises(ValueError, match=reported):
        decode(offset)
