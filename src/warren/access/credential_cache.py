"""A cache of successful credential checks, so that a repeated check is not computed again."""

from hashlib import blake2b
from hmac import compare_digest
from typing import Generic, TypeVar

from warren.limits import CACHED_CREDENTIALS_MAX

Value = TypeVar("Value")

KEY_SIZE = 32


class CredentialCache(Generic[Value]):
    """Results of credential checks by user, least recently used first, each with a keyed digest.

    Without the key a digest is useless.
    """

    __slots__ = ("_by_user", "_key", "_ttl_ms")

    def __init__(self, key: bytes, ttl_ms: int) -> None:
        self._key = key
        self._ttl_ms = ttl_ms
        # (digest, result, expiry in ms)
        self._by_user: dict[str, tuple[bytes, Value, int]] = {}

    def digest(self, *parts: str | bytes) -> bytes:
        """The keyed digest of `parts`."""
        digest = blake2b(key=self._key, digest_size=32)
        for part in parts:
            data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
            digest.update(len(data).to_bytes(4, "big") + data)
        return digest.digest()

    def get(self, user: str, digest: bytes, now: int) -> Value | None:
        """The cached result for `user` if its digest is `digest`; None if there is none or it has expired."""
        remembered = self._by_user.get(user)
        if remembered is None:
            return None
        if now >= remembered[2]:
            del self._by_user[user]
            return None
        return remembered[1] if compare_digest(remembered[0], digest) else None

    def put(self, user: str, digest: bytes, value: Value, now: int) -> None:
        """Cache `value` as the result of `user` with `digest`, replacing an earlier one."""
        self._by_user.pop(user, None)
        if not self._ttl_ms:
            return
        if len(self._by_user) >= CACHED_CREDENTIALS_MAX:
            del self._by_user[next(iter(self._by_user))]
        self._by_user[user] = (digest, value, now + self._ttl_ms)
