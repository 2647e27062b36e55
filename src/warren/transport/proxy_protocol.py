"""The PROXY protocol, versions 1 and 2: the client of a load balancer (haproxy.org, proxy-protocol.txt).

Version 1   | "PROXY TCP4 192.0.2.1 198.51.100.1 56324 5672\\r\\n" or "PROXY UNKNOWN…\\r\\n", up to 107
Version 2   | signature 12 | version and command u8 | family u8 | length u16 | addresses and TLVs … |

The header is read from the socket to the exact byte, before anything else reads it, so that the data after it
(AMQP or a TLS ClientHello) is not consumed. It is read only on listeners configured for it: elsewhere any
client could claim any address.
"""

import asyncio
import socket
import struct
from ipaddress import IPv4Address, IPv6Address, ip_address

from msgspec import Struct

from warren import limits

_V2_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_V2_FIXED_SIZE = 16
# The shortest header of either version: "PROXY UNKNOWN\r\n".
_SIZE_MIN = 15
_PROTOCOLS_V1 = {b"TCP4": IPv4Address, b"TCP6": IPv6Address}


class ProxyHeaderError(Exception):
    """The received data is not a PROXY header."""


class ProxiedEnds(Struct, frozen=True):
    """Both ends of the connection at the proxy."""

    host: str
    port: int
    server_host: str
    server_port: int


async def read_header(loop: asyncio.AbstractEventLoop, connected: socket.socket) -> ProxiedEnds | None:
    """Return the addresses in the header; None if the proxy itself connects (health checks, UNKNOWN)."""
    start = await _read_exactly(loop, connected, _SIZE_MIN)
    if start.startswith(_V2_SIGNATURE):
        start += await _read_exactly(loop, connected, _V2_FIXED_SIZE - len(start))
        size: int = struct.unpack_from(">H", start, 14)[0]
        if size > limits.PROXY_V2_SIZE_MAX:
            raise ProxyHeaderError(f"header of {size} bytes")
        return parse_v2(start + await _read_exactly(loop, connected, size))
    if not start.startswith(b"PROXY "):
        raise ProxyHeaderError("no PROXY header")
    while not start.endswith(b"\r\n"):
        if len(start) >= limits.PROXY_V1_SIZE_MAX:
            raise ProxyHeaderError("header without end")
        start += await _read_exactly(loop, connected, 1)
    return parse_v1(start)


def parse_v1(header: bytes) -> ProxiedEnds | None:
    """Parse a complete header of version 1, including its line end."""
    fields = header.rstrip(b"\r\n").split(b" ")
    if len(fields) > 1 and fields[1] == b"UNKNOWN":
        return None
    if len(fields) != 6 or fields[1] not in _PROTOCOLS_V1:
        raise ProxyHeaderError(f"malformed header {header!r}")
    try:
        hosts = [_PROTOCOLS_V1[fields[1]](field.decode("ascii")) for field in fields[2:4]]
        ports = [_port(field) for field in fields[4:6]]
    except ValueError as error:
        raise ProxyHeaderError(f"malformed header {header!r}") from error
    return ProxiedEnds(str(hosts[0]), ports[0], str(hosts[1]), ports[1])


def parse_v2(header: bytes) -> ProxiedEnds | None:
    """Parse a complete header of version 2, including its addresses and TLVs, which are ignored."""
    version_and_command, family = header[12], header[13]
    if version_and_command == 0x20:
        return None
    if version_and_command != 0x21:
        raise ProxyHeaderError(f"version and command {version_and_command:#04x}")
    size = {0x11: 4, 0x21: 16}.get(family)
    if size is None:
        return None
    addresses = header[_V2_FIXED_SIZE:]
    if len(addresses) < 2 * size + 4:
        raise ProxyHeaderError("truncated addresses")
    ports = struct.unpack_from(">HH", addresses, 2 * size)
    return ProxiedEnds(
        str(ip_address(addresses[:size])), ports[0], str(ip_address(addresses[size : 2 * size])), ports[1]
    )


def _port(field: bytes) -> int:
    port = int(field) if field.isdigit() else -1
    if not 0 <= port <= 65_535:
        raise ValueError(field)
    return port


async def _read_exactly(loop: asyncio.AbstractEventLoop, connected: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = await loop.sock_recv(connected, size - len(data))
        if not chunk:
            raise ProxyHeaderError("closed before the header was complete")
        data += chunk
    return data
