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

from warren.access.passwords import ARGON2ID, SALT_SIZE, hash_password, is_password, is_quick
from warren.access.remembered import KEY_SIZE, Remembered
from warren.access.waiting import Answer
from warren.limits import PASSWORD_REMEMBERED_MS
from warren.metadata.machine import Metadata
from warren.metadata.users import PasswordHash


class Labour(Protocol):
    """Port: does what takes long where it holds nobody up; ResourceError if too much waits already."""

    def __call__(self, job: Callable[[], bool], /) -> Answer[bool]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationWorld:
    """What looking at passwords needs from above the waterline."""

    labour: Labour
    now: Callable[[], int]
    random_octets: Callable[[int], bytes]


class Verification:
    """Of the users of one node."""

    __slots__ = ("_decoy", "_metadata", "_remembered", "_under_way", "_world")

    def __init__(self, metadata: Metadata, world: VerificationWorld) -> None:
        self._metadata = metadata
        self._world = world
        # Compared with in place of what an unknown user does not have.
        self._decoy = hash_password("", world.random_octets(SALT_SIZE), ARGON2ID)
        # What was right.
        self._remembered: Remembered[bool] = Remembered(world.random_octets(KEY_SIZE), PASSWORD_REMEMBERED_MS)
        # What is being looked at, by its digest: whoever asks the same has the same answer.
        self._under_way: dict[bytes, Answer[bool]] = {}

    async def is_password_of(self, name: str, password: str) -> bool:
        """True if `name` is a user and `password` its password; a blank one is nobody's."""
        stored = self._stored(name)
        digest = self._digest(name, password, stored)
        if self._remembered.get(name, digest, self._world.now()):
            return True
        if password and stored is not None and is_quick(stored) and is_password(password, stored):
            return True
        is_right = await self._looked_at(digest, password, self._decoy if stored is None else stored)
        # Meanwhile the user may have another password, or be gone.
        if not (is_right and password and stored is not None and self._stored(name) == stored):
            return False
        self._remembered.put(name, digest, True, self._world.now())
        return True

    def _looked_at(self, digest: bytes, password: str, stored: PasswordHash) -> Answer[bool]:
        under_way = self._under_way.get(digest)
        if under_way is None:
            compared = self._decoy if is_quick(stored) else stored
            under_way = self._world.labour(lambda: is_password(password, compared) and compared is stored)
            self._under_way[digest] = under_way
            under_way.add_done_callback(lambda _: self._forget(digest))
        return under_way

    def _forget(self, digest: bytes) -> None:
        del self._under_way[digest]

    def _stored(self, name: str) -> PasswordHash | None:
        user = self._metadata.users.by_name.get(name)
        return None if user is None else user.password

    def _digest(self, name: str, password: str, stored: PasswordHash | None) -> bytes:
        return self._remembered.digest(name, stored.octets if stored is not None else b"", password)
