"""Reading and writing Parquet files in an object store by the executors.

A file is first written to the disk of the executor, and uploaded when it is complete: an interrupted upload
of a growing file could leave a truncated object. Readers ignore an object that is not committed.
"""

import pickle
import re
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from pyspark_warren.pipelines.lakes import DAY, ORDERED, PARTITIONS, QUEUE, DataFile, footer_range
from pyspark_warren.pipelines.object_store import ObjectStore
from pyspark_warren.schema import COLUMNS, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]
FILES = "file binary"
# Rows of a row group, so that a reader can skip groups.
_GROUP_ROWS = 100_000
_SENT_BYTES = 8 * 1_048_576
_READ_ROWS = 10_000
# Maximum number of tasks that read.
_READERS = 200
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def lake_schema() -> pa.Schema:
    """Return the schema of a lake: the columns of a message and its day."""
    return arrow_schema(COLUMNS).append(pa.field(DAY, pa.date32()))


def partitioned_writer(store: ObjectStore) -> Callable[[Batches], Batches]:
    """Return a function that writes rows, sorted by day and queue, to one file for each day and queue."""
    schema = pa.schema([field for field in lake_schema() if field.name not in PARTITIONS])

    def write(batches: Batches) -> Batches:
        spool: _PendingUpload | None = None
        for rows in _runs(batches):
            key = _key(rows)
            if spool is None or spool.key != key:
                yield from _finished(spool, store)
                folder = f"{DAY}={key[0]}/{QUEUE}={_UNSAFE.sub('_', key[1])}"
                spool = _PendingUpload(f"{folder}/part-{uuid.uuid4().hex}.parquet", schema, key)
            spool.add(rows)
        yield from _finished(spool, store)

    return write


def single_file_writer(
    store: ObjectStore, path: str, schema: pa.Schema | None = None, *, is_grouped: bool = False
) -> Callable[[Batches], Batches]:
    """Return a function that writes all rows to the file `path`, with the columns of `schema` if given.

    With `is_grouped`, rows must be sorted by day and queue, and each day and queue gets its own row groups.
    """

    def write(batches: Batches) -> Batches:
        spool: _PendingUpload | None = None
        key = None
        for rows in _runs(batches) if is_grouped else _tables(batches):
            spool = spool or _PendingUpload(path, schema or rows.schema, ("", ""))
            if is_grouped and key != (key := _key(rows)):
                spool.flush()
            spool.add(rows)
        yield from _finished(spool, store)

    return write


def written(rows: "DataFrame", write: Callable[[Batches], Batches]) -> list[DataFile]:
    """Write `rows` with `write` in the tasks, and return the files."""
    return [pickle.loads(one["file"]) for one in rows.mapInArrow(write, FILES).collect()]


