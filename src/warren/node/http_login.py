"""Asks a web server whether a name and password are right: RabbitMQ's `auth_http.user_path`.

    username password  ─▶  allow administrator | deny | deny REASON
    username           ─▶  the same, for the name in a verified certificate

1. Every login ends within the timeout, and what is not `allow` refuses it.
2. Concurrent logins with the same credentials share one request.
3. What is allowed is cached for a while, under a keyed digest of the password.
"""

import logging

from warren.access.credential_cache import KEY_SIZE, CredentialCache
from warren.access.directory import DirectoryUnavailable
from warren.errors import ResourceError
from warren.limits_access import HTTP_LOGIN_WAITING_MAX
from warren.node.auth_server import AuthServer
from warren.runtime.clock import Clock
from warren.runtime.randomness import random_bytes
from warren.runtime.shared_tasks import SharedTasks

logger = logging.getLogger("warren.login")

_ALLOW, _DENY = "allow", "deny"
# The tags of a user; None if the login is refused.
Tags = tuple[str, ...] | None


class HttpLogin:
    """The logins of one node at its web server."""

    def __init__(self, server: AuthServer, url: str, clock: Clock, *, cache_ttl_ms: int) -> None:
        self._server = server
        self._url = url
        self._clock = clock
        self._cache: CredentialCache[tuple[str, ...]] = CredentialCache(random_bytes(KEY_SIZE), cache_ttl_ms)
        # Logins in progress by digest.
        self._logins: SharedTasks[bytes, Tags] = SharedTasks(HTTP_LOGIN_WAITING_MAX)

    async def tags_of(self, name: str, password: str | None) -> Tags:
        """The tags of `name` if the server allows it with `password`, or by a certificate without one.

        None if it refuses, DirectoryUnavailable if it gives no answer.
        """
        fields = [("username", name)] if password is None else [("username", name), ("password", password)]
        digest = self._cache.digest(*(value for _, value in fields))
        known = self._cache.get(name, digest, self._clock.now())
        if known is not None:
            return known
        if self._logins.is_full_for(digest):
            raise ResourceError("too many logins are waiting for the web server")
        tags = await self._logins.result(digest, lambda: self._asked(fields))
        if tags is not None:
            self._cache.put(name, digest, tags, self._clock.now())
        return tags

    async def close(self) -> None:
        """Cancel the logins in progress, and close the connections."""
        await self._logins.close()
        await self._server.close()

    async def _asked(self, fields: list[tuple[str, str]]) -> Tags:
        answer = await self._server.answer(self._url, fields)
        first, _, rest = answer.partition(" ")
        if first.lower() == _DENY:
            if rest:
                logger.info("the web server refused user %r: %s", fields[0][1], rest)
            return None
        if first.lower() != _ALLOW:
            raise DirectoryUnavailable(f"{self._url} answered {answer[:80]!r}")
        return tuple(dict.fromkeys(rest.split()))
