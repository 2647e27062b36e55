"""Reads all or selected messages of a lake, with the file and row of each."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyspark_warren.pipelines.lakes import BATCH, DAY, PARQUET, QUEUE, Lake, LakeSnapshot
from pyspark_warren.pipelines.object_store import ObjectStore
from pyspark_warren.schema import COLUMNS, ddl

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FILE = "_file"
ROW = "_row"
# Spark writes file URIs with one slash or with three.
_SCHEME = "^file:/+"
_PLACES = (
    f"regexp_replace(_metadata.file_path, '{_SCHEME}', '/') as {FILE}",
    f"_metadata.row_index as {ROW}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeSelection:
    """Selects messages; all conditions must hold."""

    where: str | None = None
    # Time of receipt in [since, until), in milliseconds since 1970.
    since: int | None = None
    until: int | None = None
    queues: tuple[str, ...] = ()
    message_ids: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        """Return the selection as values for JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }


def prune_files(snapshot: LakeSnapshot, selection: LakeSelection) -> LakeSnapshot:
    """Return `snapshot` without files that cannot contain selected messages, by the log of the lake."""
    files = [file for file in snapshot.files if _may_hold(snapshot, file, selection)]
    return replace(snapshot, files=tuple(files) or snapshot.files[:1])


def _may_hold(snapshot: LakeSnapshot, file: str, selection: LakeSelection) -> bool:
    queue = snapshot.partitions[file][1] if file in snapshot.partitions else None
    if selection.queues and queue is not None and queue not in selection.queues:
        return False
    if file not in snapshot.times:
        return True
    first, behind = (int(time.timestamp() * 1000) for time in snapshot.times[file])
    is_before = selection.since is not None and behind <= selection.since
    is_behind = selection.until is not None and first >= selection.until
    return not (is_before or is_behind)


def read_messages(
    spark: "SparkSession", lake: Lake, snapshot: LakeSnapshot, files: Sequence[str] | None = None
) -> "DataFrame":
    """Return the rows of `snapshot`, or of `files`. Raises ValueError if the lake is empty."""
    if not snapshot.files:
        raise ValueError(f"the lake {lake.place!r} has no messages yet")
    if lake.store is not None:
        return _stored(spark, lake.store, snapshot, files)
    if lake.format == PARQUET:
        schema = f"{ddl(COLUMNS)}, {DAY} date, {BATCH} string"
        reader = spark.read.schema(schema).option("basePath", str(lake.root))
        return reader.parquet(*_wanted(files, snapshot.files)).selectExpr("*", *_PLACES)
    schema = ddl(name for name in COLUMNS if name != QUEUE)
    rows = spark.read.schema(schema).parquet(*_wanted(files, snapshot.files))
    return with_partitions(rows, snapshot.partitions, f"{DAY} date, {QUEUE} string")


def _stored(
    spark: "SparkSession", store: ObjectStore, snapshot: LakeSnapshot, files: Sequence[str] | None
) -> "DataFrame":
    """Return the rows of `snapshot` in an object store; the executors read the objects themselves."""
    import pyarrow as pa

    from pyspark_warren.pipelines.object_io import lake_schema, read

    known = []
    for path in snapshot.files if files is None else files:
        day, queue = snapshot.partitions.get(path, (None, None))
        batch = path.partition("/")[0].removeprefix(f"{BATCH}=")
        known.append((path, {BATCH: batch} if day is None else {DAY: day, QUEUE: queue}))
    schema = lake_schema()
    if not snapshot.partitions:
        schema = schema.append(pa.field(BATCH, pa.string()))
    return read(spark, store, known, schema, place=(FILE, ROW))


def with_partitions(rows: "DataFrame", values: Mapping[str, tuple[Any, ...]], columns: str) -> "DataFrame":
    """Return rows of a Delta table with file, row, and the partition values that the log has for the file.

    Folder names are not used, since writers escape them differently.
    """
    from pyspark.sql.functions import broadcast

    names = [re.sub(_SCHEME, "/", file) for file in rows.inputFiles()]
    known = [(name, *values[unquote(name)]) for name in names]
    partitions = rows.sparkSession.createDataFrame(known, f"{FILE} string, {columns}")
    return rows.selectExpr("*", *_PLACES).join(broadcast(partitions), FILE)


def filter_messages(rows: "DataFrame", selection: LakeSelection) -> "DataFrame":
    """Return the selected rows. Raises ValueError if `where` is not a valid condition."""
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import col, expr, lit

    taken = "unix_millis(coalesce(broker_timestamp, timestamp))"
    conditions: list[Column] = []
    if selection.since is not None:
        conditions.append(expr(taken) >= selection.since)
    if selection.until is not None:
        conditions.append(expr(taken) < selection.until)
    if selection.queues:
        conditions.append(col(QUEUE).isin(*selection.queues))
    if selection.message_ids:
        conditions.append(col("message_id").isin(*selection.message_ids))
    conditions += [col("headers")[lit(name)] == value for name, value in selection.headers.items()]
    for condition in conditions:
        rows = rows.where(condition)
    if selection.where is None:
        return rows
    try:
        found = rows.where(selection.where)
        found.schema  # noqa: B018, Spark Connect analyzes the condition when the schema is requested
    except AnalysisException as error:
        told = (error.getMessage() or str(error)).splitlines()[0]
        raise ValueError(
            f"where={selection.where!r} is not a condition over {', '.join((*COLUMNS, DAY))}: {told}"
        ) from None
    return found


def _wanted(files: Sequence[str] | None, all_files: Sequence[str]) -> Sequence[str]:
    # Spark returns paths percent-encoded, and takes them decoded.
    return all_files if files is None else [unquote(file) for file in files]
