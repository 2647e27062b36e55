"""Requests to the servers of others, such as identity providers: bounded in size and time, over TLS."""

import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

import aiohttp

from warren.node.errors import BootRefused


class FetchFailed(Exception):
    """The server gave no usable answer; the message says why."""


class FetchAnswer(NamedTuple):
    """The status and the body of an answer."""

    status: int
    body: bytes


async def fetched(url: str, tls: ssl.SSLContext, *, size_max: int, timeout_ms: int) -> bytes:
    """Return the body at `url`. Raises FetchFailed, also for a redirection."""
    _check_secure(url)
    return await _body(url, tls, size_max=size_max, timeout_ms=timeout_ms)


async def fetched_signed(url: str, *, size_max: int, timeout_ms: int) -> bytes:
    """Return the body at `url`, also without TLS, as its signature is verified. Raises as `fetched`."""
    return await _body(url, True, size_max=size_max, timeout_ms=timeout_ms)


async def posted(
    url: str, form: Mapping[str, str], tls: ssl.SSLContext, *, size_max: int, timeout_ms: int
) -> FetchAnswer:
    """Return the answer of `url` to `form`, whatever its status; raises FetchFailed without one."""
    _check_secure(url)
    return await _answer("POST", url, tls, size_max=size_max, timeout_ms=timeout_ms, form=form)


def _check_secure(url: str) -> None:
    if not is_secure(url):
        raise FetchFailed(f"{url!r} is not an https address")


async def _body(url: str, tls: ssl.SSLContext | bool, *, size_max: int, timeout_ms: int) -> bytes:
    answer = await _answer("GET", url, tls, size_max=size_max, timeout_ms=timeout_ms)
    if answer.status != 200:
        raise FetchFailed(f"{url} answered with status {answer.status}")
    return answer.body


async def _answer(
    method: str,
    url: str,
    tls: ssl.SSLContext | bool,
    *,
    size_max: int,
    timeout_ms: int,
    form: Mapping[str, str] | None = None,
) -> FetchAnswer:
    """The answer of `url`; with `tls` True its certificate is verified by the authorities of the system."""
    timeout = aiohttp.ClientTimeout(total=timeout_ms / 1000)
    headers = {"accept": "application/json"} if form is not None else None
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(
                method, url, ssl=tls, data=form, headers=headers, allow_redirects=False
            ) as response,
        ):
            data = bytearray()
            async for part in response.content.iter_any():
                data += part
                if len(data) > size_max:
                    raise FetchFailed(f"{url} answered with more than {size_max} bytes")
            return FetchAnswer(response.status, bytes(data))
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise FetchFailed(f"{url}: {str(error) or type(error).__name__}") from error


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
