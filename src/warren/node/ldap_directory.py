"""Authenticates users with LDAP servers, without blocking the event loop, bounded in time and number.

 name, password ─▶ cached? ─▶ in progress? ─▶ a connection ─▶ [find the name] ─▶ bind ─▶ [find the groups]

1. A blank password is never sent: a server would accept it as an anonymous bind (RFC 4513 §5.1.2).
2. Every login ends within the timeout, whatever servers do, and one at a time uses a connection: it begins
   with a bind, so that no login inherits the identity of the one before.
3. A connection in the middle of something unexpected is not used again.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from warren.access.credential_cache import KEY_SIZE, CredentialCache
from warren.access.directory import (
    DirectoryEntry,
    DirectoryRefused,
    DirectoryUnavailable,
    parse_distinguished_name,
    substitute,
    substitute_distinguished_name,
    variables,
)
from warren.errors import ResourceError
from warren.limits import (
    LDAP_CACHE_MS,
    LDAP_CONNECTIONS_MAX,
    LDAP_GROUPS_MAX,
    LDAP_IDLE_MS,
    LDAP_RETRY_MS,
    LDAP_TIMEOUT_MS,
    LDAP_WAITING_MAX,
)
from warren.node.ldap_connection import LdapConnection, LdapConnectionLost, LdapServer
from warren.runtime.clock import Clock
from warren.runtime.randomness import random_bytes
from warren.runtime.shared_tasks import SharedTasks
from warren.wire import ldap
from warren.wire.ldap import EqualityFilter

# Two results are refused as well: a name must identify one person.
_PERSONS_MAX = 2
# RFC 2307: groups that list their members by login name.
_BY_LOGIN = "memberuid"


class LdapAccount(Struct, frozen=True):
    """The account used for searches; without a name, anonymous."""

    name: str = ""
    password: str = ""


class LdapSettings(Struct, frozen=True, kw_only=True):
    """The settings of RabbitMQ's `auth_ldap`."""

    servers: tuple[LdapServer, ...]
    user_pattern: str = "${username}"
    # The name used in the bind request, if it is not the user's distinguished name.
    bind_pattern: str = ""
    lookup_attribute: str = ""
    lookup_base: str = ""
    # None: the user who logs in.
    lookup_account: LdapAccount | None = None
    groups_base: str = ""
    group_attribute: str = "member"
    groups_account: LdapAccount | None = None
    needs_groups: bool = False
    timeout_ms: int = LDAP_TIMEOUT_MS
    connections_max: int = LDAP_CONNECTIONS_MAX
    idle_ms: int = LDAP_IDLE_MS
    cache_ttl_ms: int = LDAP_CACHE_MS


