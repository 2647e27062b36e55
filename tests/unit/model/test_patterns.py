"""Regular expressions of users: what they find, and what one of them costs at most."""

import time
from collections.abc import Iterator
from itertools import product

import pytest

from warren import limits
from warren.model import patterns
from warren.model.patterns import (
    expanded_size,
    is_suspended,
    is_too_large,
    matches,
    new_pattern_error,
    pattern_error,
    take_suspended,
)

# Each goes wrong in a way of its own: nested, overlapping and counted repetitions, groups that refer back,
# places that look around, recursion, properties of letters, approximate search, and what grows by itself.
HOSTILE = [
    "^(a+)+$",
    "^(a|a)*(a|a)*(a|a)*$",
    "(.*a){20}$",
    "(a?){200}a{200}",
    r"(?i)(\w+\s?)*$",
    "((a{1,10}){1,10}){1,10}$",
    r"(?i)([\p{L}\p{N}]+[\p{L}]+)*[\p{N}]{50}",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    r"^(?=(\w+)*$)x",
    r"(a*)*\1\1\1b",
    "(?:a{e<=30}b){e<=20}",
    "(?<=(a|aa)*)c",
    "(?:(?R)a|aa|a)*b",
    ".*" * 60 + "z",
    r"\X*\X*\X*z",
]
NAMES = ["a" * 254 + "!", "ab" * 127 + "!", "\u00e9" * 255, "aA1." * 63 + "!", "a b" * 80 + "!"]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    take_suspended()
    yield
    patterns._PATTERNS.clear()
    take_suspended()


def test_a_pattern_is_found_anywhere() -> None:
    assert matches("b+", "abc")
    assert not matches("^b", "abc")
    assert matches("", "")


def test_a_pattern_that_takes_too_long_is_not_found() -> None:
    assert not matches("^(a|aa)+$", "a" * 200 + "b")


def test_what_is_no_pattern_is_said_and_where() -> None:
    assert pattern_error("(") == ("missing )", 1)
    assert pattern_error("^amq\\.gen-[[:alnum:]]+$") is None


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_hostile_pattern_has_so_much_of_the_processor_and_no_more(pattern: str) -> None:
    """A generous bound in time of this thread, of which 1,000 names without one would take days."""
    assert new_pattern_error(pattern) is None
    before = time.thread_time()
    for at, name in product(range(200), NAMES):
        matches(pattern, f"{at}{name}")
    a_try = limits.PATTERN_GRACE_S + limits.PATTERN_MATCH_S
    bound = 1_000 * limits.PATTERN_GRACE_S + limits.PATTERN_SLOW_MAX * a_try
    # Looking at the clock takes time, too, and the interpreter between the matches.
    assert time.thread_time() - before < 20 * bound


def test_a_pattern_without_second_tries_is_suspended_and_named_once() -> None:
    hostile = "^(a|aa)+$"
    for number in range(limits.PATTERN_SLOW_MAX + 10):
        assert not matches(hostile, "a" * 200 + str(number))
    assert is_suspended(hostile)
    assert take_suspended() == [hostile]
    assert take_suspended() == []


def test_a_suspended_pattern_is_still_found_in_names_that_were_not_made_up_for_it() -> None:
    shared = "^(team-a|(t+)+)$"
    for number in range(limits.PATTERN_SLOW_MAX + 10):
        matches(shared, "t" * 200 + str(number))
    assert is_suspended(shared)
    assert matches(shared, "team-a")
    assert not matches(shared, "team-b")


def test_quick_matches_earn_slow_ones_back() -> None:
    hostile = "^(a|aa)+$"
    for number in range(3 * limits.PATTERN_SLOW_MAX):
        matches(hostile, "a" * 200 + str(number % 2))
        for _ in range(64):
            assert matches(hostile, "aa")
    assert not is_suspended(hostile)


def test_harmless_patterns_are_never_suspended() -> None:
    harmless = [
        r"^(?!secret\.).*",
        "^orders\\..*$",
        "|".join(f"^queue-{n}$" for n in range(100)),
        r"^(\w+)\.\1$",
    ]
    for pattern, number in product(harmless, range(300)):
        matches(pattern, f"orders.eu-{number}." + "x" * 200)
        assert matches(harmless[0], "orders")
    assert take_suspended() == []


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("abc", 3),
        ("(abc){100}", 400),
        ("((a{100}){100}){100}", 100 * (1 + 100 * (1 + 100))),
        ("(ab){2,30}", 90),
        ("(ab){7,}", 21),
        ("a{1000}", limits.PATTERN_TEXT_MAX),
        (r"\p{Lu}{3}", 3),
        (r"\{100}", 5),
        ("[(]{3}", 3),
        ("(?:){1,1000000000}", 10**9),
        ("a{,30}", 30),
        ("a{}", 1),
        ("a{2}{3}", 6),
        ("))", 2),
    ],
)
def test_the_size_of_a_pattern_is_counted_with_its_repetitions(pattern: str, size: int) -> None:
    bound = limits.PATTERN_KEPT_SIZE_MAX
    assert expanded_size(pattern) == pytest.approx(size, rel=0.5) or min(expanded_size(pattern), size) > bound


@pytest.mark.parametrize(
    "pattern",
    [
        "(a{1000}){1000}",
        "((((a{100}){100}){100}){100})",
        "(?:(?:(?:a{1,9999}){1,9999}){1,9999}){1,9999}",
        "(?:a?){100000}",
        "(?:){1,1000000000}x",
        "(" * 3000 + ")" * 3000,
        "a" * 5000,
        "(?:[[:alpha:]]x){5000}",
        "(ab){" + "9" * 5000 + "}",
        r"(?:\(x){5000}",
        "(?:[(x]y){5000}",
        "(?:[]x]y){5000}",
        "(?:[^]x]y){5000}",
    ],
)
def test_a_pattern_that_would_take_long_to_compile_is_refused_before(pattern: str) -> None:
    before = time.thread_time()
    assert new_pattern_error(pattern) == ("regular expression is too large", 0)
    # One of them took two seconds, another for ever.
    assert time.thread_time() - before < 0.5


def test_a_pattern_of_an_older_log_that_is_far_too_large_is_taken_and_found_nowhere() -> None:
    pattern = "(a{1000}){1000}|orders"
    assert pattern_error(pattern) is None
    assert not matches(pattern, "orders")
    assert take_suspended() == [pattern]


def test_what_many_scopes_make_is_no_new_pattern_and_may_be_larger() -> None:
    joined = "|".join(f"^orders-{number}$" for number in range(1_000))
    assert is_too_large(joined)
    assert matches(joined, "orders-17")
