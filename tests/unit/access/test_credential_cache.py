"""Answers that need not be asked for again."""

from warren.access.credential_cache import CredentialCache
from warren.limits import CACHED_CREDENTIALS_MAX


def remembered(lasts_ms: int = 100) -> CredentialCache[str]:
    return CredentialCache(b"k" * 32, lasts_ms)


def test_an_answer_counts_for_so_long_and_to_the_same_question() -> None:
    known = remembered()
    digest = known.digest("u", "right")
    known.put("u", digest, "yes", 1_000)
    assert known.get("u", digest, 1_099) == "yes"
    assert known.get("u", known.digest("u", "wrong"), 1_000) is None
    assert known.get("v", digest, 1_000) is None
    assert known.get("u", digest, 1_100) is None
    # It is not there any more, whatever the time.
    assert known.get("u", digest, 1_000) is None


def test_nothing_is_remembered_for_no_time() -> None:
    known = remembered(0)
    known.put("u", b"d", "yes", 0)
    assert known.get("u", b"d", 0) is None


def test_where_a_part_ends_is_a_part_of_the_digest() -> None:
    known = remembered()
    assert known.digest("ab", "c") != known.digest("a", "bc")
    assert known.digest("ab", b"c") == known.digest("ab", "c")
    assert known.digest("a") != CredentialCache[str](b"l" * 32, 1).digest("a")


def test_the_oldest_is_forgotten_for_one_too_many() -> None:
    known = remembered()
    for number in range(CACHED_CREDENTIALS_MAX + 1):
        known.put(str(number), b"d", "yes", 0)
    assert known.get("0", b"d", 0) is None
    assert known.get("1", b"d", 0) == "yes"
    assert known.get(str(CACHED_CREDENTIALS_MAX), b"d", 0) == "yes"
