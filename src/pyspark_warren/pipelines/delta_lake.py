"""A Delta table written by delta-rs: each micro-batch is one transaction with txnAppId and txnVersion.

The id of the query is the txnAppId, and the number of the batch the txnVersion. A repeated batch finds its
number in the table and is skipped, also if Spark, the driver or the machine crashed before Spark recorded the
commit. Of two drivers that write the same batch concurrently, one commits.

    write files below _warren/staged │ move them to day=…/queue=… │ commit │ remove the folder
                                     a crash here leaves uncommitted files: `clean` removes them
"""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from pyspark_warren.pipelines.folder_writer import write_folder
from pyspark_warren.pipelines.lakes import (
    DAY,
    DELTA,
    DELTA_LOG,
    PARTITIONS,
    DataFile,
    LakeBatch,
    LakeSnapshot,
    UncommittedBatch,
    check_format,
    discard,
    staged_files,
    sync,
)
from pyspark_warren.schema import COLUMNS, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Retries of a commit that conflicts with another writer of the table.
COMMITS_MAX = 10
_TIME = "broker_timestamp"
# Compaction records times in whole milliseconds.
_PRECISION = timedelta(milliseconds=1)
# Reader features that are not supported here: rows marked as deleted, and renamed columns.
_UNREAD = frozenset({"deletionVectors", "columnMapping"})


class DeltaLake:
    """Implements `Lake` for a Delta table in a folder."""

    format = DELTA
    store = None

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = str(root)

    def prepare(self) -> None:
        """Create the table if it does not exist. Raises ValueError if it has other columns."""
        check_format(self.root, DELTA)
        prepare_table(self.place)

    def has(self, batch: LakeBatch) -> bool:
        """Whether the table has this batch or a later one of the query."""
        return has_batch(open_table(self.place), batch)

    def write(self, rows: "DataFrame", batch: LakeBatch) -> UncommittedBatch:
        """Let the executors write `rows` to a staging folder."""
        return write_folder(rows, self.root, batch)

    def commit(self, batch: LakeBatch, written: UncommittedBatch) -> int:
        """Commit a written batch once, and return the version of the table after it."""
        folder = written.folder
        assert folder is not None
        files = staged_files(folder)
        moved = [self._moved(one, folder) for one in files]
        for place in {self.root / parent for one in moved for parent in one.path.parents}:
            sync(place)
        before, version = commit_files(self.place, batch, moved)
        self._sync_log(before + 1, version)
        discard(folder)
        return version

    def ends(self, queues: Sequence[str]) -> dict[str, int]:
        """Return the offset after the last one in the log, for each queue."""
        return table_ends(open_table(self.place), queues)

    def snapshot(self, version: int | None = None, batches: Sequence[str] = ()) -> LakeSnapshot:
        """Return the files of the latest version, or of the given one."""
        assert not batches
        return table_snapshot(open_table(self.place, version), f"{self.place}/")

    def _moved(self, one: DataFile, folder: Path) -> DataFile:
        """Move a staged file to its place below the table."""
        path = one.path.relative_to(folder)
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(one.path, target)
        return replace(one, path=path)

    def _sync_log(self, first: int, last: int) -> None:
        log = self.root / DELTA_LOG
        for version in range(first, last + 1):
            path = log / f"{version:020d}.json"
            if path.exists():
                sync(path)
        sync(log)


def open_table(
    place: str, version: int | None = None, options: Mapping[str, str] | None = None
) -> DeltaTable:
    """Open the table at `place`. Raises ValueError if there is none, or if one in a folder is damaged."""
    try:
        return DeltaTable(place, version=version, storage_options=dict(options) if options else None)
    except TableNotFoundError:
        raise ValueError(f"there is no Delta table in {place!r}") from None
    except DeltaError as error:
        if options:
            # The caller masks secrets in errors of an object store.
            raise
        raise ValueError(f"the Delta table in {place!r} cannot be read: {error}") from None


