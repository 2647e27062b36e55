"""Whether a password is a user's: where it takes long, in a thread, and not twice for the same.

1. A wrong password costs what argon2 costs, whether there is such a user or not, and however that one's
   password is hashed: the time of a refusal tells nothing.
2. A password that was right is remembered for a while, as a keyed digest that is worth nothing elsewhere:
   clients of the HTTP API send it with every request, and thousands come back when a node was restarted.
   The digest is of the stored hash as well, so that another password, or another user, begins anew.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from warren.access.credential_cache import KEY_SIZE, CredentialCache
from warren.access.future import Future
from warren.access.passwords import DECOY_SIZE, decoy_hash, is_password, is_quick
from warren.limits import PASSWORD_CACHE_MS
from warren.metadata.machine import Metadata
from warren.metadata.users import PasswordHash


class ThreadPoolPort(Protocol):
    """Port: does what takes long where it holds nobody up; ResourceError if too much waits already."""

    def __call__(self, job: Callable[[], bool], /) -> Future[bool]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordVerifierDependencies:
    """What looking at passwords needs from above the waterline."""

    thread_pool: ThreadPoolPort
    now: Callable[[], int]
    random_octets: Callable[[int], bytes]


class PasswordVerifier:
    """Of the users of one node."""

    __slots__ = ("_cache", "_decoy", "_dependencies", "_in_progress", "_metadata")

    def __init__(self, metadata: Metadata, dependencies: PasswordVerifierDependencies) -> None:
        self._metadata = metadata
        self._dependencies = dependencies
        # Compared with in place of what an unknown user does not have.
        self._decoy = decoy_hash(dependencies.random_octets(DECOY_SIZE))
        # What was right.
        self._cache: CredentialCache[bool] = CredentialCache(
            dependencies.random_octets(KEY_SIZE), PASSWORD_CACHE_MS
        )
        # What is being looked at, by its digest: whoever asks the same has the same answer.
        self._in_progress: dict[bytes, Future[bool]] = {}

    async def is_password_of(self, name: str, password: str) -> bool:
        """True if `name` is a user and `password` its password; a blank one is nobody's."""
        stored = self._stored(name)
        digest = self._digest(name, password, stored)
        if self._cache.get(name, digest, self._dependencies.now()):
            return True
        if password and stored is not None and is_quick(stored) and is_password(password, stored):
            return True
        is_right = await self._verify_in_thread(digest, password, self._decoy if stored is None else stored)
        # Meanwhile the user may have another password, or be gone.
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
        return self._cache.digest(name, stored.octets if stored is not None else b"", password)
