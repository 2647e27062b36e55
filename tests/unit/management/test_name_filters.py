"""Filters by name: substrings without regard to case, and regular expressions with a time limit."""

import pytest

from warren.management import name_filters as names_module
from warren.management.name_filters import PatternError, QuickPatternFilter, TimedPatternFilter, name_filter

NAMES = ["orders", "Orders.new", "re-order", "a.b", "axb", "\u0130x"]


def chosen(text: str, *, is_pattern: bool) -> list[str]:
    fits = name_filter(text, is_pattern=is_pattern).fits(NAMES)
    return [name for name, is_chosen in zip(NAMES, fits, strict=True) if is_chosen]


def test_a_text_matches_anywhere_without_regard_to_case() -> None:
    assert chosen("ORDER", is_pattern=False) == ["orders", "Orders.new", "re-order"]
    assert chosen("a.b", is_pattern=False) == ["a.b"]
    assert chosen("^", is_pattern=False) == []


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("^order", ["orders", "Orders.new"]),
        ("a.b", ["a.b", "axb"]),
        (r"a\.b", ["a.b"]),
        ("^o.*s$", ["orders"]),
        ("^[a-b]", ["a.b", "axb"]),
        ("^(re-)?order", ["orders", "Orders.new", "re-order"]),
        (r"^\p{L}x", ["axb", "\u0130x"]),
        ("s|x", ["orders", "Orders.new", "axb", "\u0130x"]),
    ],
)
def test_a_regular_expression_matches_anywhere_without_regard_to_case(pattern: str, names: list[str]) -> None:
    assert chosen(pattern, is_pattern=True) == names


@pytest.mark.parametrize("pattern", ["(", "[", "*", "a**", "(?<", r"\1"])
def test_an_invalid_regular_expression_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        name_filter(pattern, is_pattern=True)


@pytest.mark.parametrize("pattern", ["^q4.*9$", r"orders\.", "a+b?", "x" * 200])
def test_a_pattern_without_backtracking_is_searched_without_a_limit(pattern: str) -> None:
    assert isinstance(name_filter(pattern, is_pattern=True), QuickPatternFilter)


@pytest.mark.parametrize("pattern", ["(a|a)*", "a*a*a*b", "a{1,9}", r"(a)\1", "[[:alpha:]]", "x" * 201])
def test_a_pattern_with_backtracking_is_searched_with_a_limit(pattern: str) -> None:
    assert isinstance(name_filter(pattern, is_pattern=True), TimedPatternFilter)


def test_a_pattern_that_takes_too_long_is_an_error() -> None:
    with pytest.raises(PatternError):
        name_filter("^(a|a)*(a|a)*(a|a)*$", is_pattern=True).fits(["a" * 60 + "b"])


def test_a_simple_pattern_may_search_many_names() -> None:
    names = [f"q{at:05}" for at in range(100_000)]
    assert sum(name_filter("^(q)[0-4]", is_pattern=True).fits(names)) == 50_000


def test_pauses_of_the_machine_do_not_exceed_the_limit_of_a_simple_pattern(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        calls.append(now)
        now += 0.03 if len(calls) % 2_000 == 0 else 0.000001
        return now

    calls: list[float] = []
    monkeypatch.setattr(names_module, "thread_time", clock)
    names = [f"q{at:05}" for at in range(100_000)]
    assert sum(name_filter("^(q)[0-4]", is_pattern=True).fits(names)) == 50_000
