"""Regular expressions in permissions and policies, with limits on their cost.

Compiling a pattern blocks the broker, and has no time limit: the size it would expand to is computed first,
and a too large pattern is refused. A match first runs with a short time limit, which suffices for a harmless
pattern. If it times out it runs once more with a longer limit, and a pattern has few such retries, which fast
matches restore. Without retries left the pattern is suspended: it matches no name for which the short limit
is exceeded. So a name crafted to be slow does not revoke what the same pattern permits to others.
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

# The most frequent permission; matches every text.
ANYTHING = ".*"
# The text about a suspended pattern.
TOO_SLOW = "the pattern takes too long: names that it does not match quickly are treated as not matching"
# Cached compiled patterns: a broker has few different ones.
_COMPILED_MAX = 1024
# The number of fast matches that restore one retry.
_EARNED_BY = 64
# PCRE's text for a pattern that is too large.
TOO_LARGE = "regular expression is too large"
# Digits of a repetition beyond these make no difference.
_DIGITS_MAX = 9
# A quantifier with numbers, or other text in braces after an item.
_REPEATS = regex.compile(r"\{(\d*)(?:,(\d*))?\}")
_CLASS_NAME = regex.compile(r"\{[^}]*\}")


def matches(pattern: str, text: str) -> bool:
    """True if `pattern` is found anywhere in `text`; a match that takes too long is none."""
    return pattern == ANYTHING or pattern_of(pattern).matches(text)


def is_suspended(pattern: str) -> bool:
    """True if `pattern` is suspended: it matches only within the short time limit."""
    known = _PATTERNS.get(pattern)
    return known is not None and known.is_suspended


def take_suspended() -> list[str]:
    """Return the patterns suspended since the last call, each once."""
    taken = list(_SUSPENDED)
    _SUSPENDED.clear()
    return taken


def pattern_error(pattern: str) -> tuple[str, int] | None:
    """The error in `pattern` and its position; None if it is a valid regular expression.

    A pattern that is far too large is not compiled, and never matches: see `new_pattern_error`.
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
    """Like `pattern_error`, with a smaller size limit for new patterns than for those in an existing log."""
    return (TOO_LARGE, 0) if is_too_large(pattern) else pattern_error(pattern)


def is_too_large(pattern: str, size_max: int = PATTERN_SIZE_MAX) -> bool:
    """True if `pattern` would take too long to compile."""
    return len(pattern) > size_max or expanded_size(pattern) > size_max


def expanded_size(pattern: str) -> int:
    """The number of items of `pattern` with expanded repetitions; above every limit if nested too deep."""
    # The size so far of each open group.
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
    """The number of times an item of `size` is compiled with repetition `numbers`."""
    times = max((int(number[:_DIGITS_MAX]) for number in numbers if number), default=1)
    # A single character is compiled once, and matches no more often than the length of the name.
    return max(1, min(times, PATTERN_TEXT_MAX) if size == 1 else times)


class Pattern:
    """A pattern with its remaining retries."""

    __slots__ = ("_compiled", "_quick", "_slow_left", "is_suspended", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._compiled: regex.Pattern[str] | None = None
        self._slow_left = PATTERN_SLOW_MAX
        self._quick = 0
        self.is_suspended = False

    def compile(self) -> "regex.Pattern[str]":
        """Compile it; regex.error if it is invalid."""
        if self._compiled is None:
            self._compiled = regex.compile(self.text, cache_pattern=False)
        return self._compiled

    def matches(self, text: str) -> bool:
        """True if it is found anywhere in `text` within the time limits."""
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
    """The shared pattern with `text`."""
    known = _PATTERNS.get(text)
    if known is None:
        known = _PATTERNS[text] = Pattern(text)
        if len(_PATTERNS) > _COMPILED_MAX:
            _PATTERNS.popitem(last=False)
    else:
        _PATTERNS.move_to_end(text)
    return known


def _end_of_set(pattern: str, at: int) -> int:
    """The end of the set whose first character is at `at`; sets may be nested."""
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
