"""Values and sections of AMQP 1.0."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.limits import TABLE_DEPTH_MAX
from warren.wire import amqp1
from warren.wire.amqp1 import Amqp1Error

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=300)
SIMPLE = st.one_of(
    st.just(amqp1.NULL),
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("ubyte"), st.integers(0, 2**8 - 1)),
    st.tuples(st.just("byte"), st.integers(-(2**7), 2**7 - 1)),
    st.tuples(st.just("ushort"), st.integers(0, 2**16 - 1)),
    st.tuples(st.just("short"), st.integers(-(2**15), 2**15 - 1)),
    st.tuples(st.just("uint"), st.integers(0, 2**32 - 1)),
    st.tuples(st.just("int"), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just("ulong"), st.integers(0, 2**64 - 1)),
    st.tuples(st.sampled_from(["long", "timestamp"]), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("float"), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just("double"), st.floats(allow_nan=False)),
    st.tuples(st.just("uuid"), st.binary(min_size=16, max_size=16)),
    st.tuples(st.just("binary"), st.binary(max_size=300)),
    st.tuples(st.sampled_from(["utf8", "symbol"]), TEXT),
)
VALUES = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.tuples(st.just("list"), st.lists(inner, max_size=5).map(tuple)),
        st.tuples(st.just("map"), st.lists(st.tuples(inner, inner), max_size=5).map(tuple)),
    ),
    max_leaves=20,
)


@given(VALUES)
def test_a_value_is_decoded_as_it_was_encoded(value):
    data = amqp1.encode(value)
    assert amqp1.decode(data, 0, len(data)) == (value, len(data))


@given(st.binary(max_size=100))
def test_any_bytes_are_sections_or_an_error(data):
    try:
        found = amqp1.sections(data)
        for section in found:
            amqp1.decode(data, section.value_at, section.end)
    except Amqp1Error:
        return
    assert [found[0].begin, found[-1].end] == [0, len(data)]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\x43", ("uint", 0)),
        (b"\x52\x07", ("uint", 7)),
        (b"\x44", ("ulong", 0)),
        (b"\x54\xff", ("int", -1)),
        (b"\x55\x80", ("long", -128)),
        (b"\x45", ("list", ())),
        (b"\x41", ("boolean", True)),
        (b"\xa1\x02hi", ("utf8", "hi")),
    ],
)
def test_short_encodings_are_written_and_read(data, value):
    assert amqp1.encode(value) == data
    assert amqp1.decode(data, 0, len(data)) == (value, len(data))


@pytest.mark.parametrize(
    "data",
    [b"\x74abcd", b"\x73\0\0\0A", b"\xe0\x03\x01\x50\x07", b"\x00\x53\x01\xa1\x01x"],
    ids=["decimal", "character", "array", "described"],
)
def test_a_value_without_a_simple_type_is_kept_encoded(data):
    value, end = amqp1.decode(data, 0, len(data))
    assert (value, end) == ((amqp1.OPAQUE, data), len(data))
    assert amqp1.encode(value) == data


def test_nesting_is_bounded():
    data = b"\x45"
    for _ in range(TABLE_DEPTH_MAX + 2):
        data = bytes((0xD0,)) + (len(data) + 4).to_bytes(4, "big") + b"\0\0\0\1" + data
    with pytest.raises(Amqp1Error, match="nested"):
        amqp1.decode(data, 0, len(data))
    described = b"\x00" * 10_000 + b"\x40"
    with pytest.raises(Amqp1Error, match="nested"):
        amqp1.decode(described, 0, len(described))


def test_a_list_with_a_wrong_count_is_refused():
    with pytest.raises(Amqp1Error):
        amqp1.decode(b"\xd0\0\0\0\5\xff\xff\xff\xff\x40", 0, 10)
    with pytest.raises(Amqp1Error, match="number of items does not match"):
        amqp1.decode(b"\xc0\x03\x01\x40\x40", 0, 5)


@pytest.mark.parametrize(
    "codes",
    [[0x75, 0x74], [0x77, 0x77], [0x73, 0x73], [0x75, 0x77], [0x79], []],
    ids=["behind the body", "two values", "twice", "two kinds", "unknown", "none"],
)
def test_sections_must_be_in_order(codes):
    with pytest.raises(Amqp1Error):
        amqp1.sections(b"".join(amqp1.encode_section(code, ("binary", b"x")) for code in codes))


def test_a_body_may_be_several_data_sections():
    data = amqp1.encode_section(amqp1.DATA, ("binary", b"x")) * 2
    assert [section.code for section in amqp1.sections(data)] == [amqp1.DATA, amqp1.DATA]


@pytest.mark.parametrize("size", [0, 255, 256, 70_000])
def test_the_header_of_a_data_section_contains_its_size(size):
    data = amqp1.data_head(size) + bytes(size)
    [section] = amqp1.sections(data)
    begin, end = amqp1.data_of(data, section)
    assert end - begin == size
