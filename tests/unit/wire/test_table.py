"""Field tables keep types and values; any bytes give a table or a `FrameError`, in bounded memory."""

import math
import struct
import tracemalloc
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.errors import AmqpSyntaxError, FrameError
from warren.limits import TABLE_DEPTH_MAX
from warren.wire import table
from warren.wire.table import check_table, decode_some, decode_table, encode_table, type_name

# Type code, encoding of an example, its value, and the type name of RabbitMQ 3.10.8.
EXAMPLES = [
    (b"t", b"\x01", True, "bool"),
    (b"b", b"\xff", table.Int8(-1), "byte"),
    (b"B", b"\xff", table.UInt8(255), "unsignedbyte"),
    (b"s", b"\x80\x00", table.Int16(-32768), "short"),
    (b"u", b"\xff\xff", table.UInt16(65535), "unsignedshort"),
    (b"I", b"\x80\x00\x00\x00", table.Int32(-(2**31)), "signedint"),
    (b"i", b"\xff\xff\xff\xff", table.UInt32(2**32 - 1), "unsignedint"),
    (b"l", b"\x80" + bytes(7), -(2**63), "long"),
    (b"L", b"\xff" * 8, table.UInt64(2**64 - 1), "long"),
    (b"f", b"\x3f\xc0\x00\x00", table.Float32(1.5), "float"),
    (b"d", b"\x3f\xf8" + bytes(6), 1.5, "double"),
    (b"D", b"\x02\x00\x00\x01\x3b", Decimal("3.15"), "decimal"),
    (b"D", b"\x00\xff\xff\xff\xff", Decimal(-1), "decimal"),
    (b"S", b"\x00\x00\x00\x03\xc3\xa9\xff", "é\udcff", "longstr"),
    (b"x", b"\x00\x00\x00\x02\xff\x00", b"\xff\x00", "binary"),
    (b"T", b"\x00\x00\x00\x00\x65\x53\xf1\x00", table.Timestamp(1_700_000_000), "timestamp"),
    (b"V", b"", None, "void"),
    (b"F", b"\x00\x00\x00\x03\x01aV", {"a": None}, "table"),
    (b"A", b"\x00\x00\x00\x03Vt\x00", [None, False], "array"),
]


def integers(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


TEXTS = st.one_of(
    st.text(max_size=10), st.binary(max_size=10).map(lambda data: data.decode("utf-8", "surrogateescape"))
)
DECIMALS = st.builds(
    lambda unscaled, scale: Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale)),
    integers(32, signed=True),
    st.integers(0, 255),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    integers(8, signed=True).map(table.Int8),
    integers(8, signed=False).map(table.UInt8),
    integers(16, signed=True).map(table.Int16),
    integers(16, signed=False).map(table.UInt16),
    integers(32, signed=True).map(table.Int32),
    integers(32, signed=False).map(table.UInt32),
    integers(64, signed=True),
    integers(64, signed=False).map(table.UInt64),
    integers(64, signed=False).map(table.Timestamp),
    st.floats(width=32, allow_nan=False).map(table.Float32),
    st.floats(allow_nan=False),
    DECIMALS,
    TEXTS,
    st.binary(max_size=10),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
TABLES = st.dictionaries(TEXTS, VALUES, max_size=5)


def decoded(data: bytes) -> dict:
    return decode_table(data, 4, len(data))


def types(value: object) -> object:
    """The value with each scalar replaced by its type."""
    if isinstance(value, dict):
        return {key: types(inner) for key, inner in value.items()}
    return [types(inner) for inner in value] if isinstance(value, list) else type(value)


@pytest.mark.parametrize(("kind", "data", "value", "name"), EXAMPLES, ids=lambda example: repr(example))
def test_each_type_is_decoded_and_encoded_as_drawn(
    kind: bytes, data: bytes, value: object, name: str
) -> None:
    entry = b"\x01k" + kind + data
    sized = struct.pack(">I", len(entry)) + entry
    assert decoded(sized) == {"k": value}
    assert type(decoded(sized)["k"]) is type(value)
    assert encode_table({"k": value}) == sized
    assert type_name(value) == name


@given(TABLES)
def test_a_table_is_decoded_with_its_types_as_it_was_encoded(values: dict) -> None:
    data = encode_table(values)
    assert struct.unpack_from(">I", data)[0] == len(data) - 4
    assert decoded(data) == values
    assert types(decoded(data)) == types(values)
    assert encode_table(decoded(data)) == data
    check_table(data, 4, len(data))


def outcome(data: bytes, start: int, end: int) -> object:
    """The result of decoding in a comparable form; nothing but a `FrameError` may be raised."""
    try:
        check_table(data, start, end)
    except FrameError as error:
        with pytest.raises(FrameError):
            decode_table(data, start, end)
        return error.message
    return repr(decode_table(data, start, end))


@given(st.binary(max_size=80))
def test_any_bytes_are_a_table_or_a_frame_error(data: bytes) -> None:
    outcome(data, 0, len(data))


@given(TABLES, st.data())
def test_a_damaged_table_is_a_table_or_a_frame_error(values: dict, data: st.DataObject) -> None:
    raw = bytearray(encode_table(values))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(
            st.sampled_from(b"\x00\x01\x7f\x80\xffSFAxD")
        )
    outcome(bytes(raw), min(4, len(raw)), len(raw))


