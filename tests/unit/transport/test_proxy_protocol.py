"""Headers of the PROXY protocol."""

import struct
from ipaddress import ip_address

import pytest

from warren.transport.proxy_protocol import ProxiedEnds, ProxyHeaderError, parse_v1, parse_v2

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"


def v2(command: int, family: int, rest: bytes) -> bytes:
    return SIGNATURE + struct.pack(">BBH", command, family, len(rest)) + rest


def test_version_1_contains_both_addresses() -> None:
    header = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 5672\r\n"
    assert parse_v1(header) == ProxiedEnds("192.0.2.1", 56324, "198.51.100.1", 5672)
    header = b"PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n"
    assert parse_v1(header) == ProxiedEnds("2001:db8::1", 1, "2001:db8::2", 65535)


def test_version_1_unknown_means_the_proxy_itself() -> None:
    assert parse_v1(b"PROXY UNKNOWN\r\n") is None
    assert parse_v1(b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n") is None


@pytest.mark.parametrize(
    "header",
    [
        b"PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 65536\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.1 -1 5672\r\n",
        b"PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",
        b"PROXY TCP4 example.org 198.51.100.1 1 2\r\n",
        b"PROXY UDP4 192.0.2.1 198.51.100.1 1 2\r\n",
        b"PROXY TCP4 192.0.2.\xff 198.51.100.1 1 2\r\n",
        b"PROXY \r\n",
    ],
)
def test_a_malformed_version_1_header_is_refused(header: bytes) -> None:
    with pytest.raises(ProxyHeaderError):
        parse_v1(header)


def test_version_2_contains_both_addresses_and_its_tlvs_are_skipped() -> None:
    four = (
        ip_address("192.0.2.1").packed + ip_address("198.51.100.1").packed + struct.pack(">HH", 56324, 5672)
    )
    assert parse_v2(v2(0x21, 0x11, four)) == ProxiedEnds("192.0.2.1", 56324, "198.51.100.1", 5672)
    six = ip_address("2001:db8::1").packed + ip_address("2001:db8::2").packed + struct.pack(">HH", 1, 2)
    header = v2(0x21, 0x21, six + b"\x04\x00\x01x")
    assert parse_v2(header) == ProxiedEnds("2001:db8::1", 1, "2001:db8::2", 2)


def test_version_2_local_and_unknown_families_mean_the_proxy_itself() -> None:
    assert parse_v2(v2(0x20, 0x00, b"")) is None
    assert parse_v2(v2(0x21, 0x31, bytes(216))) is None


@pytest.mark.parametrize(
    "header", [v2(0x21, 0x11, bytes(11)), v2(0x31, 0x11, bytes(12)), v2(0x22, 0x11, bytes(12))]
)
def test_a_malformed_version_2_header_is_refused(header: bytes) -> None:
    with pytest.raises(ProxyHeaderError):
        parse_v2(header)
