"""Regular expressions of users: what they match, and the bound on the time of a match."""

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

# Each is slow for a reason of its own: nested, overlapping and counted repetitions, back references,
# lookaround, recursion, Unicode properties, and exponential growth.
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
    "(?<=(a|aa){1,9})c",
    "((?:(?1)a|aa|a)*)b",
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


def test_a_pattern_matches_anywhere() -> None:
    assert matches("b+", "abc")
    assert not matches("^b", "abc")
    assert matches("", "")


def test_a_pattern_that_takes_too_long_does_not_match() -> None:
    assert not matches("^(a|aa)+$", "a" * 200 + "b")


def test_an_invalid_pattern_is_an_error_with_its_place() -> None:
    assert pattern_error("(") == ("missing )", 1)
    assert pattern_error("^amq\\.gen-[[:alnum:]]+$") is None


# What RabbitMQ 3.10.8 answers: a name, and whether the pattern is found in it.
MEANT = [
    (r"^\Qorders.eu\E$", "orders.eu", True),
    (r"^\Qorders.eu\E$", "ordersxeu", False),
    (r"^\Qopen", "open", True),
    (r"(?<x>a|b)\k<x>", "bb", True),
    (r"(?<x>a|b)\k<x>", "ab", False),
    (r"(?P<x>a)(?P=x)", "aa", True),
    (r"^\N+$", "abc", True),
    ("a++b", "aab", True),
    ("a++a", "aa", False),
    ("(?>a|ab)c", "abc", False),
    (r"^\x41\x{42}$", "AB", True),
    (r"^\x{e9}", "é", False),
    (r"^\xc3\xa9$", "é", True),
    ("^.$", "é", False),
    ("(?i)^É", "é", False),
    ("(?i)^E", "e", True),
    (r"^[^]x]y[(*]$", "ay*", True),
    (r"^\(*a", "((a", True),
    ("(?x) a b # c", "ab", True),
    (r"(?x) a b # \Q", "ab", True),
    ("^(a)?(?(1)b|c)$", "c", True),
    ("(?1)(a|b)", "ba", True),
    (r"^amq\.gen-[[:alnum:]]+$", "amq.gen-1", True),
    ("a|^b", "xb", False),
    ("^a|b", "xb", True),
    (r"(?m)^b", "a\nb", True),
    ("b$", "ab\n", True),
    (r"b\z", "ab\n", False),
]


@pytest.mark.parametrize(("pattern", "name", "is_found"), MEANT)
def test_a_pattern_means_what_it_means_to_rabbitmq(pattern: str, name: str, is_found: bool) -> None:
    assert new_pattern_error(pattern) is None
    assert matches(pattern, name) is is_found


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"^a\u0041", (r"\u is not supported here", 2)),
        (r"\x{zz}", (r"\x is not supported here", 0)),
        ("(*UTF)a", ("(* verbs and options are not supported", 0)),
        ("a(?R)?b", ("recursion of the whole pattern is not supported", 1)),
        (r"(a\g<0>)", ("recursion of the whole pattern is not supported", 2)),
        ("a)", ("unmatched parentheses", 1)),
        ("*", ("nothing to repeat", 0)),
        ("[a", ("missing terminating ] for character class", 2)),
        ("(?<=(a|aa)*)c", ("length of lookbehind assertion is not limited", 0)),
    ],
)
def test_what_is_not_supported_is_refused_with_a_sentence(pattern: str, reason: tuple[str, int]) -> None:
    message, position = new_pattern_error(pattern) or ("", -1)
    assert message == reason[0]
    assert position in (reason[1], reason[1] + 1)


def test_a_pattern_and_a_name_may_be_bytes_that_are_no_text() -> None:
    assert matches("^\udcff$", "\udcff")
    assert matches(r"^\xff$", "\udcff")
    assert matches("^\ud800$", "\ud800")


def test_a_pattern_that_is_no_longer_valid_matches_nothing_and_is_reported() -> None:
    assert not matches("(*UTF)a", "a")
    assert take_suspended() == ["(*UTF)a"]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_hostile_pattern_takes_a_bounded_processor_time(pattern: str) -> None:
    """The bound is in time of this thread; without it, 1,000 names would take days."""
    assert new_pattern_error(pattern) is None
    before = time.thread_time()
    for at, name in product(range(200), NAMES):
        matches(pattern, f"{at}{name}")
    steps = 1_000 * limits.PATTERN_STEPS_MAX + limits.PATTERN_SLOW_MAX * limits.PATTERN_SLOW_STEPS_MAX
    # A step takes some 10 ns, up to 150 if it compares a whole name; the interpreter takes time as well.
    assert time.thread_time() - before < steps * 200e-9


def test_a_pattern_that_used_up_its_time_is_suspended_and_reported_once() -> None:
    hostile = "^(a|aa)+$"
    for number in range(limits.PATTERN_SLOW_MAX + 10):
        assert not matches(hostile, "a" * 200 + str(number))
    assert is_suspended(hostile)
    assert take_suspended() == [hostile]
    assert take_suspended() == []


def test_a_suspended_pattern_still_matches_ordinary_names() -> None:
    shared = "^(team-a|(t+)+)$"
    for number in range(limits.PATTERN_SLOW_MAX + 10):
        matches(shared, "t" * 200 + str(number))
    assert is_suspended(shared)
    assert matches(shared, "team-a")
    assert not matches(shared, "team-b")


def test_quick_matches_restore_the_time_allowance() -> None:
    hostile = "^(a|aa)+$"
    for number in range(3 * limits.PATTERN_SLOW_MAX):
        matches(hostile, "a" * 200 + str(number % 2))
        for _ in range(64):
            assert matches(hostile, "aa")
    assert not is_suspended(hostile)


def test_simple_patterns_are_never_suspended() -> None:
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
def test_the_size_of_a_pattern_includes_its_repetitions(pattern: str, size: int) -> None:
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
def test_a_pattern_that_takes_long_to_compile_is_refused_before_it_is_compiled(pattern: str) -> None:
    before = time.thread_time()
    assert new_pattern_error(pattern) == ("regular expression is too large", 0)
    # Compilation of one takes two seconds, that of the other would never end.
    assert time.thread_time() - before < 0.5


def test_an_oversized_pattern_of_an_old_log_is_accepted_and_matches_nothing() -> None:
    pattern = "(a{1000}){1000}|orders"
    assert pattern_error(pattern) is None
    assert not matches(pattern, "orders")
    assert take_suspended() == [pattern]


def test_patterns_made_from_scopes_may_be_larger() -> None:
    joined = "|".join(f"^orders-{number}$" for number in range(1_000))
    assert is_too_large(joined)
    assert matches(joined, "orders-17")
