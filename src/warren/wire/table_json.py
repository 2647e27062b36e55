"""Converts field tables to JSON that preserves every type, and headers to plain strings.

JSON types represent the types that clients usually mean: a string is `S`, true and false are `t`, null is
`V`, an integer is `l`, a number with a point is `d`, an object is `F`, an array is `A`. Any other value is
an object with one member, named by `$` and the character of its type: `{"$I": 5}`. Bytes (`x`, and strings
that are not UTF-8) are in Base64; decimals, and doubles that JSON cannot represent, are strings. A table
whose only key begins with `$` is wrapped as `{"$F": ...}`.
"""

import base64
import binascii
import json
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring

from warren.errors import AmqpSyntaxError
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
    UInt64,
    Value,
)

MARK = "$"
# `json.dumps` would create one for each table.
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def table_to_json(table: Table) -> str:
    """Convert `table` to JSON with all types."""
    parts = []
    for key, value in table.items():
        if type(value) is not str or not value.isascii() or not key.isascii():
            return _encoded({_text(key): _to_json(value) for key, value in table.items()})
        # Most tables have only strings.
        parts.append(f"{encode_basestring(key)}:{encode_basestring(value)}")
    return "{" + ",".join(parts) + "}"


def table_from_json(text: str) -> Table:
    """Convert the JSON of `table_to_json`, or equivalent JSON, to a table; AmqpSyntaxError otherwise."""
    try:
        read = json.loads(text)
    except ValueError as error:
        raise AmqpSyntaxError(f"headers are not JSON: {error}") from None
    if not isinstance(read, dict):
        raise AmqpSyntaxError("headers are not a JSON object")
    return {key: _from_json(value) for key, value in read.items()}


def header_text(value: Value) -> str | None:
    """Format one header for display; None for void."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return base64.b64encode(value).decode()
        case dict():
            return table_to_json(value)
        case list() | tuple():
            return _encoded(_to_json(value))
    return str(value)


def _text(value: str) -> str:
    """`value` as valid UTF-8: invalid bytes become the replacement character."""
    return value if value.isprintable() else value.encode("utf-8", "surrogateescape").decode(errors="replace")


def _to_json(value: Value) -> Value:
    mark = _MARKS.get(type(value))
    if mark is not None:
        return {MARK + mark: value}
    match value:
        case str():
            return value if _is_utf8(value) else {"$S": _base64(value.encode("utf-8", "surrogateescape"))}
        case float():
            return value if math.isfinite(value) else {"$d": str(value)}
        case Decimal():
            return {"$D": str(value)}
        case bytes():
            return {"$x": _base64(value)}
        case dict():
            members = {_text(key): _to_json(one) for key, one in value.items()}
            return {"$F": members} if len(members) == 1 and next(iter(members)).startswith(MARK) else members
        case list() | tuple():
            return [_to_json(one) for one in value]
    return value


def _from_json(value: Value) -> Value:
    match value:
        case dict():
            if len(value) == 1:
                ((key, inner),) = value.items()
                if key.startswith(MARK):
                    return _marked(key, inner)
            return {key: _from_json(one) for key, one in value.items()}
        case list():
            return [_from_json(one) for one in value]
    return value


def _marked(key: str, inner: Value) -> Value:
    read = _READ.get(key[len(MARK) :])
    if read is None:
        raise AmqpSyntaxError(f"{key!r} does not name a type of header")
    try:
        return read(inner)
    except (TypeError, ValueError, AttributeError, InvalidOperation, binascii.Error):
        raise AmqpSyntaxError(f"{inner!r} is not a value of type {key!r}") from None


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _encode_text(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


# By exact type: the types that have no JSON type of their own.
_MARKS: dict[type, str] = {
    Int8: "b",
    UInt8: "B",
    Int16: "s",
    UInt16: "u",
    Int32: "I",
    UInt32: "i",
    UInt64: "L",
    Timestamp: "T",
    Float32: "f",
}

_READ: dict[str, Callable[[Value], Value]] = {mark: kind for kind, mark in _MARKS.items()} | {
    "S": lambda text: _encode_text(text).decode("utf-8", "surrogateescape"),
    "d": float,
    "D": Decimal,
    "x": _encode_text,
    "F": lambda members: {key: _from_json(one) for key, one in members.items()},
}
