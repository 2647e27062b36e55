"""Regular expressions in permissions and policies: PCRE's, with limits on their cost.

Compiling a pattern blocks the broker, and has no limit of its own: the size it would expand to is computed
first, and a too large pattern is refused. A match may first take few steps, which suffice for a harmless
pattern. If it takes more it runs once more with a larger limit, and a pattern has few such retries, which
quick matches restore. Without retries left the pattern is suspended: it matches no name for which the small
limit is exceeded. So a name crafted to be slow does not revoke what the same pattern permits to others.

Names and patterns are matched as UTF-8 bytes, as RabbitMQ matches them: `.` is one byte.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

import pcre2

from warren.limits import (
    PATTERN_DEPTH_MAX,
    PATTERN_HEAP_KIB,
    PATTERN_KEPT_SIZE_MAX,
    PATTERN_SIZE_MAX,
    PATTERN_SLOW_MAX,
    PATTERN_SLOW_STEPS_MAX,
    PATTERN_STEPS_MAX,
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
_REPEATS = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_CLASS_NAME = re.compile(r"\{[^}]*\}")
# What a pattern consists of, as far as it matters here: quoted text, hexadecimal and other escapes, POSIX
# classes, and single characters.
_PART = re.compile(
    r"(?P<quoted>\\Q.*?(?:\\E|\Z))|\\x(?:\{(?P<braced>[0-9A-Fa-f]+)\}|(?P<short>[0-9A-Fa-f]{0,2})(?!\{))"
    r"|\\g(?:<[+-]?0>|'[+-]?0')|\\.|\[:\^?[a-z]+:\]|\(\?(?:R|[+-]?0)\)|\(\*|.",
    re.DOTALL,
)
_UNKNOWN_ESCAPES = {"\\u", "\\U", "\\x"}
_WHOLE_RECURSION = ("\\g<", "\\g'", "(?")
_MULTILINE = re.compile(r"\(\?[A-Za-z^-]*m")
# PCRE's texts before PCRE2, which RabbitMQ shows up to Erlang 27, by the number of the error.
_TEXTS = {109: "nothing to repeat", 114: "missing )", 122: "unmatched parentheses"}


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
    except PatternSyntaxError as error:
        return error.message, error.position
    return None


class PatternSyntaxError(Exception):
    """The text is not a regular expression of PCRE, or one with a construct that is not supported."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


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


class _Compiled(Protocol):
    def search(self, text: bytes) -> object:
        """The first match in `text`; None if there is none."""


