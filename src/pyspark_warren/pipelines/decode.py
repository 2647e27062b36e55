"""Parses JSON bodies by a schema, and publishes messages that do not match to a dead-letter exchange.

A micro-batch is written to two targets, and each takes it once: its rows go to a folder that is named after
the query and the number of the batch, and its bad messages to a transaction of that name, which the broker
publishes once. When Spark repeats a micro-batch after a crash, nothing is written twice.
"""

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    FractionalType,
    IntegralType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pyspark_warren.mode_detection import detect_strategy
from pyspark_warren.options import read_options
from pyspark_warren.pipelines.consume_check import check_consume
from pyspark_warren.pipelines.lakes import lake_folder
from pyspark_warren.pipelines.object_store import ObjectStore, is_object_store, store_of
from pyspark_warren.pipelines.progress_relay import query_id
from pyspark_warren.versions import check_mode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

REASON, FROM = "x-decode-reason", "x-decode-queue"
# Columns that are written before those of the schema.
MESSAGE_COLUMNS = ("queue", "offset", "routing_key", "broker_timestamp")
_CORRUPT = "_corrupt_record"
_DATA = "_data"
_SHOWN_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeProgress:
    """The result of a micro-batch: how many messages matched the schema, and how many did not."""

    batch: int
    good: int
    bad: int


def schema_of(spark: "SparkSession", text: str) -> StructType:
    """Parse a schema from DDL, such as `id bigint not null, name string`, or from Spark's JSON.

    Raises ValueError if it has no columns, or a column that has the name of one of MESSAGE_COLUMNS.
    """
    if text.lstrip().startswith("{"):
        found: DataType = StructType.fromJson(json.loads(text))
    else:
        # createDataFrame parses DDL in classic sessions and with Spark Connect.
        found = spark.createDataFrame([], text).schema
    if not isinstance(found, StructType) or not found.fields:
        raise ValueError("the schema has no columns")
    taken = sorted({one.name.lower() for one in found.fields} & {*MESSAGE_COLUMNS, _DATA, _CORRUPT})
    if taken:
        raise ValueError(f"the schema must not have the columns {', '.join(taken)}: the table adds these")
    return found


def decode(messages: "DataFrame", schema: StructType) -> "tuple[DataFrame, DataFrame]":
    """Return two DataFrames: rows that match `schema`, and messages that do not, ready to be published.

    The rows have MESSAGE_COLUMNS and then the columns of `schema`. The messages keep body and properties, and
    get headers with the reason and the queue.
    """
    read = StructType([*_optional(schema).fields, StructField(_CORRUPT, StringType())])
    text = sql.when(sql.is_valid_utf8(sql.col("body").cast("string")), sql.col("body").cast("string"))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    parsed = messages.withColumn(_DATA, sql.from_json(text, read, options))
    data = sql.col(_DATA)
    fits = data.isNotNull() & data[_CORRUPT].isNull()
    for field in schema.fields:
        if not field.nullable:
            fits = fits & data[field.name].isNotNull()
    good = parsed.where(fits).select(
        *MESSAGE_COLUMNS, *(data[field.name].alias(field.name) for field in schema.fields)
    )
    wanted = schema.json()

    def say(body: bytes | None) -> str:
        return mismatch_reason(bytes(body or b""), StructType.fromJson(json.loads(wanted)))

    added = sql.create_map(
        sql.lit(REASON), sql.udf(say, "string", useArrow=False)("body"), sql.lit(FROM), sql.col("queue")
    )
    kept = sql.map_filter(sql.coalesce("headers", added), lambda name, _: ~name.isin(REASON, FROM))
    bad = parsed.where(~fits).withColumn("headers", sql.map_concat(kept, added))
    # headers_json takes precedence when publishing, so it is dropped if it has an older reason.
    typed = sql.when(~sql.col("headers_json").contains(f'"{REASON}"'), sql.col("headers_json"))
    bad = bad.withColumn("headers_json", typed)
    return good, bad.drop(_DATA)


def mismatch_reason(body: bytes, schema: StructType) -> str:
    """Return why `body` does not match `schema`, in a short text that can be grouped by."""
    try:
        value = json.loads(body.decode())
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start}"
    except ValueError as error:
        return f"not JSON: {error}"
    return _misfit(value, schema, "") or "does not match the schema"


