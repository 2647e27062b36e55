"""Reads tables by their names: `queue.orders`, `stream.events`, `lake.path/to/it`.

Nothing is consumed: a queue of Warren is browsed, a stream is read from its beginning, and a lake is a Delta
table or Parquet files, in a folder or in an object store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark_warren.pipelines.lake_scan import FILE, ROW, with_partitions
from pyspark_warren.pipelines.lakes import DELTA_LOG, partition_of
from pyspark_warren.pipelines.object_store import ObjectStore, is_object_store, store_of
from pyspark_warren.schema import COLUMNS

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

QUEUE, STREAM, LAKE = "queue", "stream", "lake"
KINDS = (QUEUE, STREAM, LAKE)
# Keeps Spark from reading the partition value of `queue=007` as a number.
_TYPE_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableIdentifier:
    """The name of a table: its kind, and the queue, stream or path."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.name}"


def parse_table(text: str) -> TableIdentifier:
    """Parse the name of a table. Raises ValueError if it is malformed."""
    kind, dot, name = text.partition(".")
    if kind not in KINDS or not dot or not name:
        raise ValueError(f"a table must be queue.NAME, stream.NAME or lake.PATH, not {text!r}")
    return TableIdentifier(kind=kind, name=name)


def read(
    spark: "SparkSession",
    place: TableIdentifier,
    broker: Mapping[str, str],
    columns: Sequence[str] | None = None,
    *,
    storage: Mapping[str, str] | None = None,
) -> "DataFrame":
    """Return the current rows of a table, with these `columns` of messages if given.

    `broker` are options of the connector, `storage` those of the object store of a lake. Raises ValueError if
    `columns` are given and the table has no messages.
    """
    if place.kind == LAKE:
        if is_object_store(place.name):
            found = _stored(spark, store_of(place.name, storage))
        else:
            found = _lake(spark, place.name)
        return found if columns is None else found.select(*_present(found, columns, place))
    reader = spark.read.format("warren").options(**broker)
    if place.kind == STREAM:
        reader = reader.option("mode", STREAM)
    if columns is not None:
        reader = reader.option("columns", ",".join(columns))
    return reader.load(place.name)


def read_all(
    spark: "SparkSession",
    places: Sequence[TableIdentifier],
    broker: Mapping[str, str],
    columns: Sequence[str],
) -> "DataFrame":
    """Return the union of the messages of all `places`. Raises ValueError if there are none."""
    if not places:
        raise ValueError("nothing to read: give a queue, a stream or a lake")
    frames = [read(spark, place, broker, columns) for place in places]
    return reduce(lambda some, more: some.unionByName(more), frames)


def _present(found: "DataFrame", columns: Sequence[str], place: TableIdentifier) -> list[str]:
    """Return expressions for `columns`; a column that the lake does not have is null."""
    if "body" not in found.columns and "headers" not in found.columns:
        raise ValueError(f"{place} has no messages: its columns are {', '.join(found.columns)}")
    return [
        f"`{name}`" if name in found.columns else f"cast(null as {COLUMNS[name]}) as `{name}`"
        for name in columns
    ]


def _lake(spark: "SparkSession", path: str) -> "DataFrame":
    guessed = spark.conf.get(_TYPE_INFERENCE)
    spark.conf.set(_TYPE_INFERENCE, "false")
    try:
        if "://" in path or not (Path(path) / DELTA_LOG).is_dir():
            return spark.read.parquet(path)
        from pyspark_warren.pipelines.delta_lake import check_readable, open_table

        # Spark reads Delta only with a jar, so the Parquet files of the snapshot are read.
        root = Path(path).absolute()
        table = open_table(str(root))
        check_readable(table)
        reader = spark.read.option("mergeSchema", "true")
        if not any("%" in file for file in table.file_uris()):
            return reader.option("basePath", str(root)).parquet(*table.file_uris())
        return _escaped(reader.parquet(*table.file_uris()), table, root)
    finally:
        spark.conf.set(_TYPE_INFERENCE, guessed or "true")


def _stored(spark: "SparkSession", store: ObjectStore) -> "DataFrame":
    """Read a Delta table or Parquet files in an object store; the executors read the objects themselves."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    from pyspark_warren.pipelines.delta_lake import check_readable, open_table
    from pyspark_warren.pipelines.object_io import read as read_objects

    if DELTA_LOG in store.names():
        with store.translated_errors():
            table = open_table(store.uri, options=store.options)
            check_readable(table)
        names = table.metadata().partition_columns
        added = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        files = [(unquote(one["path"]), {name: one[f"partition.{name}"] for name in names}) for one in added]
        return read_objects(spark, store, files, pa.schema(table.schema().to_arrow()))
    paths = [
        path
        for path in store.objects()
        if path.endswith(".parquet") and not any(part[0] in "._" for part in path.split("/"))
    ]
    if not paths:
        raise ValueError(f"there is no lake in {store.uri!r}: it has no Delta table and no Parquet file")
    with store.translated_errors():
        schema = parquet.read_schema(store.filesystem().open_input_file(paths[0]))
    files = [(path, partition_of(Path(path))) for path in paths]
    for name in files[0][1]:
        if name not in schema.names:
            schema = schema.append(pa.field(name, pa.string()))
    return read_objects(spark, store, files, schema)


def _escaped(rows: "DataFrame", table: "DeltaTable", root: Path) -> "DataFrame":
    """Read a Delta table whose folders have escaped names; the partition values are taken from the log."""
    import pyarrow as pa

    names = table.metadata().partition_columns
    kinds = {field.name: str(field.type.type) for field in table.schema().fields if field.name in names}
    values = {
        str(root / unquote(one["path"])): tuple(one[f"partition.{name}"] for name in names)
        for one in pa.table(table.get_add_actions(flatten=True)).to_pylist()
    }
    columns = ", ".join(f"`{name}` {kinds[name]}" for name in names)
    return with_partitions(rows, values, columns).drop(FILE, ROW)