class Pattern:
    """A pattern with its remaining retries."""

    __slots__ = ("_compiled", "_patient", "_quick", "_slow_left", "_source", "is_suspended", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._source = b""
        self._compiled: _Compiled | None = None
        # With the larger limit, when it was needed.
        self._patient: _Compiled | None = None
        self._slow_left = PATTERN_SLOW_MAX
        self._quick = 0
        self.is_suspended = False

    def compile(self) -> None:
        """Compile it, unless it is compiled; PatternSyntaxError if it is invalid."""
        if self._compiled is None:
            self._source = _searching(self.text)
            self._compiled = _compiled(self._source, PATTERN_STEPS_MAX)

    def matches(self, text: str) -> bool:
        """True if it is found anywhere in `text` within the limits."""
        if self.text == ANYTHING:
            return True
        if self._compiled is None and is_too_large(self.text, PATTERN_KEPT_SIZE_MAX):
            self._suspend()
            return False
        name = _bytes(text)
        try:
            self.compile()
            assert self._compiled is not None
            found = self._compiled.search(name) is not None
        except pcre2.LibraryError:
            return self._matches_slowly(name)
        except PatternSyntaxError:
            # Of an older log, which had another syntax, or made of a part that a client has chosen.
            self._suspend()
            return False
        self._quick += 1
        if self._quick >= _EARNED_BY:
            self._quick = 0
            if self._slow_left < PATTERN_SLOW_MAX:
                self._slow_left += 1
        return found

    def _matches_slowly(self, name: bytes) -> bool:
        if self._slow_left <= 0:
            return False
        self._slow_left -= 1
        if not self._slow_left:
            self._suspend()
        if self._patient is None:
            self._patient = _compiled(self._source, PATTERN_SLOW_STEPS_MAX)
        try:
            return self._patient.search(name) is not None
        except pcre2.LibraryError:
            return False

    def _suspend(self) -> None:
        if not self.is_suspended:
            self.is_suspended = True
            if len(_SUSPENDED) < _COMPILED_MAX:
                _SUSPENDED[self.text] = None


def _compiled(source: bytes, steps: int) -> _Compiled:
    limits = f"(*LIMIT_MATCH={steps})(*LIMIT_DEPTH={steps})(*LIMIT_HEAP={PATTERN_HEAP_KIB})"
    try:
        compiled: _Compiled = pcre2.compile(limits.encode("ascii") + source, jit=False)
    except pcre2.PatternError as error:
        raise PatternSyntaxError(_TEXTS.get(error.code) or _reason(error), 0) from None
    return compiled


def _reason(error: "pcre2.PatternError") -> str:
    return str(error.msg).partition("; ")[2] or str(error.msg)


def _searching(text: str) -> bytes:
    """`text` for PCRE2, so that it is found anywhere by one attempt, at the beginning of a name.

    PCRE2 counts the steps of each attempt for itself, and a name has an attempt for each of its bytes.
    """
    source, is_anchored = _translated(text)
    try:
        pcre2.compile(source, jit=False)
    except pcre2.PatternError as error:
        message = _TEXTS.get(error.code) or _reason(error)
        raise PatternSyntaxError(message, len(source[: error.pos].decode("utf-8", "replace"))) from None
    if is_anchored:
        return source
    # The end of a quotation, and of a comment of the extended syntax, that the pattern leaves open.
    for end in (b"\\E)", b"\\E\n)"):
        whole = b"\\A(?s:.*?)(?:" + source + end
        try:
            pcre2.compile(whole, jit=False)
        except pcre2.PatternError:
            continue
        return whole
    raise PatternSyntaxError("the pattern cannot be searched for in one attempt", 0)


def _translated(text: str) -> tuple[bytes, bool]:
    """`text` for the binding, and True if it can only match at the beginning of a name.

    The binding compiles `\\x` and `\\u` as JavaScript does: the first is written in octal, the other, which
    RabbitMQ refuses, is refused.
    """
    parts: list[str] = []
    is_anchored = _MULTILINE.search(text) is None
    in_class, depth, begins = False, 0, True
    for found in _PART.finditer(text):
        part = found[0]
        is_first, begins = begins, False
        digits = found["braced"] if found["braced"] is not None else found["short"]
        if digits is not None:
            part = f"\\o{{{int(digits or '0', 16):o}}}"
        elif part in _UNKNOWN_ESCAPES:
            raise PatternSyntaxError(f"{part} is not supported here", found.start())
        elif in_class:
            # A bracket that is the first of a class belongs to it.
            if part == "]" and text[: found.start()].rstrip("^")[-1:] != "[":
                in_class = False
        elif part == "[":
            in_class = True
        elif part == "(*":
            raise PatternSyntaxError("(* verbs and options are not supported", found.start())
        elif part.startswith(_WHOLE_RECURSION):
            raise PatternSyntaxError("recursion of the whole pattern is not supported", found.start())
        else:
            depth += (part == "(") - (part == ")")
            begins = part == "|" and depth == 0
        if is_first and part not in ("^", "\\A"):
            is_anchored = False
        parts.append(part)
    return _bytes("".join(parts)), is_anchored and not begins


def _bytes(text: str) -> bytes:
    """`text` as it was received: bytes that are not UTF-8 are surrogates in it."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


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
