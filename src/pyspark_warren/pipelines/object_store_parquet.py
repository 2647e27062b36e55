"""Plain Parquet in an object store: a batch is one object, which is there whole or not at all.

There is no rename in an object store, and of several objects a reader would see some before the others. So
one task writes a batch, to its own disk, and puts it under the name that follows from the query and the
number. The same batch made again is the same rows under the same name; nothing is left of one that was
broken off but parts of an upload, which no reader sees and the store discards.
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
    """See `Lake`."""

    format = PARQUET
    root = None

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.place = store.uri

    def prepare(self) -> None:
        """ValueError if the place has something else."""
        strange = [one for one in self.store.names() if one != OWN_FOLDER and not one.startswith(f"{BATCH}=")]
        if strange:
            raise ValueError(
                f"{self.place!r} holds {strange[0]!r}, and is no lake of plain Parquet: give an empty place"
            )

    def has(self, batch: LakeBatch) -> bool:
        """Whether the batch is there."""
        return self.store.has(_path(batch))

    def write(self, rows: "DataFrame", batch: LakeBatch) -> UncommittedBatch:
        """Have a task write the batch; it is there then."""
        ordered = rows.repartition(1).sortWithinPartitions(DAY, QUEUE, "offset")
        files = written(ordered, single_file_writer(self.store, _path(batch), lake_schema(), is_grouped=True))
        return UncommittedBatch(files=tuple(files), folder=None)

    def commit(self, batch: LakeBatch, written: UncommittedBatch) -> None:
        """The object was the commit."""

    def ends(self, queues: Sequence[str]) -> dict[str, int]:
        """Behind the last offset of each queue, as the objects themselves say."""
        ends: dict[str, int] = {}
        for queue, largest in self._largest():
            if queue in queues:
                ends[queue] = max(ends.get(queue, 0), largest + 1)
        return ends

    def snapshot(self, version: int | None = None, batches: Sequence[str] = ()) -> LakeSnapshot:
        """The batches that are there, or those that were."""
        assert version is None
        there = [one for one in self.store.names() if one.startswith(f"{BATCH}=")]
        gone = [name for name in batches if name not in there]
        if gone:
            raise ValueError(f"{gone[0]!r} was removed from the lake {self.place!r}")
        names = tuple(batches) or tuple(there)
        files = tuple(f"{name}/{_FILE}" for name in names)
        return LakeSnapshot(version=None, batches=names, files=files, partitions={}, times={})

    def _largest(self) -> Iterator[tuple[str, int]]:
        """The queue of each row group, and its last offset."""
        filesystem = self.store.filesystem()
        for path in self.snapshot().files:
            with self.store.translated_errors():
                footer = parquet.read_metadata(filesystem.open_input_file(path))
            names = footer.schema.to_arrow_schema().names
            paths = [footer.schema.column(number).path for number in range(footer.num_columns)]
            if not {QUEUE, "offset"} <= set(names):
                raise ValueError(
                    f"{self.store.uri}/{path} has no columns {QUEUE!r} and 'offset', and is no batch of a "
                    "lake: was it put there by hand?"
                )
            for number in range(footer.num_row_groups):
                group = footer.row_group(number)
                queue, offset = (group.column(paths.index(name)).statistics for name in (QUEUE, "offset"))
                if offset is not None and offset.has_min_max:
                    yield queue.max, offset.max


def _path(batch: LakeBatch) -> str:
    return f"{BATCH}={batch.folder}/{_FILE}"
