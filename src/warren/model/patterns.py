"""Regular expressions of users, as permissions and policies hold them: what one costs has bounds.

A pattern is compiled while nobody else is served, and compiling has no bound of time: what it would grow to
is counted before, and too much is refused. A match has a moment that is free, more than a harmless pattern
needs. One that takes longer has a second, longer try, and a pattern has few of these; quick matches earn them
back. When none is left the pattern is suspended: it is found in no name for which the free moment is not
enough. So a name that somebody made up for it ends no permission that others have by the same pattern.
"""

from collections import OrderedDict
from collections.abc import Sequence

import regex

from warren.limits import (
    PATTERN_DEPTH_MAX,
    PATTERN_GRACE_S,
    PATTERN_KEPT_SIZE_MAX,
    PATTERN_MATCH_S,
    PATTERN_SIZE_MAX,
    PATTERN_SLOW_MAX,
    PATTERN_TEXT_MAX,
)

# What most permissions say, and what is found in every text.
ANYTHING = ".*"
# What is said of one that is suspended.
TOO_SLOW = "the pattern takes too long: it is not found in a name for which that is not quickly seen"
# Compiled patterns kept: a broker has few different ones.
_COMPILED_MAX = 1024
# So many quick matches earn one slow one.
_EARNED_BY = 64
# PCRE's words for a pattern that is too much.
TOO_LARGE = "regular expression is too large"
# More digits than these do not make a number more harmful.
_DIGITS_MAX = 9
# A quantifier with numbers, and what else stands in braces behind an item.
_REPEATS = regex.compile(r"\{(\d*)(?:,(\d*))?\}")
_CLASS_NAME = regex.compile(r"\{[^}]*\}")


def matches(pattern: str, text: str) -> bool:
    """True if `pattern` is found anywhere in `text`; one that takes too long is not found."""
    return pattern == ANYTHING or pattern_of(pattern).matches(text)


def is_suspended(pattern: str) -> bool:
    """Whether `pattern` has taken so long that it is found only where that is quickly seen."""
    known = _PATTERNS.get(pattern)
    return known is not None and known.is_suspended


def take_suspended() -> list[str]:
    """The patterns that were suspended since this was asked, each once."""
    taken = list(_SUSPENDED)
    _SUSPENDED.clear()
    return taken


def pattern_error(pattern: str) -> tuple[str, int] | None:
    """What is wrong with `pattern`, and where; None if it is a regular expression.

    One that is far too large is not looked at, and never found: see `new_pattern_error`.
    """
    if is_too_large(pattern, PATTERN_KEPT_SIZE_MAX):
        return None
    try:
        pattern_of(pattern).compile()
    except regex.error as error:
        message, _, position = str(error).rpartition(" at position ")
        return (message, int(position)) if position.isdigit() else (str(error), 0)
    except (RecursionError, MemoryError, OverflowError):
        return TOO_LARGE, 0
    return None


def new_pattern_error(pattern: str) -> tuple[str, int] | None:
    """As `pattern_error`, and more strict: one that an older log holds may be larger than a new one."""
    return (TOO_LARGE, 0) if is_too_large(pattern) else pattern_error(pattern)


def is_too_large(pattern: str, size_max: int = PATTERN_SIZE_MAX) -> bool:
    """Whether `pattern` would take too long to compile."""
    return len(pattern) > size_max or expanded_size(pattern) > size_max


def expanded_size(pattern: str) -> int:
    """How many items `pattern` has when its repetitions are written out; more than any bound if too deep."""
    # Of each group that is open: how large it is so far.
    sizes = [0]
    item = at = 0
    while at < len(pattern):
        sign = pattern[at]
        at += 1
        if sign == "(":
            if len(sizes) > PATTERN_DEPTH_MAX:
                return PATTERN_KEPT_SIZE_MAX + 1
            sizes.append(1)
            continue
        if sign == ")":
            item = sizes.pop() if len(sizes) > 1 else 1
        elif sign == "{" and (times := _REPEATS.match(pattern, at - 1)):
            at = times.end()
            item *= _repeated(times.groups(), item) - 1
        elif sign == "\\":
            named = _CLASS_NAME.match(pattern, at + 1) if pattern[at : at + 1] in "pPNgk" else None
            at = named.end() if named else at + 1
            item = 1
        elif sign == "[":
            end = _end_of_set(pattern, at)
            item, at = 1 + (end - at) // 8, end
        else:
            item = 1
        sizes[-1] += item
        if sizes[-1] > PATTERN_KEPT_SIZE_MAX:
            return sizes[-1]
    return sum(sizes)


def _repeated(numbers: Sequence[str | None], size: int) -> int:
    """How often an item of `size` is compiled that is repeated by these numbers."""
    times = max((int(number[:_DIGITS_MAX]) for number in numbers if number), default=1)
    # A single sign is compiled once, and found in a name no more often than it has signs.
    return max(1, min(times, PATTERN_TEXT_MAX) if size == 1 else times)


class Pattern:
    """One of them, and what its slow matches may still cost."""

    __slots__ = ("_compiled", "_quick", "_slow_left", "is_suspended", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._compiled: regex.Pattern[str] | None = None
        self._slow_left = PATTERN_SLOW_MAX
        self._quick = 0
        self.is_suspended = False

    def compile(self) -> "regex.Pattern[str]":
        """It, ready to be searched; regex.error if it is none."""
        if self._compiled is None:
            self._compiled = regex.compile(self.text, cache_pattern=False)
        return self._compiled

    def matches(self, text: str) -> bool:
        """True if it is found anywhere in `text`, and that is seen in time."""
        if self.text == ANYTHING:
            return True
        if self._compiled is None and is_too_large(self.text, PATTERN_KEPT_SIZE_MAX):
            self._suspend()
            return False
        try:
            found = self.compile().search(text, timeout=PATTERN_GRACE_S) is not None
        except (TimeoutError, MemoryError):
            return self._matches_slowly(text)
        self._quick += 1
        if self._quick >= _EARNED_BY:
            self._quick = 0
            if self._slow_left < PATTERN_SLOW_MAX:
                self._slow_left += 1
        return found

    def _matches_slowly(self, text: str) -> bool:
        if self._slow_left <= 0:
            return False
        self._slow_left -= 1
        if not self._slow_left:
            self._suspend()
        try:
            return self.compile().search(text, timeout=PATTERN_MATCH_S) is not None
        except (TimeoutError, MemoryError):
            return False

    def _suspend(self) -> None:
        if not self.is_suspended:
            self.is_suspended = True
            if len(_SUSPENDED) < _COMPILED_MAX:
                _SUSPENDED[self.text] = None


_PATTERNS: OrderedDict[str, Pattern] = OrderedDict()
_SUSPENDED: dict[str, None] = {}


def pattern_of(text: str) -> Pattern:
    """The pattern that `text` is, which its holders share."""
    known = _PATTERNS.get(text)
    if known is None:
        known = _PATTERNS[text] = Pattern(text)
        if len(_PATTERNS) > _COMPILED_MAX:
            _PATTERNS.popitem(last=False)
    else:
        _PATTERNS.move_to_end(text)
    return known


def _end_of_set(pattern: str, at: int) -> int:
    """Where the set ends whose first sign is at `at`; sets may have sets in them."""
    depth = 1
    if pattern[at : at + 1] == "^":
        at += 1
    if pattern[at : at + 1] == "]":
        at += 1
    while at < len(pattern) and depth:
        sign = pattern[at]
        at += 2 if sign == "\\" else 1
        if sign == "[":
            depth += pattern[at : at + 1] == ":"
        elif sign == "]":
            depth -= 1
    return min(at, len(pattern))
