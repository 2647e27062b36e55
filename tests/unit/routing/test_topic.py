"""The topic exchange against an independent matcher, and with keys that are slow to match."""

import time
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.routing.samples import bound, made, routed

from warren.routing.exchange import Binding
from warren.routing.topic import TopicExchange


def matches(pattern: str, key: str) -> bool:
    """Dynamic programming: row i, column j says if i words of the pattern match j words of the key."""
    parts = pattern.split(".") if pattern else []
    words = key.split(".") if key else []
    row = [True] + [False] * len(words)
    for part in parts:
        before = row
        row = [part == "#" and before[0]]
        for at, word in enumerate(words):
            if part == "#":
                row.append(row[at] or before[at + 1])
            else:
                row.append(before[at] and part in ("*", word))
    return row[-1]


WORDS = st.sampled_from(["a", "b", "", "*", "#", "ab"])
KEYS = st.lists(WORDS, max_size=7).map(".".join)
PATTERNS = st.lists(st.sampled_from(["a", "b", "", "*", "#", "#"]), max_size=7).map(".".join)


@given(patterns=st.lists(PATTERNS, max_size=12, unique=True), keys=st.lists(KEYS, min_size=1, max_size=6))
def test_the_trie_matches_as_dynamic_programming_does(patterns: list[str], keys: list[str]) -> None:
    topic = made(TopicExchange)
    for pattern in patterns:
        bound(topic, pattern, pattern)
    for key in keys:
        assert sorted(map(str, routed(topic, key))) == sorted(p for p in patterns if matches(p, key))


@given(patterns=st.lists(PATTERNS, max_size=12, unique=True), gone=st.sets(st.integers(0, 11)), key=KEYS)
def test_unbinding_leaves_exactly_the_other_bindings(patterns: list[str], gone: set[int], key: str) -> None:
    topic = made(TopicExchange)
    bindings = [bound(topic, pattern, pattern) for pattern in patterns]
    for at, binding in enumerate(bindings):
        if at in gone:
            assert topic.unbind(binding)
    left = [pattern for at, pattern in enumerate(patterns) if at not in gone]
    assert sorted(map(str, routed(topic, key))) == sorted(p for p in left if matches(p, key))


def test_every_short_pattern_and_key_match_as_dynamic_programming_does() -> None:
    patterns = [".".join(words) for size in range(5) for words in product(("a", "b", "*", "#"), repeat=size)]
    keys = [".".join(words) for size in range(5) for words in product(("a", "b", ""), repeat=size)]
    topic = made(TopicExchange)
    for pattern in patterns:
        topic.bind(Binding(topic, pattern, None, pattern))
    for key in keys:
        assert set(routed(topic, key)) == {pattern for pattern in patterns if matches(pattern, key)}


@pytest.mark.parametrize(
    ("pattern", "key", "is_match"),
    [
        ("a.#", "a", True),
        ("#.a", "a.a", True),
        ("b.a.#.a", "b.a.a.a", True),
        ("#", "", True),
        ("*", "", False),
        ("", "", True),
        ("*.*", "a.", True),
        ("a.*", "a", False),
        ("*.*.*", "..", True),
        ("#.#", "", True),
        ("*.#", "", False),
    ],
)
def test_words_are_split_as_rabbitmq_splits_them(pattern: str, key: str, is_match: bool) -> None:
    topic = made(TopicExchange)
    bound(topic, pattern, "q")
    assert (routed(topic, key) == ["q"]) is is_match


def test_matching_a_pattern_of_many_hashes_costs_words_times_nodes() -> None:
    topic = made(TopicExchange)
    for size in range(1, 60):
        bound(topic, ".".join(["#", "a"] * size) + ".b", size)
    started = time.perf_counter()
    assert routed(topic, ".".join(["a"] * 120)) == []
    assert time.perf_counter() - started < 1


def test_a_key_that_stalls_rabbitmq_is_routed_at_once() -> None:
    topic = made(TopicExchange)
    bound(topic, ".".join(["#"] * 8) + ".b", "never")
    bound(topic, "#.a.#.a.#.a.#.a.#.a.#.a.#.a.#.a", "q")
    started = time.perf_counter()
    assert routed(topic, ".".join(["a"] * 25)) == ["q"]
    assert time.perf_counter() - started < 0.1


def test_patterns_without_a_common_prefix_are_matched_together() -> None:
    topic = made(TopicExchange)
    patterns = [".".join(words) + ".#" + ".a.#" * 50 for words in product("a*", repeat=10)]
    first, *_ = [bound(topic, pattern, pattern) for pattern in patterns]
    key = "a." * 126 + "a"
    assert sorted(routed(topic, key)) == sorted(patterns)
    started = time.process_time()
    assert len(routed(topic, key)) == len(patterns)
    assert time.process_time() - started < 0.3
    topic.unbind(first)
    bound(topic, "a.#.b", "another")
    assert sorted(routed(topic, key)) == sorted(patterns[1:])
    assert sorted(routed(topic, "a." * 126 + "b")) == sorted([*patterns[1:], "another"])


def test_a_pattern_bound_by_many_queues_reaches_each_of_them() -> None:
    topic = made(TopicExchange)
    first = bound(topic, "a.#", "q1")
    bound(topic, "a.#", "q2")
    assert routed(topic, "a.b") == ["q1", "q2"]
    topic.unbind(first)
    assert routed(topic, "a.b") == ["q2"]


def test_the_trie_is_empty_after_the_last_unbind() -> None:
    topic = made(TopicExchange)
    bindings = [bound(topic, key, "q") for key in ("a.b.c", "a.*", "#.c", "", "a.b")]
    for binding in bindings:
        topic.unbind(binding)
    assert topic._root.is_bare()
    assert topic.bindings == 0