def start(
    spark: "SparkSession",
    *,
    source: Mapping[str, str],
    schema: StructType,
    to: str,
    dead_letters: Mapping[str, str],
    once: bool,
    progress: Callable[[DecodeProgress], None],
    consume: bool = True,
    checkpoint: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> "StreamingQuery":
    """Start a streaming query that decodes messages into folders below `to`, and return the query.

    `source` are options of the reader. `dead_letters` are options of the writer, with one exchange or queue.
    `progress` is called after each micro-batch. With consume=False, a source that consumes messages is
    refused with ConsumeNotAllowed. `to` may be in an object store, with `storage_options`; then
    `checkpoint` must be given as a folder.
    """
    if not consume:
        strategy = detect_strategy(read_options(source), is_streaming=True)
        check_mode(strategy.mode)
        check_consume(strategy, consume)
    target: _FolderTarget | _ObjectStoreTarget
    target = (
        _ObjectStoreTarget(store_of(to, storage_options))
        if is_object_store(to)
        else _FolderTarget(Path(to).absolute())
    )
    place = lake_folder(checkpoint) if checkpoint else target.checkpoint()
    decoder = _Decoder(schema, target, checkpoint=place, dead_letters=dead_letters, progress=progress)
    rows = spark.readStream.format("warren").options(**source).load()
    writer = rows.writeStream.option("checkpointLocation", str(place)).foreachBatch(decoder)
    return (writer.trigger(availableNow=True) if once else writer).start()


class _Decoder:
    """Writes micro-batches; runs on the driver, or on the server of Spark Connect."""

    def __init__(
        self,
        schema: StructType,
        target: "_FolderTarget | _ObjectStoreTarget",
        *,
        checkpoint: Path,
        dead_letters: Mapping[str, str],
        progress: Callable[[DecodeProgress], None],
    ) -> None:
        self._schema = schema
        self._target = target
        self._checkpoint = checkpoint
        self._dead_letters = dead_letters
        self._progress = progress

    def __call__(self, rows: "DataFrame", number: int) -> None:
        """Write both parts of a micro-batch; repeated calls with the same number write nothing twice."""
        rows.persist()
        try:
            good, bad = decode(rows, self._schema)
            name = f"{query_id(self._checkpoint)}-{number:010d}"
            counted = self._target.write(good, name)
            writer = bad.write.format("warren").options(**self._dead_letters)
            writer.option("txnId", f"decode-{name}").mode("append").save()
            self._progress(DecodeProgress(batch=number, good=counted, bad=rows.count() - counted))
        finally:
            rows.unpersist()


class _FolderTarget:
    """A target folder: each batch is a folder below it, renamed when it is complete."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def checkpoint(self) -> Path:
        """Return the default checkpoint folder."""
        return self._root / "_checkpoint"

    def write(self, good: "DataFrame", name: str) -> int:
        """Write the rows of a batch, unless they are there already, and return their number."""
        folder = self._root / f"batch={name}"
        if not folder.exists():
            hidden = self._root / "_staged" / name
            good.write.mode("overwrite").parquet(str(hidden))
            hidden.rename(folder)
        written: int = good.sparkSession.read.schema(good.schema).parquet(str(folder)).count()
        return written


class _ObjectStoreTarget:
    """A target in an object store: each batch is one object, which is visible when it is complete."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def checkpoint(self) -> Path:
        """Raise ValueError: Spark cannot keep a checkpoint in an object store."""
        raise ValueError(
            f"{self._store.uri!r} is in an object store, where Spark cannot keep a checkpoint: give a folder "
            "for it with checkpoint (--checkpoint)"
        )

    def write(self, good: "DataFrame", name: str) -> int:
        """Write the rows of a batch, unless they are there already, and return their number."""
        import pyarrow.parquet as parquet

        from pyspark_warren.pipelines.object_io import single_file_writer, written

        path = f"batch={name}/part-0.parquet"
        if not self._store.has(path):
            files = written(good.repartition(1), single_file_writer(self._store, path))
            return sum(one.rows for one in files)
        with self._store.translated_errors():
            rows: int = parquet.read_metadata(self._store.filesystem().open_input_file(path)).num_rows
        return rows


def progress_folder(to: str, checkpoint: str | None = None) -> Path:
    """Return a new folder through which a Spark Connect server passes progress to the client."""
    root = lake_folder(checkpoint or ".").parent if is_object_store(to) else Path(to).absolute()
    return root / "_staged" / f"progress-{uuid.uuid4().hex[:8]}"


def _optional(kind: Any) -> Any:
    """Return the type with all fields nullable, so that missing fields are parsed as null."""
    match kind:
        case StructType():
            return StructType([StructField(one.name, _optional(one.dataType)) for one in kind.fields])
        case ArrayType():
            return ArrayType(_optional(kind.elementType))
        case MapType():
            return MapType(kind.keyType, _optional(kind.valueType))
    return kind


def _misfit(value: Any, kind: DataType, place: str) -> str | None:
    """Return how `value` first differs from `kind`; None if no difference is found."""
    here = place or "the body"
    match kind:
        case StructType():
            if not isinstance(value, dict):
                return f"{here} is {_shown(value)}, not an object"
            found = (_field(value, field, place) for field in kind.fields)
            return next((text for text in found if text), None)
        case ArrayType():
            if not isinstance(value, list):
                return f"{here} is {_shown(value)}, not an array"
            items = (_misfit(one, kind.elementType, f"{here}[{at}]") for at, one in enumerate(value))
            return next((text for text in items if text), None)
        case BooleanType():
            fits = isinstance(value, bool)
        case IntegralType():
            fits = isinstance(value, int) and not isinstance(value, bool)
        case FractionalType():
            fits = isinstance(value, int | float) and not isinstance(value, bool)
        case StringType():
            fits = True
        case _:
            # Spark parses times, binaries and decimals from text by its own rules.
            fits = not isinstance(value, dict | list | bool)
    return None if fits or value is None else f"{here} is {_shown(value)}, not {kind.simpleString()}"


def _field(value: dict[str, Any], field: StructField, place: str) -> str | None:
    name = f"{place}.{field.name}" if place else field.name
    found = value.get(field.name)
    if found is None:
        return None if field.nullable else f"{name} is {'null' if field.name in value else 'missing'}"
    return _misfit(found, field.dataType, name)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"
