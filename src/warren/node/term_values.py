"""Reads Erlang terms as values: lists of pairs, texts, numbers, methods of AMQP and field tables.

RabbitMQ's types are required where it requires them: a name is a binary, a flag `true` or `false`. Whatever
is wrong is an `InvalidTerm`, which says where and does not contain passwords.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import cast

from warren.errors import AmqpError
from warren.model.erlang_reader import MapTerm, Term
from warren.model.erlang_terms import Atom
from warren.shovel.shovel_plan import DECLARATIONS
from warren.wire.method import Method
from warren.wire.table import (
    Float32,
    Int8,
    Int16,
    Int32,
    Table,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    Value,
)

_CREDENTIALS = re.compile(r"://[^\"\s]*@")
_SHOWN_MAX = 100
# RabbitMQ's names of the fields of methods that are called differently here.
_FIELDS = {"nowait": "no_wait", "ticket": "reserved_1"}
_METHODS: Mapping[str, type[Method]] = {method.name: method for method in DECLARATIONS}
_NUMBERS: Mapping[str, Callable[[int], Value]] = {
    "byte": Int8,
    "unsignedbyte": UInt8,
    "short": Int16,
    "unsignedshort": UInt16,
    "signedint": Int32,
    "unsignedint": UInt32,
    "long": int,
    "timestamp": Timestamp,
}
_TYPES = "longstr, signedint, long, bool, …"


class InvalidTerm(Exception):
    """A term is not what it has to be."""


def shown(term: Term) -> str:
    """`term` as Erlang writes it, shortened and without credentials."""
    text = _CREDENTIALS.sub("://", _written(term))
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def pairs(what: str, term: Term) -> dict[str, Term]:
    """A list of pairs whose keys are atoms, each once."""
    found: dict[str, Term] = {}
    for item in items(what, term):
        if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], Atom):
            raise InvalidTerm(f"{what}: each entry has to be {{key, value}}, not {shown(item)}")
        if item[0] in found:
            raise InvalidTerm(f"{what}: {item[0]} is given twice")
        found[str(item[0])] = item[1]
    return found


def items(what: str, term: Term) -> list[Term]:
    """A list; an empty string is an empty list."""
    if isinstance(term, list):
        return term
    if term == "" and not isinstance(term, Atom):
        return []
    raise InvalidTerm(f"{what} has to be a list, not {shown(term)}")


def text_of(what: str, term: Term) -> str:
    """A binary, as text."""
    if not isinstance(term, bytes):
        raise InvalidTerm(f'{what} has to be a binary such as <<"text">>, not {shown(term)}')
    return term.decode("utf-8", "surrogateescape")


def word_of(what: str, term: Term, *allowed: str) -> str:
    """One of several atoms."""
    if not isinstance(term, Atom) or term not in allowed:
        raise InvalidTerm(f"{what} has to be {' or '.join(allowed)}, not {shown(term)}")
    return str(term)


def flag_of(what: str, term: Term) -> bool:
    """The atom `true` or `false`."""
    return word_of(what, term, "true", "false") == "true"


def count_of(what: str, term: Term) -> int:
    """An integer that is not negative."""
    if not isinstance(term, int) or term < 0:
        raise InvalidTerm(f"{what} has to be an integer that is not negative, not {shown(term)}")
    return term


def methods_of(what: str, term: Term) -> tuple[Method, ...]:
    """The methods of AMQP in a list: 'queue.declare', or {'queue.declare', [durable, {queue, <<"q">>}]}."""
    return tuple(_method(what, item) for item in items(what, term))


def table_of(what: str, term: Term) -> Table:
    """A field table, each entry as {Key, Type, Value}: {<<"x-max-length">>, long, 5}."""
    table: Table = {}
    for item in items(what, term):
        if not isinstance(item, tuple) or len(item) != 3:
            raise InvalidTerm(f'{what}: an entry of a table is {{<<"key">>, type, value}}, not {shown(item)}')
        key = text_of(f"{what}: the key of a table", item[0])
        table[key] = _value(f"{what}: {key}", item[1], item[2])
    return table


def _method(what: str, term: Term) -> Method:
    name, fields = term if isinstance(term, tuple) and len(term) == 2 else (term, [])
    method_type = _METHODS.get(name) if isinstance(name, Atom) else None
    if method_type is None:
        raise InvalidTerm(f"{what}: {shown(name)} is none of {', '.join(_METHODS)}")
    what = f"{what}: {method_type.name}"
    method = method_type()
    for field in items(f"{what}: its fields", fields):
        _set_field(what, method, field)
    try:
        method.encode()
    except (AmqpError, ValueError) as error:
        raise InvalidTerm(f"{what}: {error}") from None
    return method


def _set_field(what: str, method: Method, term: Term) -> None:
    """Set the field in `term`, which is {name, value}, or the name of one that becomes true."""
    key, value = term if isinstance(term, tuple) and len(term) == 2 else (term, Atom("true"))
    name = _FIELDS.get(key, str(key)) if isinstance(key, Atom) else ""
    if name not in method.fields:
        raise InvalidTerm(f"{what} has no field {shown(key)}")
    if name in _FIELDS.values():
        # Neither changes what is declared: the shovel waits for each answer.
        return
    before: object = getattr(method, name)
    what = f"{what}: {name}"
    if isinstance(before, bool):
        setattr(method, name, flag_of(what, value))
    elif isinstance(before, dict):
        setattr(method, name, table_of(what, value))
    else:
        setattr(method, name, text_of(what, value))


def _value(what: str, kind: Term, term: Term) -> Value:
    """The value of a field table that `term` is, of the type that RabbitMQ calls `kind`."""
    if not isinstance(kind, Atom):
        raise InvalidTerm(f"{what}: the type of a value is an atom ({_TYPES}), not {shown(kind)}")
    if kind in _NUMBERS and isinstance(term, int):
        return _NUMBERS[kind](term)
    if kind in ("longstr", "binary"):
        text = text_of(what, term)
        return text if kind == "longstr" else term
    if kind == "bool":
        return flag_of(what, term)
    if kind in ("float", "double") and isinstance(term, int | float):
        return Float32(term) if kind == "float" else float(term)
    if kind == "decimal" and isinstance(term, tuple) and len(term) == 2:
        scale, unscaled = term
        if isinstance(scale, int) and isinstance(unscaled, int) and 0 <= scale < 256:
            return Decimal(unscaled).scaleb(-scale)
    if kind == "void":
        return None
    if kind == "table":
        return table_of(what, term)
    if kind == "array":
        return [_element(what, item) for item in items(what, term)]
    raise InvalidTerm(f"{what}: {shown(term)} is no value of the type {kind!s}")


def _element(what: str, term: Term) -> Value:
    """An element of an array: {type, value}."""
    if not isinstance(term, tuple) or len(term) != 2:
        raise InvalidTerm(f"{what}: an element of an array is {{type, value}}, not {shown(term)}")
    return _value(what, *term)


def _written(term: Term) -> str:
    if isinstance(term, Atom):
        return term if re.fullmatch("[a-z][a-zA-Z0-9_@]*", term) else f"'{term}'"
    if isinstance(term, str):
        return f'"{term}"'
    if isinstance(term, bytes):
        return f'<<"{term.decode("utf-8", "backslashreplace")}">>'
    if isinstance(term, MapTerm):
        return "#{" + ",".join(f"{_written(key)} => {_written(value)}" for key, value in term.pairs) + "}"
    if isinstance(term, tuple | list):
        inner = ",".join(map(_written, cast("list[Term]", term)))
        return f"{{{inner}}}" if isinstance(term, tuple) else f"[{inner}]"
    return str(term)
