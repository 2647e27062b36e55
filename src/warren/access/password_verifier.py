"""Verifies passwords: slow hashes in a thread pool, and repeated checks from a cache.

1. A wrong password costs what argon2 costs, whether the user exists or not and whatever the stored hash is:
   the time of a refusal reveals nothing.
2. A correct password is cached for a while as a keyed digest, which is useless elsewhere: clients of the HTTP
   API send it with every request, and thousands of clients reconnect after a restart. The digest covers the
   stored hash as well, so that a changed password or another user is verified anew.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from warren.access.credential_cache import KEY_SIZE, CredentialCache
from warren.access.future import Future
from warren.access.passwords import DECOY_SIZE, decoy_hash, is_password, is_quick
from warren.limits import PASSWORD_CACHE_MS
from warren.metadata.machine import Metadata
from warren.metadata.users import PasswordHash


class ThreadPoolPort(Protocol):
    """Port: runs a slow job in a thread; ResourceError if too many jobs wait already."""

    def __call__(self, job: Callable[[], bool], /) -> Future[bool]: ...


class PasswordVerifierDependencies(Struct, frozen=True, kw_only=True):
    """What password verification needs from above the waterline."""

    thread_pool: ThreadPoolPort
    now: Callable[[], int]
    random_bytes: Callable[[int], bytes]


class PasswordVerifier:
    """Verifies the passwords of the users of one node."""

    __slots__ = ("_cache", "_decoy", "_dependencies", "_in_progress", "_metadata")

    def __init__(self, metadata: Metadata, dependencies: PasswordVerifierDependencies) -> None:
        self._metadata = metadata
        self._dependencies = dependencies
        # The hash that is compared if the user does not exist, so that the refusal takes as long.
        self._decoy = decoy_hash(dependencies.random_bytes(DECOY_SIZE))
        # Passwords verified recently.
        self._cache: CredentialCache[bool] = CredentialCache(
            dependencies.random_bytes(KEY_SIZE), PASSWORD_CACHE_MS
        )
        # Verifications in progress by digest: concurrent checks of the same credentials share one result.
        self._in_progress: dict[bytes, Future[bool]] = {}

    async def is_password_of(self, name: str, password: str) -> bool:
        """True if `name` is a user and `password` its password; an empty password is always wrong."""
        stored = self._stored(name)
        digest = self._digest(name, password, stored)
        if self._cache.get(name, digest, self._dependencies.now()):
            return True
        if password and stored is not None and is_quick(stored) and is_password(password, stored):
            return True
        is_right = await self._verify_in_thread(digest, password, self._decoy if stored is None else stored)
        # The user may have been deleted or given another password meanwhile.
        if not (is_right and password and stored is not None and self._stored(name) == stored):
            return False
        self._cache.put(name, digest, True, self._dependencies.now())
        return True

    def _verify_in_thread(self, digest: bytes, password: str, stored: PasswordHash) -> Future[bool]:
        under_way = self._in_progress.get(digest)
        if under_way is None:
            compared = self._decoy if is_quick(stored) else stored
            under_way = self._dependencies.thread_pool(
                lambda: is_password(password, compared) and compared is stored
            )
            self._in_progress[digest] = under_way
            under_way.add_done_callback(lambda _: self._forget(digest))
        return under_way

    def _forget(self, digest: bytes) -> None:
        del self._in_progress[digest]

    def _stored(self, name: str) -> PasswordHash | None:
        user = self._metadata.users.by_name.get(name)
        return None if user is None else user.password

    def _digest(self, name: str, password: str, stored: PasswordHash | None) -> bytes:
        return self._cache.digest(name, stored.salted_hash if stored is not None else b"", password)
