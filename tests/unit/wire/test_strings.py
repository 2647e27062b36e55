"""Strings are decoded without loss, and bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.errors import AmqpSyntaxError
from warren.wire.strings import decode_text, encode_long_string, encode_short_string, encode_text


@given(st.binary(max_size=40))
def test_any_bytes_are_decoded_without_loss(data: bytes) -> None:
    assert encode_text(decode_text(data)) == data


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_text_is_decoded_as_it_was_encoded(text: str) -> None:
    assert decode_text(encode_text(text)) == text


def test_sizes_count_bytes_not_characters() -> None:
    assert encode_short_string("é") == b"\x02\xc3\xa9"
    assert encode_long_string("é") == b"\x00\x00\x00\x02\xc3\xa9"
    with pytest.raises(AmqpSyntaxError, match="256 bytes is longer than 255"):
        encode_short_string("é" * 128)


def test_half_a_surrogate_pair_cannot_be_encoded() -> None:
    with pytest.raises(AmqpSyntaxError, match="cannot be encoded"):
        encode_text("\ud800")
