"""Columns of message shapes: the C implementation against the decoder in Python."""

import contextlib
import json
import os

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.arrow.shapes import IS_COMPILED, TYPES, columns_of, from_properties
from warren.errors import FrameError
from warren.wire.properties import BasicProperties
from warren.wire.table import Float32, Int8, Int16, Int32, Timestamp, UInt8, UInt16, UInt32, UInt64, Value

compiled = pytest.mark.skipif(not IS_COMPILED, reason="the decoder is not compiled here")

TEXTS = st.text(max_size=12) | st.sampled_from(
    ["ä", "\x00\x1f\x7f", '"\\\n\r\t\b\f/', "\udcff", "\udce4\udcb8", "𝄞"]
)
NUMBERS = st.one_of(
    st.integers(-(2**7), 2**7 - 1).map(Int8),
    st.integers(0, 2**8 - 1).map(UInt8),
    st.integers(-(2**15), 2**15 - 1).map(Int16),
    st.integers(0, 2**16 - 1).map(UInt16),
    st.integers(-(2**31), 2**31 - 1).map(Int32),
    st.integers(0, 2**32 - 1).map(UInt32),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1).map(UInt64),
    st.integers(0, 2**64 - 1).map(Timestamp),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    TEXTS,
    st.floats(),
    st.floats(allow_nan=False, width=32).map(Float32),
    st.binary(max_size=8),
    st.decimals(-1000, 1000, places=2),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=4,
)
HEADERS = st.dictionaries(TEXTS, SCALARS | VALUES, max_size=3)
BYTES = st.integers(0, 255)
TEXT_NAMES = (
    "content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id", "type",
    "user_id", "app_id", "cluster_id",
)  # fmt: skip
PROPERTIES = st.builds(
    lambda texts, others: BasicProperties(**texts, **others),
    st.dictionaries(st.sampled_from(TEXT_NAMES), TEXTS, max_size=3),
    st.fixed_dictionaries(
        {},
        optional={
            "headers": HEADERS,
            "delivery_mode": BYTES,
            "priority": BYTES,
            "timestamp": st.integers(0, 2**64 - 1),
        },
    ),
)
NAMES = tuple(TYPES)
SHORT = st.binary(max_size=12).map(lambda data: bytes([len(data)]) + data)
ADDRESSES = st.tuples(SHORT, SHORT).map(b"".join)
ADDRESS = b"\x01x\x02k1"


def lists(table: dict[bytes, tuple[bytes, bytes]]) -> bytes:
    """A property list with only headers; each is a type and its bytes."""
    entries = b"".join(bytes([len(key)]) + key + kind + value for key, (kind, value) in table.items())
    return b"\x20\0" + len(entries).to_bytes(4, "big") + entries


def same(shapes: list[tuple[bytes, bytes]], names: tuple[str, ...] = NAMES) -> dict[str, pa.Array]:
    """The columns of one implementation, after a check that the other's are equal."""
    found, expected = columns_of(shapes, names), from_properties(shapes, names)
    for column in found.values():
        column.validate(full=True)
    assert found.keys() == expected.keys()
    for name, column in found.items():
        assert column.equals(expected[name]), f"{name}: {column} is not {expected[name]}"
    return found


def test_a_compiled_build_contains_the_c_implementation() -> None:
    # The build succeeds even if the C compiler fails on this module alone.
    assert IS_COMPILED or os.environ.get("WARREN_COMPILED") != "1"


@compiled
@given(st.lists(st.tuples(ADDRESSES, PROPERTIES), min_size=1, max_size=4), st.sets(st.sampled_from(NAMES)))
def test_the_c_implementation_yields_the_decoded_properties(
    messages: list[tuple[bytes, BasicProperties]], wanted: set[str]
) -> None:
    same([(address, properties.encode_list()) for address, properties in messages], tuple(sorted(wanted)))


@compiled
def test_strings_that_are_not_utf_8_have_replacement_characters() -> None:
    text = {b"k\xff": (b"S", b"\0\0\0\x03a\xe4b"), b"\xe4": (b"V", b"")}
    same([(b"\x02\xffe\x03k\xc3k", b"\x80\0\x03t\xffx"), (ADDRESS, lists(text))])


@compiled
def test_of_duplicate_headers_the_first_counts() -> None:
    number = b"k" + b"I" + (5).to_bytes(4, "big")
    entries = b"\x01" + number + b"\x01kt\x01" + b"\x02kkV"
    data = b"\x20\0" + len(entries).to_bytes(4, "big") + entries
    found = same([(ADDRESS, data)])
    assert json.loads(found["headers_json"][0].as_py()) == {"k": {"$I": 5}, "kk": None}


@compiled
def test_any_number_of_headers_is_decoded() -> None:
    for count in (0, 1, 31, 32, 33, 200):
        headers: dict[str, Value] = {f"header-{number}": Int32(number) for number in range(count)}
        same([(ADDRESS, BasicProperties(headers=headers).encode_list())] * 2)


@compiled
def test_many_messages_of_all_kinds_become_columns() -> None:
    kinds = [
        BasicProperties(),
        BasicProperties(headers={}),
        BasicProperties(headers={"x-death": [{"count": 3, "reason": "expired"}], "retries": 2}),
        BasicProperties(headers={"text": "a" * 3_000, "void": None}, message_id="m" * 255, timestamp=0),
    ]
    shapes = [(ADDRESS, kinds[number % 4].encode_list()) for number in range(2_000)]
    assert len(same(shapes)["headers"]) == 2_000


@given(PROPERTIES)
def test_truncated_properties_are_a_frame_error(properties: BasicProperties) -> None:
    data = properties.encode_list()
    for size in range(len(data)):
        with pytest.raises(FrameError):
            columns_of([(ADDRESS, data)] * 2 + [(ADDRESS, data[:size])], NAMES)


@compiled
@given(st.binary(max_size=40))
def test_arbitrary_bytes_are_refused_or_decoded(data: bytes) -> None:
    for shape in (
        (ADDRESS, data),
        (data, b"\0\0"),
        (ADDRESS, b"\x20\0" + len(data).to_bytes(4, "big") + data),
    ):
        with contextlib.suppress(FrameError):
            columns_of([shape], NAMES)
