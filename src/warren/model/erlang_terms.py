"""Formats values as Erlang's `~p` prints them, because RabbitMQ's texts contain them."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

from warren.wire.erlang import bytes_printed
from warren.wire.table import Value, type_name

# A tuple, a list, an atom, a string, of which each character is one byte, or an integer.
Term: TypeAlias = "Sequence[Term] | str | int"


class Atom(str):
    """An atom, where a `Term` could also be a string."""

    __slots__ = ()


_PLAIN_ATOM = re.compile("[a-z][a-zA-Z0-9_@]*")


def printed_value(value: Value) -> str:
    """Format a field-table value; a nested table is a list of `{key,type,value}`."""
    if isinstance(value, dict):
        return "[" + ",".join(printed_entry(key, item) for key, item in value.items()) + "]"
    if isinstance(value, list | tuple):
        return "[" + ",".join(f"{{{type_name(item)},{printed_value(item)}}}" for item in value) + "]"
    return "undefined" if value is None else _scalar(value)


def printed_entry(key: str, value: Value) -> str:
    """Format one entry of a field table: `{<<"x-max-length">>,signedint,5}`."""
    return f"{{{_string(key)},{type_name(value)},{printed_value(value)}}}"


def printed_json(value: object) -> str:
    """Format a JSON value: objects are maps, which Erlang sorts by key, and strings are binaries."""
    if isinstance(value, Mapping):
        return "#{" + ",".join(f"{_string(key)} => {printed_json(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(printed_json, value)) + "]"
    return "null" if value is None else _scalar(value)


def printed_text(value: object) -> str:
    """Format a JSON value as `~s` does: a string without quotes, other values as they are."""
    return value if isinstance(value, str) else printed_json(value)


def printed_pairs(pairs: Mapping[str, object]) -> str:
    """Format a JSON object as a list of pairs: `[{<<"nonsense">>,1}]`."""
    return "[" + ",".join(f"{{{_string(key)},{printed_json(value)}}}" for key, value in pairs.items()) + "]"


def printed_term(term: Term) -> str:
    """Format a term in one line: `{port_out_of_range,0}`."""
    if isinstance(term, Atom):
        return printed_atom(term)
    if isinstance(term, str):
        # `<<"text">>` or `<<1,2>>` without the signs of a binary.
        printed = bytes_printed(term.encode("latin-1"))[2:-2] if term else ""
        return printed if printed.startswith('"') else "[" + "".join(printed.split()) + "]"
    if isinstance(term, int):
        return str(term)
    items = ",".join(map(printed_term, term))
    return f"{{{items}}}" if isinstance(term, tuple) else f"[{items}]"


def printed_description(description: str, tags: Sequence[str]) -> str:
    """Format the metadata of a virtual host as a map: `#{description => <<"d">>,tags => [a,b]}`."""
    return f"#{{description => {_string(description)},tags => [{','.join(map(printed_atom, tags))}]}}"


def printed_atom(name: str) -> str:
    """Format an atom, quoted if necessary, as in RabbitMQ's texts about exchange types."""
    return name if _PLAIN_ATOM.fullmatch(name) else f"'{name}'"


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        unscaled = "".join(map(str, digits))
        return f"{{{-exponent if isinstance(exponent, int) else 0},{'-' * sign}{unscaled}}}"
    if isinstance(value, bytes):
        return bytes_printed(value)
    return _string(value)


def _string(value: object) -> str:
    data = str(value).encode("utf-8", "surrogateescape")
    return bytes_printed(data) if data else "<<>>"
