"""Names that a list is filtered by: those that have something in them, or that a pattern is found in.

Every name of a list is looked at, in pieces, and what a client sends must not hold the loop up. A pattern
without groups and with two repetitions at most is quadratic in a name at worst, and is searched as it is. Any
other could take for ever, and has so much time for each name and for all.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import thread_time
from typing import Protocol

import regex

from warren.limits import NAMES_PER_TURN, PATTERN_NAME_S, PATTERN_TIME_S, PATTERNS_PER_TURN
from warren.model.patterns import is_too_large

# What repeats, and what more than characters, sets and places there may be in a pattern.
_REPEATS = re.compile(r"[*+?]")
_INVOLVED = re.compile(r"[({]|\[\[|\[:|\\[^dws.*+?\-|\[\]]")
_REPEATS_MAX = 2
_PLAIN_LENGTH_MAX = 200
_COSTLY = "the regular expression takes too long: one without groups and with fewer repetitions is quick"
# Names between two looks at the clock.
_TIMED = 8


class PatternError(Exception):
    """It is no pattern, or takes too long; the text says which."""


class NameFilter(Protocol):
    """Chooses names."""

    # How many may be looked at in one turn.
    per_turn: int

    def fits(self, names: Sequence[str]) -> list[bool]:
        """Which of `names` are chosen; PatternError if that takes too long."""
        ...


def name_filter(text: str, *, is_pattern: bool) -> NameFilter:
    """Chooses names that have `text` in them, whatever the case; PatternError if it is no pattern."""
    if not is_pattern:
        return SubstringFilter(text)
    if is_too_large(text):
        raise PatternError(f"the regular expression is too long: {len(text)} characters")
    try:
        if _is_quick(text):
            return QuickPatternFilter(re.compile(text, re.IGNORECASE).search)
        return TimedPatternFilter(regex.compile(text, regex.IGNORECASE, cache_pattern=False))
    except (re.error, regex.error) as error:
        raise PatternError(f"'{text}' is no regular expression: {error}") from None
    except (RecursionError, MemoryError, OverflowError):
        raise PatternError(f"the regular expression is too large: {len(text)} characters") from None


def _is_quick(pattern: str) -> bool:
    return (
        len(pattern) <= _PLAIN_LENGTH_MAX
        and len(_REPEATS.findall(pattern)) <= _REPEATS_MAX
        and not _INVOLVED.search(pattern)
    )


class SubstringFilter:
    """Names that have a text in them."""

    per_turn = NAMES_PER_TURN

    def __init__(self, text: str) -> None:
        self._text = text.lower()

    def fits(self, names: Sequence[str]) -> list[bool]:
        """Which have it."""
        text = self._text
        return [text in name.lower() for name in names]


class QuickPatternFilter:
    """Names that a pattern which cannot take long is found in."""

    per_turn = PATTERNS_PER_TURN

    def __init__(self, search: Callable[[str], object]) -> None:
        self._search = search

    def fits(self, names: Sequence[str]) -> list[bool]:
        """Which do."""
        search = self._search
        return [search(name) is not None for name in names]


class TimedPatternFilter:
    """Names that a pattern is found in which may take its time."""

    per_turn = PATTERNS_PER_TURN

    def __init__(self, pattern: "regex.Pattern[str]") -> None:
        self._pattern = pattern
        self._left = PATTERN_TIME_S

    def fits(self, names: Sequence[str]) -> list[bool]:
        """Which do. Names that took less than a harmless pattern may make up for one that took long, as any
        does on a machine that is busy with something else."""
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
        """Whether it is found in `name`; who is interrupted for a moment has a second try."""
        for share in (_TIMED, 1):
            with suppress(TimeoutError):
                return self._pattern.search(name, timeout=self._left / share) is not None
        raise PatternError(_COSTLY)
