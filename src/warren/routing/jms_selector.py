"""Selectors of JMS: conditions on headers, as RabbitMQ's client for JMS compiles them from SQL.

    priority > 5 AND kind LIKE 'a%'

    {'and', {'>', {'ident', <<"priority">>}, 5}, {'like', {'ident', <<"kind">>}, <<"a%">>, no_escape}}.

A condition is true, false or, with a header that is missing or has the wrong type, unknown (None). Values are
compared in the order of Erlang: numbers, then true and false, then strings.
"""

from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import TypeAlias

from warren.model.erlang_reader import MapTerm, Term, TermError, read_terms
from warren.model.erlang_terms import Atom

Value: TypeAlias = "bool | int | float | str | None"

_COMPARISONS = {"=": eq, "<>": ne, ">": gt, "<": lt, ">=": ge, "<=": le}
_ARITHMETIC: Mapping[str, Callable[[float, float], float | None]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right if right else None,
}
_ANY, _ONE = "%", "_"


class SelectorError(Exception):
    """The text is no selector."""


class JmsSelector:
    """One selector."""

    def __init__(self, text: str) -> None:
        """Parse `text`, an Erlang term with a dot at its end. Raises SelectorError."""
        try:
            terms = read_terms(text)
        except TermError as error:
            raise SelectorError(str(error)) from None
        if len(terms) != 1:
            raise SelectorError("there must be one term")
        self._term = terms[0]
        _check(self._term)

    def selects(self, headers: Mapping[str, object]) -> bool:
        """True if the condition is true for `headers`."""
        return _evaluated(self._term, headers) is True


def _check(term: Term) -> None:
    """Raise SelectorError if `term` has a part that is no expression."""
    if isinstance(term, MapTerm) or (isinstance(term, tuple) and (not term or not isinstance(term[0], Atom))):
        raise SelectorError("an expression must be a value, or a tuple that begins with its operator")
    if isinstance(term, tuple):
        for part in term[1:]:
            _check(part)


def _evaluated(term: Term, headers: Mapping[str, object]) -> Value:
    """Evaluate an expression."""
    match term:
        case (Atom("ident"), bytes(name)):
            return _value(headers.get(_text(name)))
        case (Atom("not"), part):
            return _negated(_evaluated(part, headers))
        case (Atom("is_null"), part):
            return _evaluated(part, headers) is None
        case (Atom("not_null"), part):
            return _evaluated(part, headers) is not None
        case (Atom("-" | "+" as sign), part):
            number = _number(_evaluated(part, headers))
            return None if number is None else -number if sign == "-" else number
        case (Atom("and"), left, right):
            return _both(_evaluated(left, headers), _evaluated(right, headers))
        case (Atom("or"), left, right):
            return _negated(_both(_negated(_evaluated(left, headers)), _negated(_evaluated(right, headers))))
        case (Atom("like"), part, bytes(pattern), escape):
            return _is_like(_evaluated(part, headers), pattern, escape)
        case (Atom("not_like"), part, bytes(pattern), escape):
            return _negated(_is_like(_evaluated(part, headers), pattern, escape))
        case (Atom("between"), part, (Atom("range"), low, high)) | (Atom("between"), part, low, high):
            return _is_between(*(_evaluated(each, headers) for each in (part, low, high)))
        case (Atom("not_between"), part, (Atom("range"), low, high)) | (Atom("not_between"), part, low, high):
            return _negated(_is_between(*(_evaluated(each, headers) for each in (part, low, high))))
        case (Atom("in" | "not_in" as operator), part, list(values)):
            value = _evaluated(part, headers)
            if value is None:
                return None
            # Values must be equal in type as well, as in RabbitMQ.
            is_in = any(_is_same(_evaluated(each, headers), value) for each in values)
            return is_in is (operator == "in")
        case (Atom(operator), left, right):
            return _combined(operator, _evaluated(left, headers), _evaluated(right, headers))
        case Atom("true" | "false"):
            return term == "true"
        case bytes():
            return _text(term)
        case int() | float():
            return term
        case _:
            return None


def _combined(operator: str, left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    if operator in _COMPARISONS:
        is_true: bool = _COMPARISONS[operator](_rank(left), _rank(right))
        return is_true
    one, other = _number(left), _number(right)
    if operator not in _ARITHMETIC or one is None or other is None:
        return None
    try:
        return _ARITHMETIC[operator](one, other)
    except OverflowError:
        return None


def _is_same(one: Value, other: Value) -> bool:
    return _kind(one) is _kind(other) and one == other


def _kind(value: Value) -> type:
    """Return the type of a value; headers have types of their own for integers of each size."""
    return next((kind for kind in (bool, int, float, str) if isinstance(value, kind)), type(None))


def _both(left: Value, right: Value) -> bool | None:
    if left is False or right is False:
        return False
    return True if left is True and right is True else None


def _negated(value: Value) -> bool | None:
    return not value if isinstance(value, bool) else None


def _is_between(value: Value, low: Value, high: Value) -> bool | None:
    if value is None or low is None or high is None:
        return None
    return _rank(low) <= _rank(value) <= _rank(high)


def _is_like(value: Value, pattern: bytes, escape: Term) -> bool | None:
    """True if the whole of `value` matches, with % for any characters and _ for one."""
    if not isinstance(value, str):
        return None
    escaping = _text(escape) if isinstance(escape, bytes) else ""
    return _matches(value, _pieces(_text(pattern), escaping))


def _pieces(pattern: str, escape: str) -> list[tuple[str, bool]]:
    """Return the characters of `pattern`, each with whether it stands for others."""
    pieces: list[tuple[str, bool]] = []
    is_escaped = False
    for character in pattern:
        if is_escaped or character != escape:
            pieces.append((character, not is_escaped and character in (_ANY, _ONE)))
            is_escaped = False
        else:
            is_escaped = True
    return pieces


def _matches(value: str, pieces: list[tuple[str, bool]]) -> bool:
    """Match without backtracking over more than the last %, so that the time is bounded."""
    at = piece = 0
    back_to, from_value = -1, 0
    while at < len(value):
        if piece < len(pieces) and pieces[piece] == (_ANY, True):
            back_to, from_value = piece, at
            piece += 1
        elif piece < len(pieces) and pieces[piece] in ((_ONE, True), (value[at], False)):
            at, piece = at + 1, piece + 1
        elif back_to >= 0:
            from_value += 1
            at, piece = from_value, back_to + 1
        else:
            return False
    return all(each == (_ANY, True) for each in pieces[piece:])


def _value(header: object) -> Value:
    """Return a header as a value; None for tables, arrays and others that cannot be compared."""
    return header if isinstance(header, bool | int | float | str) else None


def _number(value: Value) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _rank(value: bool | int | float | str) -> tuple[int, int | float, bytes]:
    """Return what orders values of all types as Erlang does."""
    if isinstance(value, str):
        return 2, 0, value.encode("utf-8", "surrogateescape")
    return (1, int(value), b"") if isinstance(value, bool) else (0, value, b"")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
