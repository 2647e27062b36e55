"""The cache of successful logins."""

from warren.access.credential_cache import CredentialCache
from warren.limits import CACHED_CREDENTIALS_MAX


def remembered(lasts_ms: int = 100) -> CredentialCache[str]:
    return CredentialCache(b"k" * 32, lasts_ms)


def test_an_answer_is_valid_until_it_expires_and_for_the_same_credentials() -> None:
    known = remembered()
    digest = known.digest("u", "right")
    known.put("u", digest, "yes", 1_000)
    assert known.get("u", digest, 1_099) == "yes"
    assert known.get("u", known.digest("u", "wrong"), 1_000) is None
    assert known.get("v", digest, 1_000) is None
    assert known.get("u", digest, 1_100) is None
    # The expired entry was removed, so an earlier time does not find it either.
    assert known.get("u", digest, 1_000) is None


def test_with_a_lifetime_of_zero_nothing_is_cached() -> None:
    known = remembered(0)
    known.put("u", b"d", "yes", 0)
    assert known.get("u", b"d", 0) is None


def test_the_digest_depends_on_where_each_part_ends() -> None:
    known = remembered()
    assert known.digest("ab", "c") != known.digest("a", "bc")
    assert known.digest("ab", b"c") == known.digest("ab", "c")
    assert known.digest("a") != CredentialCache[str](b"l" * 32, 1).digest("a")


def test_the_oldest_entry_is_evicted_when_the_cache_is_full() -> None:
    known = remembered()
    for number in range(CACHED_CREDENTIALS_MAX + 1):
        known.put(str(number), b"d", "yes", 0)
    assert known.get("0", b"d", 0) is None
    assert known.get("1", b"d", 0) == "yes"
    assert known.get(str(CACHED_CREDENTIALS_MAX), b"d", 0) == "yes"
