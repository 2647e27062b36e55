"""Requests to the servers of others, such as identity providers: bounded in size and time, over TLS."""

import ssl
from ipaddress import ip_address
from urllib.parse import urlsplit

import aiohttp

from warren.node.errors import BootRefused


class FetchFailed(Exception):
    """The server gave no usable answer; the message says why."""


async def fetched(url: str, tls: ssl.SSLContext, *, size_max: int, timeout_ms: int) -> bytes:
    """Return the body at `url`. Raises FetchFailed, also for a redirection."""
    if not is_secure(url):
        raise FetchFailed(f"{url!r} is not an https address")
    timeout = aiohttp.ClientTimeout(total=timeout_ms / 1000)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url, ssl=tls, allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise FetchFailed(f"{url} answered with status {response.status}")
            data = bytearray()
            async for part in response.content.iter_any():
                data += part
                if len(data) > size_max:
                    raise FetchFailed(f"{url} answered with more than {size_max} bytes")
            return bytes(data)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise FetchFailed(f"{url}: {error or type(error).__name__}") from error


def checked_url(key: str, url: str) -> str:
    """Return `url`, the value of the setting `key`; raises BootRefused unless it is secure."""
    if url and not is_secure(url):
        raise BootRefused(f"{key} must be an https address, not {url!r}")
    return url


def is_secure(url: str) -> bool:
    """True for an https address, and for a server on this machine, which needs no TLS."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if not host or parts.scheme not in ("http", "https"):
        return False
    return parts.scheme == "https" or _is_here(host)


def verifying_context(authority_file: str, *, is_verified: bool) -> ssl.SSLContext:
    """Return the TLS of a client; raises BootRefused for a file without certificates."""
    try:
        context = ssl.create_default_context(cafile=authority_file or None)
    except OSError as error:
        raise BootRefused(f"cannot read CA certificates from {authority_file!r}: {error}") from error
    if not is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
