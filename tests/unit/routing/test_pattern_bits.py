"""Patterns that are matched together, against an independent matcher."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.routing.test_topic import KEYS, PATTERNS, matches

from warren.routing.pattern_bits import PatternBits

SETS = st.lists(PATTERNS, max_size=12, unique=True)


@given(patterns=SETS, gone=st.sets(st.integers(0, 11)), again=st.sets(st.integers(0, 11)), key=KEYS)
def test_patterns_match_as_dynamic_programming_does(
    patterns: list[str], gone: set[int], again: set[int], key: str
) -> None:
    bits = PatternBits()
    for pattern in patterns:
        bits.add(pattern)
    for at, pattern in enumerate(patterns):
        if at in gone:
            bits.remove(pattern)
    for at, pattern in enumerate(patterns):
        if at in gone and at in again:
            bits.add(pattern)
    words = key.split(".") if key else []
    left = [pattern for at, pattern in enumerate(patterns) if at not in gone or at in again]
    assert sorted(bits.match(words)) == sorted(pattern for pattern in left if matches(pattern, key))


def test_it_is_known_when_most_patterns_were_removed() -> None:
    bits = PatternBits()
    for number in range(10):
        bits.add(f"{number}.#.a")
    for number in range(5):
        bits.remove(f"{number}.#.a")
    assert not bits.is_mostly_dead
    bits.remove("5.#.a")
    assert bits.is_mostly_dead
