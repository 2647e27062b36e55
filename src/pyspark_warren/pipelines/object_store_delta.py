"""A Delta table in an object store: files are written where they belong, and the commit names them.

The commit is an object that is put if it is not there, which the store refuses to the second of two. A file
that no commit names is seen by no reader, and removed when the table is cleaned.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark_warren.pipelines.delta_lake import (
    commit_files,
    has_batch,
    open_table,
    prepare_table,
    table_ends,
    table_snapshot,
)
from pyspark_warren.pipelines.lakes import (
    DAY,
    DELTA,
    DELTA_LOG,
    OWN_FOLDER,
    QUEUE,
    LakeBatch,
    LakeSnapshot,
    UncommittedBatch,
)
from pyspark_warren.pipelines.object_io import partitioned_writer, written
from pyspark_warren.pipelines.object_store import ObjectStore

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame


class ObjectStoreDelta:
    """See `Lake`."""

    format = DELTA
    root = None

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.place = store.uri

    def prepare(self) -> None:
        """Make the table, if it is not there; ValueError if the place has something else."""
        names = self.store.names()
        strange = [name for name in names if name != OWN_FOLDER]
        if DELTA_LOG not in names and strange:
            raise ValueError(f"{self.place!r} holds {strange[0]!r}, and is no Delta table: give an empty one")
        with self.store.translated_errors():
            prepare_table(self.place, self.store.options)

    def has(self, batch: LakeBatch) -> bool:
        """Whether the table has a batch, or one behind it."""
        return has_batch(self.table(), batch)

    def write(self, rows: "DataFrame", batch: LakeBatch) -> UncommittedBatch:
        """Have the executors write files, which nobody sees until they are committed."""
        files = written(rows.sortWithinPartitions(DAY, QUEUE), partitioned_writer(self.store))
        return UncommittedBatch(files=tuple(files), folder=None)

    def commit(self, batch: LakeBatch, written: UncommittedBatch) -> int:
        """Commit what was written, once; the version of the table behind it."""
        with self.store.translated_errors():
            return commit_files(self.place, batch, written.files, self.store.options)[1]

    def ends(self, queues: Sequence[str]) -> dict[str, int]:
        """Behind the last offset that the log knows of each queue."""
        return table_ends(self.table(), queues)

    def snapshot(self, version: int | None = None, batches: Sequence[str] = ()) -> LakeSnapshot:
        """The files of the newest version, or of an older one."""
        assert not batches
        return table_snapshot(self.table(version), "")

    def table(self, version: int | None = None) -> "DeltaTable":
        """The table as it is now, or was."""
        with self.store.translated_errors():
            return open_table(self.place, version, self.store.options)
