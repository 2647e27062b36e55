"""Conditions that select messages by properties, headers and JSON bodies.

    routing_key=orders.eu    headers.tenant=acme    properties.priority>=5    body.total>100    body~refused

A condition is a field, an operator and a value. A value that is a number is compared with numbers as one;
`~` means "contains". A message without the field satisfies only the operator `!=`.
"""

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from warren.limits import CONDITIONS_MAX, MATCHED_BODY_SIZE_MAX
from warren.model.blind_copies import without_bcc
from warren.model.message import Message

_ABSENT = object()
# Longer operators come before their prefixes: `>=` before `>`.
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
    "~": lambda found, wanted: str(wanted) in str(found),
}
# Operators that compare a text with the number as it was written.
_EQUALITIES = ("=", "!=")
_FIELDS = ("routing_key", "exchange", "body")
_PREFIXES = ("properties.", "headers.", "body.")
# An index into a list.
_PLACE = re.compile(r"[0-9]{1,9}")
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None}


class ConditionError(ValueError):
    """A condition that cannot be parsed; the text says why."""


class Condition(Struct, frozen=True):
    """A parsed condition."""

    path: tuple[str, ...]
    operator: str
    wanted: object
    # The value as written: a text is compared with it, even if it can be read as a number.
    written: str

    def fits(self, message: Message) -> bool:
        """True if `message` satisfies the condition."""
        found = _found(message, self.path)
        if found is _ABSENT:
            return self.operator == "!="
        wanted = self.wanted
        if isinstance(found, str) and not isinstance(wanted, str) and self.operator in _EQUALITIES:
            wanted = self.written
        try:
            return _OPERATORS[self.operator](found, wanted)
        except TypeError:
            # A text and a number have no order.
            return False


def parse_conditions(texts: Sequence[str]) -> list[Condition]:
    """The conditions in `texts`; raises ConditionError if one is invalid or there are too many."""
    if len(texts) > CONDITIONS_MAX:
        raise ConditionError(f"{len(texts)} conditions are more than {CONDITIONS_MAX}")
    return [_condition(text) for text in texts]


def _condition(text: str) -> Condition:
    places = [(at, symbol) for symbol in _OPERATORS if (at := text.find(symbol)) > 0]
    if not places:
        raise ConditionError(f"'{text}' has none of the operators {' '.join(_OPERATORS)}")
    at, symbol = min(places, key=lambda place: (place[0], -len(place[1])))
    field, value = text[:at].strip(), text[at + len(symbol) :].strip()
    if field not in _FIELDS and not field.startswith(_PREFIXES):
        known = " ".join((*_FIELDS, *(f"{prefix}…" for prefix in _PREFIXES)))
        raise ConditionError(f"'{field}' is none of {known}")
    return Condition(tuple(field.split(".")), symbol, _value(value), value)


def _value(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _found(message: Message, path: tuple[str, ...]) -> object:
    """The value at `path` of `message`, or _ABSENT."""
    first, *rest = path
    if first == "routing_key":
        return message.routing_key
    if first == "exchange":
        return message.exchange
    if first == "properties":
        value = getattr(message.properties(), rest[0], None)
        return _ABSENT if value is None else value
    if first == "headers":
        # The name of a header may contain dots.
        headers = without_bcc(message).headers()
        name = ".".join(rest)
        return headers[name] if name in headers else _walked(headers, rest)
    body = message.body[:MATCHED_BODY_SIZE_MAX]
    if not rest:
        return body.decode("utf-8", "replace")
    try:
        return _walked(json.loads(body), rest)
    except (ValueError, RecursionError):
        return _ABSENT


def _walked(value: object, names: Sequence[str]) -> object:
    for name in names:
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and _PLACE.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return _ABSENT
    return value
