"""Asks a web server whether a name and password are right: RabbitMQ's `auth_http.user_path`.

    username password  ─▶  allow administrator | deny | deny REASON
    username           ─▶  the same, for the name in a verified certificate

1. Every login ends within the timeout, and what is not `allow` refuses it.
2. Connections are kept, bounded in number; concurrent logins with the same credentials share one request.
3. What is allowed is cached for a while, under a keyed digest of the password.
"""

import asyncio
import logging
import ssl

import aiohttp
from msgspec import Struct

from warren.access.credential_cache import KEY_SIZE, CredentialCache
from warren.access.directory import DirectoryUnavailable
from warren.errors import ResourceError
from warren.limits import (
    LDAP_CACHE_MS,
)
from warren.limits_access import (
    HTTP_LOGIN_ANSWER_SIZE_MAX,
    HTTP_LOGIN_CONNECTIONS_MAX,
    HTTP_LOGIN_TIMEOUT_MS,
    HTTP_LOGIN_WAITING_MAX,
)
from warren.runtime.clock import Clock
from warren.runtime.randomness import random_bytes

logger = logging.getLogger("warren.login")

_SUCCESSES = 200, 201
_ALLOW, _DENY = "allow", "deny"


class HttpLoginSettings(Struct, frozen=True, kw_only=True):
    """RabbitMQ's `auth_http`, as far as it is about logins."""

    url: str
    method: str = "GET"
    request_timeout_ms: int = HTTP_LOGIN_TIMEOUT_MS
    connection_timeout_ms: int = HTTP_LOGIN_TIMEOUT_MS
    tls: ssl.SSLContext | None = None
    cache_ttl_ms: int = LDAP_CACHE_MS


class HttpLogin:
    """The logins of one node at its web server."""

    def __init__(self, settings: HttpLoginSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None
        self._cache: CredentialCache[bool] = CredentialCache(random_bytes(KEY_SIZE), settings.cache_ttl_ms)
        # Logins in progress by digest.
        self._under_way: dict[bytes, asyncio.Task[bool]] = {}

    async def is_right(self, name: str, password: str) -> bool:
        """True if the server allows `name` with `password`; DirectoryUnavailable if it gives no answer."""
        digest = self._cache.digest(name, password)
        if self._cache.get(name, digest, self._clock.now()):
            return True
        task = self._under_way.get(digest)
        if task is None:
            if len(self._under_way) >= HTTP_LOGIN_WAITING_MAX:
                raise ResourceError("too many logins are waiting for the web server")
            task = asyncio.get_running_loop().create_task(self._asked(name, password))
            self._under_way[digest] = task
            task.add_done_callback(lambda done: self._forget(digest, done))
        is_allowed = await asyncio.shield(task)
        if is_allowed:
            self._cache.put(name, digest, True, self._clock.now())
        return is_allowed

    async def close(self) -> None:
        """Cancel the logins in progress, and close the connections."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    def _forget(self, digest: bytes, done: "asyncio.Task[bool]") -> None:
        del self._under_way[digest]
        if not done.cancelled():
            # No caller may be left waiting for it.
            done.exception()

    async def _asked(self, name: str, password: str) -> bool:
        answer = await self._answer({"username": name, "password": password})
        first, _, rest = answer.strip().partition(" ")
        if first.lower() == _DENY:
            if rest:
                logger.info("the web server refused user %r: %s", name, rest)
            return False
        if first.lower() != _ALLOW:
            raise DirectoryUnavailable(f"{self._settings.url} answered {answer[:80]!r}")
        return True

    async def _answer(self, fields: dict[str, str]) -> str:
        url = self._settings.url
        try:
            try:
                return await self._response(fields)
            except aiohttp.ServerDisconnectedError:
                # A kept connection may have ended meanwhile; a new one shows whether the server did.
                return await self._response(fields)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            # The text of an error may contain the address with the password.
            raise DirectoryUnavailable(f"{url}: {type(error).__name__}") from None

    async def _response(self, fields: dict[str, str]) -> str:
        settings = self._settings
        is_get = settings.method == "GET"
        async with self._opened().request(
            settings.method,
            settings.url,
            params=fields if is_get else None,
            data=None if is_get else fields,
            allow_redirects=False,
        ) as response:
            if response.status not in _SUCCESSES:
                raise DirectoryUnavailable(f"{settings.url} answered with status {response.status}")
            data = bytearray()
            async for part in response.content.iter_any():
                data += part
                if len(data) > HTTP_LOGIN_ANSWER_SIZE_MAX:
                    raise DirectoryUnavailable(f"{settings.url} answered with too much")
            return data.decode("utf-8", "replace")

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