def prepare_table(place: str, options: Mapping[str, str] | None = None) -> None:
    """Create the table if it does not exist. Raises ValueError if it has other columns."""
    schema = Schema.from_arrow(_schema())
    # If another archive creates the table concurrently, its table is used.
    with contextlib.suppress(CommitFailedError):
        DeltaTable.create(
            place, schema, mode="ignore", partition_by=list(PARTITIONS), name=place.rpartition("/")[2],
            storage_options=dict(options) if options else None,
            commit_properties=CommitProperties(max_commit_retries=0),
        )  # fmt: skip
    found = open_table(place, options=options)
    given = {field.name: json.loads(field.to_json())["type"] for field in found.schema().fields}
    wanted = {field.name: json.loads(field.to_json())["type"] for field in schema.fields}
    wrong = sorted(name for name in wanted if given.get(name) != wanted[name])
    if wrong or found.metadata().partition_columns != list(PARTITIONS):
        told = f"the column {wrong[0]!r}" if wrong else f"partitions by {', '.join(PARTITIONS)}"
        raise ValueError(f"the Delta table {place!r} is not an archive of messages: it lacks {told}")


def commit_files(
    place: str, batch: LakeBatch, files: Sequence[DataFile], options: Mapping[str, str] | None = None
) -> tuple[int, int]:
    """Commit files once; return the version of the table before and after the commit."""
    table = open_table(place, options=options)
    before = table.version()
    for left in range(COMMITS_MAX, -1, -1):
        if has_batch(table, batch):
            break
        try:
            _write(table, batch, files)
            break
        except CommitFailedError:
            if not left:
                raise
            table = open_table(place, options=options)
    return before, open_table(place, options=options).version()


def has_batch(table: DeltaTable, batch: LakeBatch) -> bool:
    """Whether the table has this batch or a later one of the query."""
    last = table.transaction_version(batch.query)
    return last is not None and last >= batch.number


def table_ends(table: DeltaTable, queues: Sequence[str]) -> dict[str, int]:
    """Return the offset after the last one in the log, for each queue."""
    ends: dict[str, int] = {}
    for one in _added(table):
        queue, largest = one["partition.queue"], one.get("max.offset")
        if queue in queues and largest is not None:
            ends[queue] = max(ends.get(queue, 0), largest + 1)
    return ends


def table_snapshot(table: DeltaTable, before: str) -> LakeSnapshot:
    """Return the files of a table, with `before` prefixed to each path."""
    check_readable(table)
    added = {before + unquote(one["path"]): one for one in _added(table)}
    return LakeSnapshot(
        version=table.version(),
        batches=(),
        files=tuple(sorted(added)),
        partitions={path: (one["partition.day"], one["partition.queue"]) for path, one in added.items()},
        times={
            path: (one[f"min.{_TIME}"], one[f"max.{_TIME}"] + _PRECISION)
            for path, one in added.items()
            if one.get(f"null_count.{_TIME}") == 0 and one.get(f"max.{_TIME}") is not None
        },
    )


def check_readable(table: DeltaTable) -> None:
    """Raise ValueError if the table has reader features that are not supported here."""
    unread = _UNREAD & set(table.protocol().reader_features or ())
    # Older tables have this property instead of the reader feature.
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        unread |= {"columnMapping"}
    if unread:
        raise ValueError(
            f"the Delta table {table.table_uri!r} uses {' and '.join(sorted(unread))}, which is not "
            "supported: rewrite it without that (REORG TABLE … APPLY (PURGE)), or use Delta's own jar"
        )


def _write(table: DeltaTable, batch: LakeBatch, files: Sequence[DataFile]) -> None:
    now = int(datetime.now(UTC).timestamp() * 1000)
    about = {"name": batch.name, "query": batch.query, "batch": batch.number}
    table.create_write_transaction(
        [_action(one, now) for one in files],
        "append",
        table.schema(),
        list(PARTITIONS),
        commit_properties=CommitProperties(
            custom_metadata={"warren": about},
            app_transactions=[Transaction(batch.query, batch.number)],
        ),
    )


def _added(table: DeltaTable) -> list[dict[str, Any]]:
    """Return the add actions of the log; their paths are percent-encoded."""
    listed: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return listed


def _schema() -> pa.Schema:
    return arrow_schema(COLUMNS).append(pa.field(DAY, pa.date32()))


def _action(one: DataFile, now: int) -> AddAction:
    stats = {
        "numRecords": one.rows,
        "minValues": {name: _stats_value(low) for name, (low, _, _) in one.ranges.items() if low is not None},
        "maxValues": {
            name: _stats_value(high) for name, (_, high, _) in one.ranges.items() if high is not None
        },
        "nullCount": {name: nulls for name, (_, _, nulls) in one.ranges.items()},
    }
    partition = {"day": one.day, "queue": one.queue}
    return AddAction(one.path.as_posix(), one.size_bytes, partition, now, True, json.dumps(stats))


def _stats_value(value: Any) -> Any:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if isinstance(value, datetime) else value
