"""A lake of plain Parquet in an object store: each micro-batch is a single object.

An object store has no rename, and readers would see several objects one after the other. So one task writes
the batch to its local disk, and uploads it under a name that consists of the query id and the number. A
repeated batch has the same rows and the same name. An interrupted batch leaves only parts of a multipart
upload, which are invisible and which the store can expire.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow.parquet as parquet

from pyspark_warren.pipelines.lakes import (
    BATCH,
    DAY,
    OWN_FOLDER,
    PARQUET,
    QUEUE,
    LakeBatch,
    LakeSnapshot,
    UncommittedBatch,
)
from pyspark_warren.pipelines.object_io import lake_schema, single_file_writer, written
from pyspark_warren.pipelines.object_store import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILE = "part-0.parquet"


class ObjectStoreParquet:
    """Implements `Lake` for plain Parquet in an object store."""

    format = PARQUET
    root = None

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.place = store.uri

    def prepare(self) -> None:
        """Raise ValueError if the place has other contents than a lake of plain Parquet."""
        strange = [one for one in self.store.names() if one != OWN_FOLDER and not one.startswith(f"{BATCH}=")]
        if strange:
            raise ValueError(
                f"{self.place!r} is not a lake of plain Parquet, since it contains {strange[0]!r}: "
                "give an empty place"
            )

    def has(self, batch: LakeBatch) -> bool:
        """Whether the object of the batch exists."""
        return self.store.has(_path(batch))

    def write(self, rows: "DataFrame", batch: LakeBatch) -> UncommittedBatch:
        """Let one task write the batch; it is committed when its object is complete."""
        ordered = rows.repartition(1).sortWithinPartitions(DAY, QUEUE, "offset")
        files = written(ordered, single_file_writer(self.store, _path(batch), lake_schema(), is_grouped=True))
        return UncommittedBatch(files=tuple(files), folder=None)

    def commit(self, batch: LakeBatch, written: UncommittedBatch) -> None:
        """Do nothing: the batch was committed by its object."""

    def ends(self, queues: Sequence[str]) -> dict[str, int]:
        """Return the offset after the last one in the objects, for each queue."""
        ends: dict[str, int] = {}
        for queue, largest in self._largest():
            if queue in queues:
                ends[queue] = max(ends.get(queue, 0), largest + 1)
        return ends

    def snapshot(self, version: int | None = None, batches: Sequence[str] = ()) -> LakeSnapshot:
        """Return the current batches, or the given ones. Raises ValueError if one was removed."""
        assert version is None
        there = [one for one in self.store.names() if one.startswith(f"{BATCH}=")]
        gone = [name for name in batches if name not in there]
        if gone:
            raise ValueError(f"{gone[0]!r} was removed from the lake {self.place!r}")
        names = tuple(batches) or tuple(there)
        files = tuple(f"{name}/{_FILE}" for name in names)
        return LakeSnapshot(version=None, batches=names, files=files, partitions={}, times={})

    def _largest(self) -> Iterator[tuple[str, int]]:
        """Yield the queue and the last offset of each row group."""
        filesystem = self.store.filesystem()
        for path in self.snapshot().files:
            with self.store.translated_errors():
                footer = parquet.read_metadata(filesystem.open_input_file(path))
            names = footer.schema.to_arrow_schema().names
            paths = [footer.schema.column(number).path for number in range(footer.num_columns)]
            if not {QUEUE, "offset"} <= set(names):
                raise ValueError(
                    f"{self.store.uri}/{path} is not a batch of a lake, since it has no columns {QUEUE!r} "
                    "and 'offset': was it copied there?"
                )
            for number in range(footer.num_row_groups):
                group = footer.row_group(number)
                queue, offset = (group.column(paths.index(name)).statistics for name in (QUEUE, "offset"))
                if offset is not None and offset.has_min_max:
                    yield queue.max, offset.max


def _path(batch: LakeBatch) -> str:
    return f"{BATCH}={batch.folder}/{_FILE}"
