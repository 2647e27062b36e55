"""The columns of a message, as Spark and as Arrow name their types."""

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
# What a message is sent with; of these, a DataFrame may hold any.
WRITABLE = frozenset(COLUMNS) - {"queue", "offset", "redelivered", "broker_timestamp"}
# What says where a message was; a DataFrame that was read has them, and they are not sent.
_IGNORED = frozenset(COLUMNS) - WRITABLE


def ddl(columns: Iterable[str]) -> str:
    """The schema of `columns`, as Spark reads it."""
    return ", ".join(f"`{column}` {COLUMNS[column]}" for column in columns)


def arrow_schema(columns: Iterable[str]) -> "pa.Schema":
    """The same for the batches that are handed to Spark, which compares them type by type."""
    return arrow_fields([(column, COLUMNS[column]) for column in columns])


def arrow_fields(fields: Iterable[tuple[str, str]]) -> "pa.Schema":
    """The schema of fields, (name, type) for each, as Arrow names the types."""
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
    """The columns of a schema that the user gave, (name, type) for each; ValueError for what is not ours."""
    for name, kind in fields:
        if name not in COLUMNS:
            raise ValueError(f"a message has no column {name!r}; it has {', '.join(COLUMNS)}")
        if kind != COLUMNS[name]:
            raise ValueError(f"the column {name!r} is a {COLUMNS[name]}, not a {kind}")
    return tuple(name for name, _ in fields)


def check_written(fields: Sequence[tuple[str, str]]) -> None:
    """Raise ValueError, naming the column, if a DataFrame cannot be sent."""
    kinds = dict(fields)
    if "body" not in kinds:
        raise ValueError("a DataFrame that is written needs a column 'body'")
    for name, kind in fields:
        if name in _IGNORED:
            continue
        if name not in WRITABLE:
            raise ValueError(
                f"a message has no column {name!r} to write; it has {', '.join(sorted(WRITABLE))}"
            )
        if kind not in _ALSO_WRITTEN.get(name, {COLUMNS[name]}):
            allowed = " or ".join(sorted(_ALSO_WRITTEN.get(name, {COLUMNS[name]})))
            raise ValueError(f"the column {name!r} must be a {allowed}, not a {kind}")


_WHOLE = {"tinyint", "smallint", "int", "bigint"}
_ALSO_WRITTEN = {"body": {"binary", _TEXT}, "priority": _WHOLE, "delivery_mode": _WHOLE}
