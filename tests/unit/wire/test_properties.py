"""Basic properties are decoded as they were encoded; a scan agrees with a decode and refuses what it
refuses.
"""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.errors import AmqpError, FrameError
from warren.wire.properties import BasicProperties, PropertyScan, text_at
from warren.wire.table import decode_table

NAMES = [
    "content_type",
    "content_encoding",
    "headers",
    "delivery_mode",
    "priority",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "timestamp",
    "type",
    "user_id",
    "app_id",
    "cluster_id",
]
# A lone surrogate stands for a byte that is not UTF-8.
TEXTS = st.one_of(
    st.text(max_size=20), st.binary(max_size=20).map(lambda data: data.decode("utf-8", "surrogateescape"))
)
BYTES = st.integers(0, 255)
VALUES = {
    "headers": st.dictionaries(st.text(max_size=8), st.integers(-(2**63), 2**63 - 1), max_size=3),
    "delivery_mode": BYTES,
    "priority": BYTES,
    "timestamp": st.integers(0, 2**64 - 1),
}
PROPERTIES = st.fixed_dictionaries({}, optional={name: VALUES.get(name, TEXTS) for name in NAMES})


def header(flags: int, properties: bytes) -> bytes:
    return struct.pack(">HHQH", 60, 0, 0, flags) + properties


def scanned(data: bytes) -> PropertyScan:
    """What a scan of the payload of a content header finds."""
    scan = PropertyScan()
    scan.scan(data, 12, len(data))
    return scan


@given(PROPERTIES, st.integers(0, 2**64 - 1))
def test_properties_are_decoded_as_they_were_encoded(values: dict, body_size: int) -> None:
    data = BasicProperties(**values).encode(body_size)
    assert struct.unpack_from(">HHQ", data) == (60, 0, body_size)
    assert BasicProperties.decode(data) == BasicProperties(**values)
    assert BasicProperties.decode(data).encode(body_size) == data
    assert BasicProperties(**values).encode_list() == data[12:]
    assert BasicProperties.decode_list(data[12:]) == BasicProperties(**values)


@given(PROPERTIES)
def test_a_scan_finds_what_a_decode_finds(values: dict) -> None:
    data = BasicProperties(**values).encode(1)
    scan = scanned(data)
    assert scan.delivery_mode == values.get("delivery_mode", -1)
    assert scan.priority == values.get("priority", -1)
    for name in ("reply_to", "expiration", "user_id"):
        place = getattr(scan, f"{name}_at")
        assert (text_at(data, place) if place else None) == values.get(name)
    headers = decode_table(data, scan.headers_at, scan.headers_end) if scan.headers_at else None
    assert headers == values.get("headers")


@given(st.integers(0, 0xFFFF), st.binary(max_size=64))
def test_any_bytes_are_properties_or_a_frame_error(flags: int, properties: bytes) -> None:
    try:
        scanned(header(flags, properties))
    except FrameError:
        with pytest.raises(FrameError):
            BasicProperties.decode(header(flags, properties))
    else:
        BasicProperties.decode(header(flags, properties))


@given(PROPERTIES, st.integers(0, 200))
def test_a_truncated_header_is_refused(values: dict, kept: int) -> None:
    data = BasicProperties(**values).encode(1)
    if kept < len(data):
        with pytest.raises(FrameError):
            scanned(data[:kept])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "content header cut short"),
        (header(0x8000, b"")[:-1], "content header cut short"),
        (header(0x8000, b""), "content header cut short"),
        (header(0x8000, b"\x02a"), "content header cut short"),
        (header(0x8000, b"\x01ab"), "content header too long"),
        (header(0x1000, b""), "content header cut short"),
        (header(0x0040, b"\0\0\0\0\0\0\0"), "content header cut short"),
        (header(0x0001, b"\0\0"), "content header with more flags than there are properties"),
        (header(0x2000, b"\0\0\0"), "content header cut short"),
        (header(0x2000, b"\xff\xff\xff\xff"), "content header cut short"),
        (header(0x2000, b"\0\0\0\x03\x01az"), "unknown field type 122"),
        (header(0x2000, b"\0\0\0\x02\x05a"), "field table cut short"),
    ],
)
def test_the_error_of_a_malformed_header_is_described(data: bytes, text: str) -> None:
    with pytest.raises(FrameError, match=text):
        scanned(data)
    with pytest.raises(FrameError, match=text):
        BasicProperties.decode(data)


def test_a_scan_does_not_depend_on_the_previous_message() -> None:
    scan = PropertyScan()
    values = {"delivery_mode": 2, "priority": 9, "headers": {}, "reply_to": "r", "user_id": "u"}
    for data in (BasicProperties(**values).encode_list(), BasicProperties().encode_list()):
        scan.scan(data, 0, len(data))
    assert (scan.delivery_mode, scan.priority) == (-1, -1)
    assert (scan.headers_at, scan.headers_end, scan.reply_to_at, scan.user_id_at) == (0, 0, 0, 0)


@pytest.mark.parametrize("values", [{"priority": 256}, {"timestamp": -1}, {"type": "x" * 256}])
def test_a_property_too_large_to_encode_is_refused(values: dict) -> None:
    with pytest.raises(AmqpError):
        BasicProperties(**values).encode(0)