class LdapDirectory:
    """The users that the LDAP servers know."""

    def __init__(self, settings: LdapSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._cache: CredentialCache[DirectoryEntry] = CredentialCache(
            random_bytes(KEY_SIZE), settings.cache_ttl_ms
        )
        # Logins in progress by digest: concurrent logins with the same credentials share one result.
        self._logins: SharedTasks[bytes, DirectoryEntry] = SharedTasks(LDAP_WAITING_MAX)
        self._connections = _ConnectionPool(settings)

    async def find(self, name: str, password: str) -> DirectoryEntry:
        """Authenticate a user; raises DirectoryRefused or DirectoryUnavailable if that fails."""
        if not password or not name:
            raise DirectoryRefused("a user name and password are required")
        digest = self._cache.digest(name, password)
        known = self._cache.get(name, digest, self._clock.now())
        if known is not None:
            return known
        if self._logins.is_full_for(digest):
            raise ResourceError("too many logins are waiting for LDAP")
        person = await self._logins.result(digest, lambda: self._found(name, password))
        self._cache.put(name, digest, person, self._clock.now())
        return person

    async def close(self) -> None:
        """Cancel the logins in progress, and close the connections."""
        await self._logins.close()
        self._connections.close()

    async def _found(self, name: str, password: str) -> DirectoryEntry:
        timeout_ms = self._settings.timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._asked(name, password)
        except TimeoutError:
            raise DirectoryUnavailable(f"no answer from LDAP within {timeout_ms} ms") from None

    async def _asked(self, name: str, password: str) -> DirectoryEntry:
        while True:
            try:
                async with self._connections.one() as connection:
                    return await _Login(self._settings, connection, name, password).answer()
            except LdapConnectionLost as error:
                # An idle connection may have ended meanwhile; another or a new one shows whether the server
                # did.
                if not connection.used_at:
                    raise DirectoryUnavailable(str(error)) from None


class _Login:
    """One login, over one connection."""

    def __init__(self, settings: LdapSettings, connection: LdapConnection, name: str, password: str) -> None:
        self._settings = settings
        self._connection = connection
        self._name = name
        self._values = variables(name)
        self._account = LdapAccount(
            substitute_distinguished_name(settings.bind_pattern, self._values), password
        )

    async def answer(self) -> DirectoryEntry:
        settings = self._settings
        found = substitute_distinguished_name(settings.user_pattern, self._values)
        if settings.lookup_attribute and settings.lookup_account is not None:
            await self._be(settings.lookup_account)
            found = await self._look_up()
        user = LdapAccount(self._account.name or found, self._account.password)
        await self._be(user, is_login=True)
        if settings.lookup_attribute and settings.lookup_account is None:
            found = await self._look_up()
        if not settings.needs_groups:
            return DirectoryEntry(self._name, found, frozenset())
        if settings.groups_account is not None:
            await self._be(settings.groups_account)
        return DirectoryEntry(
            self._name, found, frozenset(map(parse_distinguished_name, await self._groups(found)))
        )

    async def _be(self, account: LdapAccount, *, is_login: bool = False) -> None:
        result = await self._connection.bind(account.name, account.password)
        if result.code == ldap.SUCCESS:
            return
        if is_login and result.is_of_credentials:
            raise DirectoryRefused(f"{self._connection.server} returned {result} for {account.name!r}")
        raise DirectoryUnavailable(
            f"{self._connection.server} returned {result} for a bind as {account.name or 'anonymous'!r}"
        )

    async def _look_up(self) -> str:
        settings = self._settings
        value = substitute(settings.user_pattern, self._values, str)
        sought = EqualityFilter(settings.lookup_attribute, value)
        found = await self._search(settings.lookup_base, [sought], _PERSONS_MAX)
        if len(found) != 1:
            some = "several entries have" if found else "no entry has"
            raise DirectoryRefused(f"{some} the {settings.lookup_attribute} {value!r}")
        return found[0]

    async def _groups(self, found: str) -> list[str]:
        attribute, _, rule = self._settings.group_attribute.partition(":")
        value = self._name if attribute.lower() == _BY_LOGIN else found
        sought = EqualityFilter(attribute, value, rule.rstrip(":"))
        groups = await self._search(self._settings.groups_base, [sought], LDAP_GROUPS_MAX + 1)
        if len(groups) > LDAP_GROUPS_MAX:
            raise DirectoryRefused(f"a member of more than {LDAP_GROUPS_MAX} groups")
        return groups

    async def _search(self, base: str, filters: list[EqualityFilter], count_max: int) -> list[str]:
        time_s_max = max(1, self._settings.timeout_ms // 1000)
        names, result = await self._connection.search(
            base, filters, count_max=count_max, time_s_max=time_s_max
        )
        is_cut = result.code == ldap.SIZE_LIMIT_EXCEEDED and len(names) == count_max
        if result.code == ldap.SUCCESS or is_cut:
            return names
        raise DirectoryUnavailable(f"{self._connection.server} returned {result} for a search under {base!r}")


class _ConnectionPool:
    """Connections to the LDAP servers; idle ones are kept for a while."""

    def __init__(self, settings: LdapSettings) -> None:
        self._settings = settings
        self._free = asyncio.Semaphore(settings.connections_max)
        # The most recently used connection is last, and is used first.
        self._idle: list[LdapConnection] = []
        # When a server may again be tried before others (the loop's time, s).
        self._rests: dict[LdapServer, float] = {}

    @asynccontextmanager
    async def one(self) -> AsyncIterator[LdapConnection]:
        """A connection for a block; kept if the block ends normally, or with a reply of the server."""
        async with self._free:
            connection = self._taken() or await self._opened()
            try:
                yield connection
            except DirectoryRefused:
                self._keep(connection)
                raise
            except BaseException:
                connection.abort()
                raise
            self._keep(connection)

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def _keep(self, connection: LdapConnection) -> None:
        connection.used_at = asyncio.get_running_loop().time()
        self._idle.append(connection)
        self._drop_old()

    def _taken(self) -> LdapConnection | None:
        self._drop_old()
        return self._idle.pop() if self._idle else None

    def _drop_old(self) -> None:
        since = asyncio.get_running_loop().time() - self._settings.idle_ms / 1000
        stay = [
            connection for connection in self._idle if connection.used_at >= since and not connection.is_lost
        ]
        for connection in self._idle:
            if connection not in stay:
                connection.close()
        self._idle = stay

    async def _opened(self) -> LdapConnection:
        """Connect to the first server that accepts it; servers that failed lately are tried last."""
        loop, errors = asyncio.get_running_loop(), []
        timeout_s = self._settings.timeout_ms / 1000 / len(self._settings.servers)
        for server in sorted(self._settings.servers, key=lambda one: self._rests.get(one, 0) > loop.time()):
            try:
                async with asyncio.timeout(timeout_s):
                    return await LdapConnection.open(server)
            except (LdapConnectionLost, TimeoutError) as error:
                self._rests[server] = loop.time() + LDAP_RETRY_MS / 1000
                errors.append(str(error) or f"{server}: no connection within {round(timeout_s * 1000)} ms")
        raise DirectoryUnavailable("; ".join(errors))
