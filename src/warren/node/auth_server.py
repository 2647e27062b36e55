"""Asks the web server of RabbitMQ's `auth_http`: fields go to an address, and a short text comes back.

    GET /auth/user?username=alice&password=…        POST /auth/user
                                                    username=alice&password=…

Every question ends within the timeout. Connections are kept, and bounded in number.
"""

import ssl
from collections.abc import Sequence
from urllib.parse import quote_plus

import aiohttp
from msgspec import Struct
from yarl import URL

from warren.access.directory import DirectoryUnavailable
from warren.limits_access import (
    HTTP_LOGIN_ANSWER_SIZE_MAX,
    HTTP_LOGIN_CONNECTIONS_MAX,
    HTTP_LOGIN_TIMEOUT_MS,
)

_SUCCESSES = 200, 201
_FORM = {"content-type": "application/x-www-form-urlencoded"}


class AuthServerSettings(Struct, frozen=True, kw_only=True):
    """How the web server of RabbitMQ's `auth_http` is asked."""

    method: str = "GET"
    request_timeout_ms: int = HTTP_LOGIN_TIMEOUT_MS
    connection_timeout_ms: int = HTTP_LOGIN_TIMEOUT_MS
    tls: ssl.SSLContext | None = None
    # The name that is sent and verified in place of that in the address.
    server_name: str = ""


class NoAnswer(DirectoryUnavailable):
    """The web server gave no usable answer; the message is for the log, `reason` for clients."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class AuthServer:
    """The connections of one node to its web server, for questions of one kind."""

    def __init__(self, settings: AuthServerSettings) -> None:
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None

    async def answer(self, url: str, fields: Sequence[tuple[str, str]]) -> str:
        """What the server at `url` answers to `fields`; raises NoAnswer, which never contains them."""
        try:
            try:
                return await self._response(url, fields)
            except aiohttp.ServerDisconnectedError:
                # A kept connection may have ended meanwhile; a new one shows whether the server did.
                return await self._response(url, fields)
        except TimeoutError as error:
            raise NoAnswer(f"{url}: {type(error).__name__}", "timeout") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # The text of an error may contain the address with the password.
            raise NoAnswer(f"{url}: {type(error).__name__}", "failed_connect") from None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _response(self, url: str, fields: Sequence[tuple[str, str]]) -> str:
        query = "&".join(f"{name}={quote_plus(value, errors='surrogateescape')}" for name, value in fields)
        method = self._settings.method
        is_get = method == "GET"
        address = f"{url}{'&' if '?' in url else '?'}{query}" if is_get else url
        async with self._opened().request(
            method,
            # As it is: yarl would decode what a query may contain.
            URL(address, encoded=True),
            data=None if is_get else query.encode("ascii"),
            headers=None if is_get else _FORM,
            allow_redirects=False,
            server_hostname=self._settings.server_name or None,
        ) as response:
            if response.status not in _SUCCESSES:
                raise NoAnswer(f"{url} answered with status {response.status}", f"{{{response.status}}}")
            data = bytearray()
            async for part in response.content.iter_any():
                data += part
                if len(data) > HTTP_LOGIN_ANSWER_SIZE_MAX:
                    raise NoAnswer(f"{url} answered with too much", "bad_response")
            return data.decode("utf-8", "replace").strip()

    def _opened(self) -> aiohttp.ClientSession:
        """The client, whose connections are kept."""
        if self._session is None:
            settings = self._settings
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=HTTP_LOGIN_CONNECTIONS_MAX,
                    ssl=True if settings.tls is None else settings.tls,
                ),
                timeout=aiohttp.ClientTimeout(
                    total=settings.request_timeout_ms / 1000, connect=settings.connection_timeout_ms / 1000
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session
