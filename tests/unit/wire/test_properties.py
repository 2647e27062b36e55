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
    st.text(max_size=20), st.binary(max_size=20).map(lambda octets: octets.decode("utf-8", "surrogateescape"))
)
OCTETS = st.integers(0, 255)
VALUES = {
    "headers": st.dictionaries(st.text(max_size=8), st.integers(-(2**63), 2**63 - 1), max_size=3),
    "delivery_mode": OCTETS,
    "priority": OCTETS,
    "timestamp": st.integers(0, 2**64 - 1),
}
PROPERTIES = st.fixed_dictionaries({}, optional={name: VALUES.get(name, TEXTS) for name in NAMES})


def header(flags: int, properties: bytes) -> bytes:
    return struct.pack(">HHQH", 60, 0, 0, flags) + properties


def scanned(octets: bytes) -> PropertyScan:
    """What a scan of the payload of a content header finds."""
    scan = PropertyScan()
    scan.scan(octets, 12, len(octets))
    return scan


@given(PROPERTIES, st.integers(0, 2**64 - 1))
def test_properties_are_decoded_as_they_were_encoded(values: dict, body_size: int) -> None:
    octets = BasicProperties(**values).encode(body_size)
    assert struct.unpack_from(">HHQ", octets) == (60, 0, body_size)
    assert BasicProperties.decode(octets) == BasicProperties(**values)
    assert BasicProperties.decode(octets).encode(body_size) == octets
    assert BasicProperties(**values).encode_list() == octets[12:]
    assert BasicProperties.decode_list(octets[12:]) == BasicProperties(**values)


@given(PROPERTIES)
def test_a_scan_finds_what_a_decode_finds(values: dict) -> None:
    octets = BasicProperties(**values).encode(1)
    scan = scanned(octets)
    assert scan.delivery_mode == values.get("delivery_mode", -1)
    assert scan.priority == values.get("priority", -1)
    for name in ("reply_to", "expiration", "user_id"):
        place = getattr(scan, f"{name}_at")
        assert (text_at(octets, place) if place else None) == values.get(name)
    headers = decode_table(octets, scan.headers_at, scan.headers_end) if scan.headers_at else None
    assert headers == values.get("headers")


@given(st.integers(0, 0xFFFF), st.binary(max_size=64))
def test_nothing_but_a_frame_error_comes_out_of_octets(flags: int, properties: bytes) -> None:
    try:
        scanned(header(flags, properties))
    except FrameError:
        with pytest.raises(FrameError):
            BasicProperties.decode(header(flags, properties))
    else:
        BasicProperties.decode(header(flags, properties))


@given(PROPERTIES, st.integers(0, 200))
def test_a_truncated_header_is_refused(values: dict, kept: int) -> None:
    octets = BasicProperties(**values).encode(1)
    if kept < len(octets):
        with pytest.raises(FrameError):
            scanned(octets[:kept])


@pytest.mark.parametrize(
    ("octets", "text"),
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
def test_the_error_of_a_malformed_header_is_described(octets: bytes, text: str) -> None:
    with pytest.raises(FrameError, match=text):
        scanned(octets)
    with pytest.raises(FrameError, match=text):
        BasicProperties.decode(octets)


def test_a_scan_does_not_depend_on_the_previous_message() -> None:
    scan = PropertyScan()
    values = {"delivery_mode": 2, "priority": 9, "headers": {}, "reply_to": "r", "user_id": "u"}
    for octets in (BasicProperties(**values).encode_list(), BasicProperties().encode_list()):
        scan.scan(octets, 0, len(octets))
    assert (scan.delivery_mode, scan.priority) == (-1, -1)
    assert (scan.headers_at, scan.headers_end, scan.reply_to_at, scan.user_id_at) == (0, 0, 0, 0)


@pytest.mark.parametrize("values", [{"priority": 256}, {"timestamp": -1}, {"type": "x" * 256}])
def test_a_property_too_large_to_encode_is_refused(values: dict) -> None:
    with pytest.raises(AmqpError):
        BasicProperties(**values).encode(0)
