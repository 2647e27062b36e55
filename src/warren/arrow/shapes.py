"""Columns that follow from the shapes of messages, with one entry for each shape.

The compiled build finds the bytes of these columns with `shape_columns.c`; the interpreted one decodes the
properties of each shape.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from warren.arrow.message_rows import MessageShape
from warren.wire.properties import BasicProperties
from warren.wire.table import Table, decode_table
from warren.wire.table_json import header_text, table_to_json

try:
    from warren.arrow.shape_columns import decode
except ImportError:
    IS_COMPILED = False
else:
    IS_COMPILED = True

if TYPE_CHECKING:
    from warren.arrow.shape_columns import Column

# pyarrow has no type annotations.
Arrow: TypeAlias = Any

TIME: Final[Arrow] = pa.timestamp("us", tz="UTC")
_HEADERS: Final[Arrow] = pa.map_(pa.string(), pa.string())
# In the order of the columns in C: texts before all others.
TYPES: Final[dict[str, Arrow]] = {
    **dict.fromkeys(
        (
            "exchange", "routing_key", "content_type", "content_encoding", "correlation_id", "reply_to",
            "expiration", "message_id", "type", "user_id", "app_id", "headers_json",
        ),
        pa.string(),
    ),
    "delivery_mode": pa.int32(),
    "priority": pa.int32(),
    "timestamp": TIME,
    "headers": _HEADERS,
}  # fmt: skip
_PLACES = {name: place for place, name in enumerate(TYPES)}
# Later times cannot be represented by Arrow.
_SECONDS_MAX = ((1 << 63) - 1) // 1_000_000


def columns_of(shapes: list[MessageShape], names: Sequence[str]) -> dict[str, Arrow]:
    """Return those of the columns `names` that are not null in all `shapes`. Raises FrameError."""
    return _from_buffers(shapes, names) if IS_COMPILED else from_properties(shapes, names)


def from_properties(shapes: list[MessageShape], names: Sequence[str]) -> dict[str, Arrow]:
    """Return the columns like `columns_of`, by decoding the properties of each shape."""
    decoded = [(address, BasicProperties.decode_list(listed)) for address, listed in shapes]
    found = {}
    for name in names:
        fact = _FACTS[name]
        values = [fact(address, properties) for address, properties in decoded]
        if any(value is not None for value in values):
            found[name] = pa.array(values, TYPES[name])
    return found


def as_text(text: str) -> str:
    """Return `text` with invalid UTF-8 replaced."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _from_buffers(shapes: list[MessageShape], names: Sequence[str]) -> dict[str, Arrow]:
    wanted = sum(1 << _PLACES[name] for name in names)
    *columns, keys, values = decode(shapes, wanted, _others)
    found = {}
    for (name, kind), column in zip(TYPES.items(), columns, strict=True):
        if column is None:
            continue
        if name == "headers":
            found[name] = _maps(column, keys, values, len(shapes))
        else:
            found[name] = _array(kind, column, len(shapes))
    return found


def _array(kind: Arrow, column: "Column", count: int) -> Arrow:
    null_count, there, ends, data = column
    parts = [part if part is None else pa.py_buffer(part) for part in (there, ends, data)]
    if ends is None:
        del parts[1]
    return pa.Array.from_buffers(kind, count, parts, null_count)


def _maps(column: "Column", keys: "Column | None", values: "Column | None", count: int) -> Arrow:
    null_count, there, ends, _ = column
    assert there is not None
    assert ends is not None
    entry_count = int.from_bytes(ends[-4:], "little")
    names = _array(pa.string(), keys, entry_count) if keys is not None else pa.nulls(0, pa.string())
    texts = pa.nulls(entry_count, pa.string())
    if values is not None:
        texts = _array(pa.string(), values, entry_count)
    entries = pa.StructArray.from_arrays([names, texts], fields=[_HEADERS.key_field, _HEADERS.item_field])
    parts = [pa.py_buffer(there), pa.py_buffer(ends)]
    return pa.Array.from_buffers(_HEADERS, count, parts, null_count, children=[entries])


def _others(entries: bytes) -> tuple[list[tuple[str, str | None]], str]:
    table = decode_table(entries, 0, len(entries))
    return _texts(table), table_to_json(table)


def _texts(table: Table) -> list[tuple[str, str | None]]:
    return [(as_text(name), header_text(value)) for name, value in table.items()]


_Fact = Callable[[bytes, BasicProperties], object]


def _text(name: str) -> _Fact:
    def fact(_: bytes, properties: BasicProperties) -> object:
        value = getattr(properties, name)
        return None if value is None else as_text(value)

    return fact


def _number(name: str) -> _Fact:
    return lambda _, properties: getattr(properties, name)


def _exchange(address: bytes, _: BasicProperties) -> object:
    return address[1 : 1 + address[0]].decode("utf-8", "replace")


def _routing_key(address: bytes, _: BasicProperties) -> object:
    return address[2 + address[0] :].decode("utf-8", "replace")


def _timestamp(_: bytes, properties: BasicProperties) -> object:
    seconds = properties.timestamp
    if seconds is None or seconds > _SECONDS_MAX:
        return None
    return seconds * 1_000_000


def _headers(_: bytes, properties: BasicProperties) -> object:
    return None if properties.headers is None else _texts(properties.headers)


def _headers_json(_: bytes, properties: BasicProperties) -> object:
    return None if properties.headers is None else table_to_json(properties.headers)


_FACTS: dict[str, _Fact] = {
    **{name: _text(name) for name in TYPES},
    "exchange": _exchange,
    "routing_key": _routing_key,
    "delivery_mode": _number("delivery_mode"),
    "priority": _number("priority"),
    "timestamp": _timestamp,
    "headers": _headers,
    "headers_json": _headers_json,
}