@given(TABLES, st.binary(max_size=9), st.binary(max_size=9), st.integers(0, 9))
def test_bytes_outside_the_bounds_are_ignored(values: dict, before: bytes, after: bytes, cut: int) -> None:
    inside = encode_table(values)[4:]
    inside = inside[: max(0, len(inside) - cut)]
    whole = before + inside + after
    assert outcome(whole, len(before), len(before) + len(inside)) == outcome(inside, 0, len(inside))


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (2, 1), (0, 4), (4, 4)])
def test_bounds_outside_the_data_are_refused(start: int, end: int) -> None:
    for read in (decode_table, check_table):
        with pytest.raises(FrameError, match="outside its frame"):
            read(b"\x01aV", start, end)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x01", "field table cut short"),
        (b"\x01a", "field table cut short"),
        (b"\xffa", "field table cut short"),
        (b"\x01aI\x00\x00\x00", "field value cut short"),
        (b"\x01aS\x00\x00\x00", "field value cut short"),
        (b"\x01aS\x00\x00\x00\x01", "field value cut short"),
        (b"\x01aA\xff\xff\xff\xff", "field value cut short"),
        (b"\x01az", "unknown field type 122"),
        (b"\x01aA\x00\x00\x00\x01\x00", "unknown field type 0"),
    ],
)
def test_the_error_of_a_malformed_table_is_described(data: bytes, text: str) -> None:
    assert outcome(data, 0, len(data)) == text


def nested(levels: int, kind: bytes) -> bytes:
    """The entries of a table that contains tables, or arrays, `levels` deep including itself."""
    data = b""
    for _ in range(levels - 1):
        data = kind + struct.pack(">I", len(data)) + data
        data = b"\x01k" + data if kind == b"F" else data
    return b"\x01k" + data if kind == b"A" else data


@pytest.mark.parametrize("kind", [b"F", b"A"])
def test_the_depth_is_bounded(kind: bytes) -> None:
    deepest = nested(TABLE_DEPTH_MAX, kind)
    values = decode_table(deepest, 0, len(deepest))
    assert encode_table(values)[4:] == deepest
    for levels in (TABLE_DEPTH_MAX + 1, 10_000):
        deeper = nested(levels, kind)
        assert "nested deeper than 64 levels" in str(outcome(deeper, 0, len(deeper)))
    with pytest.raises(AmqpSyntaxError, match="nested deeper than 64 levels"):
        encode_table({"k": values})


@pytest.mark.parametrize(
    "entries",
    [
        b"\x01aA" + struct.pack(">I", 100_000) + b"V" * 100_000,
        b"\x01aA" + struct.pack(">I", 100_000) + b"b\x01" * 50_000,
        b"\x01aA" + struct.pack(">I", 100_000) + b"F\x00\x00\x00\x00" * 20_000,
        b"\x01aA" + struct.pack(">I", 100_000) + b"S\x00\x00\x00\x00" * 20_000,
        b"\x00V" * 50_000,
        b"".join(b"\x03" + bytes((a, b, c)) + b"V" for a in range(28) for b in range(28) for c in range(26)),
    ],
    ids=["voids", "octets", "tables", "strings", "equal keys", "short keys"],
)
def test_memory_is_proportional_to_the_data(entries: bytes) -> None:
    tracemalloc.start()
    try:
        decode_table(entries, 0, len(entries))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        check_table(entries, 0, len(entries))
        kept = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(entries)
    assert kept < 10_000


def test_the_first_of_equal_keys_counts() -> None:
    data = b"\x01at\x01\x01aV"
    assert decode_table(data, 0, len(data)) == {"a": True}


@given(TABLES, st.data())
def test_selected_entries_equal_those_of_the_whole_table(values: dict, data: st.DataObject) -> None:
    wanted = data.draw(st.sets(st.sampled_from(["none", *values])))
    raw = encode_table(values)
    some = decode_some(raw, 4, len(raw), dict.fromkeys(wanted, 1))
    whole = decoded(raw)
    assert repr(some) == repr({key: value for key, value in whole.items() if key in wanted})


def test_bounds_outside_the_data_are_refused_for_selected_entries() -> None:
    with pytest.raises(FrameError, match="outside its frame"):
        decode_some(b"\x01aV", 0, 4, {})


def test_of_selected_entries_the_first_of_equal_keys_counts() -> None:
    data = b"\1aB\1" + b"\1aB\2" + b"\1bB\3"
    assert decode_some(data, 0, len(data), {"a": 1}) == {"a": 1}


def test_an_entry_that_does_not_count_must_still_be_valid() -> None:
    data = b"\x01aV\x01aA\x00\x00\x00\x01z"
    assert outcome(data, 0, len(data)) == "unknown field type 122"


def test_any_byte_except_zero_is_true() -> None:
    assert decode_table(b"\x01at\x07", 0, 4) == {"a": True}


def test_nan_values_keep_their_bytes() -> None:
    data = b"\x01ad" + struct.pack(">d", math.nan) + b"\x01bd" + struct.pack(">d", -math.inf)
    assert encode_table(decode_table(data, 0, len(data)))[4:] == data


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        table.Int8(128),
        table.UInt8(-1),
        table.Timestamp(-1),
        table.Float32(1e39),
        Decimal("1E-256"),
        Decimal("NaN"),
        Decimal(2**31),
        Decimal("1E+30"),
        "\ud800",
        ...,
        {"x" * 256: 1},
        {"\ud800": 1},
    ],
    ids=repr,
)
def test_a_value_that_cannot_be_encoded_is_refused(value: object) -> None:
    with pytest.raises(AmqpSyntaxError):
        encode_table({"k": value})


def test_a_decimal_with_a_positive_exponent_is_written_out() -> None:
    assert decoded(encode_table({"k": Decimal("1E+3")})) == {"k": Decimal(1000)}


def test_tuples_and_subclasses_are_encoded_as_their_base_types() -> None:
    class Name(str):
        __slots__ = ()

    assert decoded(encode_table({"k": (Name("a"), 1)})) == {"k": ["a", 1]}
