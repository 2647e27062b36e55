"""Fields of stream protocol commands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.wire.streams import fields
from warren.wire.streams.codes import MalformedFrame, OffsetType
from warren.wire.streams.fields import FieldReader, Offset


@pytest.mark.parametrize(("kind", "data"), [(fields.TEXT, b"\xff\xff"), (fields.BYTES, b"\xff" * 4)])
def test_a_null_string_is_decoded_as_empty(kind, data):
    assert not kind.read(FieldReader(data))


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=100))
def test_a_string_is_decoded_as_it_was_encoded(text):
    out = bytearray()
    fields.TEXT.write(out, text)
    assert fields.TEXT.read(FieldReader(bytes(out))) == text


def test_the_offset_of_an_update_may_be_missing_or_have_an_extra_value():
    for data in (b"", b"\0\0", b"\0\0" + bytes(8)):
        reader = FieldReader(data)
        assert fields.OPTIONAL_OFFSET.read(reader) == Offset(OffsetType.NONE)
        assert reader.is_at_end


def test_a_false_count_allocates_nothing():
    for kind in (fields.TEXTS, fields.PAIRS, fields.SEQUENCES, fields.VERSIONS):
        with pytest.raises(MalformedFrame):
            kind.read(FieldReader(b"\xff\xff\xff\xff\0\0\0\0"))


def test_an_unknown_offset_type_is_refused():
    with pytest.raises(MalformedFrame):
        fields.OFFSET.read(FieldReader(b"\0\6"))


@pytest.mark.parametrize(
    ("offset", "data"),
    [
        (Offset(OffsetType.FIRST), b"\0\1"),
        (Offset(OffsetType.OFFSET, 2**64 - 1), b"\0\4" + b"\xff" * 8),
        (Offset(OffsetType.TIMESTAMP, -1), b"\0\5" + b"\xff" * 8),
    ],
)
def test_offsets_have_a_value_if_their_type_requires_one(offset, data):
    out = bytearray()
    fields.OFFSET.write(out, offset)
    assert bytes(out) == data
    assert fields.OFFSET.read(FieldReader(data)) == offset