def read(
    spark: "SparkSession", store: ObjectStore,
    files: Sequence[tuple[str, Mapping[str, Any]]], schema: pa.Schema,
    *, place: tuple[str, str] | None = None,
) -> "DataFrame":  # fmt: skip
    """Return the rows of `files`; each is a path and the values of columns that are constant in it.

    `place` are the names of two additional columns: the path, and the number of the row in its file.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    if place is not None:
        schema = schema.append(pa.field(place[0], pa.string())).append(pa.field(place[1], pa.int64()))
    listed = [(path, bytearray(pickle.dumps(dict(values)))) for path, values in files]
    frame = spark.createDataFrame(listed, "path string, given binary")
    frame = frame.repartition(max(1, min(len(listed), _READERS)))
    return frame.mapInArrow(_reader(store, schema, place), from_arrow_schema(schema))


def _reader(
    store: ObjectStore, schema: pa.Schema, place: tuple[str, str] | None
) -> Callable[[Batches], Batches]:
    def obey(batches: Batches) -> Batches:
        filesystem = store.filesystem()
        for batch in batches:
            for one in batch.to_pylist():
                given = pickle.loads(one["given"])
                with store.translated_errors():
                    found = parquet.ParquetFile(filesystem.open_input_file(one["path"]))
                    row = 0
                    for rows in found.iter_batches(_READ_ROWS):
                        if place is not None:
                            given |= {place[0]: one["path"]}
                        yield _fitted(rows, schema, given, (place[1], row) if place else None)
                        row += rows.num_rows

    return obey


def _fitted(
    rows: pa.RecordBatch, schema: pa.Schema, given: Mapping[str, Any], numbered: tuple[str, int] | None
) -> pa.RecordBatch:
    """Return `rows` with the columns of `schema`; columns that are missing are null."""
    columns = []
    for field in schema:
        if numbered is not None and field.name == numbered[0]:
            column = pa.array(range(numbered[1], numbered[1] + rows.num_rows), pa.int64())
        elif field.name in given:
            column = pa.repeat(pa.scalar(given[field.name], field.type), rows.num_rows)
        elif field.name in rows.schema.names:
            column = rows.column(field.name).cast(field.type)
        else:
            column = pa.nulls(rows.num_rows, field.type)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class _PendingUpload:
    """A file that is being written, as an unnamed temporary file on the disk of the executor."""

    def __init__(self, path: str, schema: pa.Schema, key: tuple[str, str]) -> None:
        self.path = path
        self.key = key
        self._schema = schema
        self._waiting: list[pa.Table] = []
        self._count = 0
        self._file = tempfile.TemporaryFile()  # noqa: SIM115, open until it is sent
        self._writer = parquet.ParquetWriter(self._file, schema, compression="zstd")

    def add(self, rows: pa.Table) -> None:
        """Add rows."""
        self._waiting.append(rows.select(self._schema.names).cast(self._schema))
        self._count += rows.num_rows
        if self._count >= _GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        """End the current row group."""
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting))
            self._waiting, self._count = [], 0

    def send(self, store: ObjectStore) -> DataFile:
        """Complete the file, upload it and remove the local copy."""
        with self._file as file:
            self.flush()
            self._writer.close()
            size = file.tell()
            footer = parquet.read_metadata(file)
            file.seek(0)
            with store.translated_errors():
                # The buffer is larger than a piece, since delta-rs accepts only what a buffer passes on.
                sink = store.filesystem().open_output_stream(self.path, buffer_size=2 * _SENT_BYTES)
                while piece := file.read(_SENT_BYTES):
                    sink.write(piece)
                sink.close()
        names = footer.schema.to_arrow_schema().names
        return DataFile(
            path=Path(self.path), day=self.key[0], queue=self.key[1], rows=footer.num_rows, size_bytes=size,
            ranges={name: footer_range(footer, name) for name in ORDERED if name in names},
        )  # fmt: skip


def _finished(spool: _PendingUpload | None, store: ObjectStore) -> Batches:
    if spool is not None:
        told = pickle.dumps(spool.send(store))
        yield pa.RecordBatch.from_arrays([pa.array([told], pa.binary())], names=["file"])


def _runs(batches: Batches) -> Iterator[pa.Table]:
    """Split batches, which are sorted by day and queue, into tables of one day and queue."""
    for batch in batches:
        changed: list[int] = []
        for column in (batch.column(DAY), batch.column(QUEUE)) if batch.num_rows else ():
            differs = compute.not_equal(column[1:], column[:-1])
            changed += compute.indices_nonzero(differs).to_pylist()
        begin = 0
        for end in sorted({one + 1 for one in changed} | {batch.num_rows} - {0}):
            yield pa.table(_listed(batch.slice(begin, end - begin)))
            begin = end


def _tables(batches: Batches) -> Iterator[pa.Table]:
    return (pa.table(_listed(batch)) for batch in batches if batch.num_rows)


def _listed(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _key(rows: pa.Table) -> tuple[str, str]:
    return str(rows[DAY][0].as_py()), rows[QUEUE][0].as_py()
