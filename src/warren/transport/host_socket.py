"""Connecting a socket to a host by name, within a time."""

import asyncio
import errno
import os
import socket
import ssl
from typing import TypeAlias

# A family of addresses, and an address of it.
Address: TypeAlias = tuple[
    socket.AddressFamily, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
]


class HostUnreachable(Exception):
    """A host has no address, or none that answers; the text says why."""

    def __init__(self, text: str, *, is_refused: bool = False) -> None:
        """`is_refused` is True if every address has answered that nobody listens there."""
        super().__init__(text)
        self.is_refused = is_refused


async def addresses_of(host: str, port: int) -> list[Address]:
    """Resolve the name of a host without blocking the loop. Raises HostUnreachable."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise HostUnreachable(failure_reason(error)) from None
    return [(family, address) for family, _, _, _, address in found]


async def connect_to_one(addresses: list[Address], timeout_s: float) -> socket.socket:
    """Connect to the first of `addresses` that accepts; a silent one leaves time for the others.

    Raises HostUnreachable.
    """
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + timeout_s
    errors = []
    refused_count = 0
    for place, (family, address) in enumerate(addresses):
        share_s = (ends_at - loop.time()) / (len(addresses) - place)
        connecting = socket.socket(family, socket.SOCK_STREAM)
        try:
            connecting.setblocking(False)
            connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connecting.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            async with asyncio.timeout(share_s):
                await loop.sock_connect(connecting, address)
        except TimeoutError:
            connecting.close()
            errors.append(f"no answer within {round(share_s * 1000)} ms")
        except OSError as error:
            connecting.close()
            errors.append(failure_reason(error))
            refused_count += error.errno == errno.ECONNREFUSED
        except BaseException:
            connecting.close()
            raise
        else:
            return connecting
    raise HostUnreachable(
        "; ".join(dict.fromkeys(errors)) or "it has no address",
        is_refused=0 < refused_count == len(addresses),
    )


def failure_reason(error: Exception) -> str:
    """Return what an error of a name, a socket or TLS says, in lower case and without the address."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    if not isinstance(error, OSError):
        return str(error).lower()
    # uvloop's text of a refused connection has the address instead of the reason.
    text = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    return (text or str(error)).lower()
