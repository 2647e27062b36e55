"""Filters of lists by name: names that contain a text, or that match a regular expression.

All names of a list are examined, in slices, and a pattern of a client must not block the event loop. A
pattern without groups and with at most two repetitions is at worst quadratic in the length of a name, and is
searched without a time limit. Any other pattern could take exponential time; it is limited to PATTERN_NAME_S
for a name and PATTERN_TIME_S for a list.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import thread_time
from typing import Protocol

import regex

from warren.limits import NAMES_PER_TURN, PATTERN_NAME_S, PATTERN_TIME_S, PATTERNS_PER_TURN
from warren.model.patterns import is_too_large

# Repetitions, and constructs other than characters, sets and anchors.
_REPEATS = re.compile(r"[*+?]")
_INVOLVED = re.compile(r"[({]|\[\[|\[:|\\[^dws.*+?\-|\[\]]")
_REPEATS_MAX = 2
_PLAIN_LENGTH_MAX = 200
_COSTLY = "the regular expression takes too long: use one without groups and with fewer repetitions"
# The number of names between two readings of the clock.
_TIMED = 8


class PatternError(Exception):
    """The pattern is invalid or takes too long; the text says which."""


class NameFilter(Protocol):
    """Selects names."""

    # How many names may be examined in one turn of the event loop.
    per_turn: int

    def fits(self, names: Sequence[str]) -> list[bool]:
        """For each of `names`, True if it is selected; raises PatternError if the pattern takes too long."""
        ...


def name_filter(text: str, *, is_pattern: bool, ignores_case: bool = True) -> NameFilter:
    """A filter for names that contain `text`, or match it; PatternError if a pattern is invalid.

    Only patterns can be compared without ignoring case.
    """
    if not is_pattern:
        return SubstringFilter(text)
    if is_too_large(text):
        raise PatternError(f"the regular expression is too long: {len(text)} characters")
    try:
        if _is_quick(text):
            return QuickPatternFilter(re.compile(text, re.IGNORECASE if ignores_case else 0).search)
        return TimedPatternFilter(
            regex.compile(text, regex.IGNORECASE if ignores_case else 0, cache_pattern=False)
        )
    except (re.error, regex.error) as error:
        raise PatternError(f"'{text}' is not a regular expression: {error}") from None
    except (RecursionError, MemoryError, OverflowError):
        raise PatternError(f"the regular expression is too large: {len(text)} characters") from None


def _is_quick(pattern: str) -> bool:
    return (
        len(pattern) <= _PLAIN_LENGTH_MAX
        and len(_REPEATS.findall(pattern)) <= _REPEATS_MAX
        and not _INVOLVED.search(pattern)
    )


class SubstringFilter:
    """Selects names that contain a text, ignoring case."""

    per_turn = NAMES_PER_TURN

    def __init__(self, text: str) -> None:
        self._text = text.lower()

    def fits(self, names: Sequence[str]) -> list[bool]:
        """For each of `names`, True if it contains the text."""
        text = self._text
        return [text in name.lower() for name in names]


class QuickPatternFilter:
    """Selects names that match a pattern which is known to be fast."""

    per_turn = PATTERNS_PER_TURN

    def __init__(self, search: Callable[[str], object]) -> None:
        self._search = search

    def fits(self, names: Sequence[str]) -> list[bool]:
        """For each of `names`, True if the pattern matches."""
        search = self._search
        return [search(name) is not None for name in names]


class TimedPatternFilter:
    """Selects names that match a pattern which may be slow, within a time limit."""

    per_turn = PATTERNS_PER_TURN

    def __init__(self, pattern: "regex.Pattern[str]") -> None:
        self._pattern = pattern
        self._left = PATTERN_TIME_S

    def fits(self, names: Sequence[str]) -> list[bool]:
        """For each of `names`, True if the pattern matches; raises PatternError if it takes too long.

        Names that took less than PATTERN_NAME_S make up for one that took longer, as happens with any pattern
        on a busy machine.
        """
        found: list[bool] = []
        for at in range(0, len(names), _TIMED):
            start = thread_time()
            found += map(self._is_in, names[at : at + _TIMED])
            spent = thread_time() - start
            self._left = min(PATTERN_TIME_S, self._left + _TIMED * PATTERN_NAME_S - spent)
            if self._left <= 0:
                raise PatternError(_COSTLY)
        return found

    def _is_in(self, name: str) -> bool:
        """True if the pattern matches `name`; a search that times out is tried once more, with more time."""
        for share in (_TIMED, 1):
            with suppress(TimeoutError):
                return self._pattern.search(name, timeout=self._left / share) is not None
        raise PatternError(_COSTLY)
