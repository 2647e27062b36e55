"""Regular expressions of users, as permissions and policies hold them; each match has a bound on its time."""

from functools import lru_cache

import regex

from warren.limits import PATTERN_TIME_S

# What most permissions say, and what is found in every text.
ANYTHING = ".*"
# Compiled patterns kept: a broker has few different ones.
_COMPILED_MAX = 1024


def matches(pattern: str, text: str) -> bool:
    """True if `pattern` is found anywhere in `text`; one that takes too long is not found."""
    if pattern == ANYTHING:
        return True
    try:
        return _compiled(pattern).search(text, timeout=PATTERN_TIME_S) is not None
    except TimeoutError:
        return False


def pattern_error(pattern: str) -> tuple[str, int] | None:
    """What is wrong with `pattern`, and where; None if it is a regular expression."""
    try:
        _compiled(pattern)
    except regex.error as error:
        message, _, position = str(error).rpartition(" at position ")
        return (message, int(position)) if position.isdigit() else (str(error), 0)
    return None


@lru_cache(_COMPILED_MAX)
def _compiled(pattern: str) -> "regex.Pattern[str]":
    return regex.compile(pattern)
