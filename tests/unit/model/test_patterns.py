"""Regular expressions of users, bounded in time."""

from warren.model.patterns import matches, pattern_error


def test_a_pattern_is_found_anywhere() -> None:
    assert matches("b+", "abc")
    assert not matches("^b", "abc")
    assert matches("", "")


def test_a_pattern_that_takes_too_long_is_not_found() -> None:
    assert not matches("^(a|aa)+$", "a" * 200 + "b")


def test_what_is_no_pattern_is_said_and_where() -> None:
    assert pattern_error("(") == ("missing )", 1)
    assert pattern_error("^amq\\.gen-[[:alnum:]]+$") is None
