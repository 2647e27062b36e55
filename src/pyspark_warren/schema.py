"""The columns of a message with their Spark and Arrow types."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT = "string"
_MAP = "map<string,string>"
COLUMNS = {
    "queue": _TEXT,
    "offset": "bigint",
    "exchange": _TEXT,
    "routing_key": _TEXT,
    "redelivered": "boolean",
    "message_id": _TEXT,
    "correlation_id": _TEXT,
    "content_type": _TEXT,
    "content_encoding": _TEXT,
    "type": _TEXT,
    "app_id": _TEXT,
    "user_id": _TEXT,
    "reply_to": _TEXT,
    "expiration": _TEXT,
    "priority": "int",
    "delivery_mode": "int",
    "timestamp": "timestamp",
    "broker_timestamp": "timestamp",
    "headers": _MAP,
    "headers_json": _TEXT,
    "body": "binary",
}
# Columns that are published. A DataFrame may have any of them.
WRITABLE = frozenset(COLUMNS) - {"queue", "offset", "redelivered", "broker_timestamp"}
# Columns that a DataFrame has after reading. They are ignored when it is written.
_IGNORED = frozenset(COLUMNS) - WRITABLE


def ddl(columns: Iterable[str]) -> str:
    """Return the Spark schema of `columns` as DDL."""
    return ", ".join(f"`{column}` {COLUMNS[column]}" for column in columns)


def arrow_schema(columns: Iterable[str]) -> "pa.Schema":
    """Return the Arrow schema of `columns` with exactly the types that Spark expects in a batch."""
    return arrow_fields([(column, COLUMNS[column]) for column in columns])


def arrow_fields(fields: Iterable[tuple[str, str]]) -> "pa.Schema":
    """Return the Arrow schema of `fields`, which are pairs of name and Spark type."""
    import pyarrow as pa

    types = {
        _TEXT: pa.string(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "smallint": pa.int16(),
        "tinyint": pa.int8(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", "UTC"),
        _MAP: pa.map_(pa.string(), pa.string()),
        "binary": pa.binary(),
    }
    return pa.schema([(name, types[kind]) for name, kind in fields])


def check_read(fields: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names in a user-defined schema of (name, type) pairs. Raises ValueError if one is wrong."""
    for name, kind in fields:
        if name not in COLUMNS:
            raise ValueError(f"unknown column {name!r}; columns are {', '.join(COLUMNS)}")
        if kind != COLUMNS[name]:
            raise ValueError(f"the column {name!r} has the type {COLUMNS[name]}, not {kind}")
    return tuple(name for name, _ in fields)


def check_written(fields: Sequence[tuple[str, str]]) -> None:
    """Raise ValueError that names the column if a DataFrame with these fields cannot be written."""
    kinds = dict(fields)
    if "body" not in kinds:
        raise ValueError("the DataFrame must have a column 'body'")
    for name, kind in fields:
        if name in _IGNORED:
            continue
        if name not in WRITABLE:
            raise ValueError(
                f"the column {name!r} cannot be written; columns are {', '.join(sorted(WRITABLE))}"
            )
        if kind not in _ALSO_WRITTEN.get(name, {COLUMNS[name]}):
            allowed = " or ".join(sorted(_ALSO_WRITTEN.get(name, {COLUMNS[name]})))
            raise ValueError(f"the column {name!r} must have the type {allowed}, not {kind}")


_WHOLE = {"tinyint", "smallint", "int", "bigint"}
_ALSO_WRITTEN = {"body": {"binary", _TEXT}, "priority": _WHOLE, "delivery_mode": _WHOLE}
