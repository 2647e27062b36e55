"""A Delta table in an object store: executors write files to their final place, and the driver commits them.

The commit is a conditional put: the store refuses the second of two objects of the same name. Readers ignore
files without a commit, and `clean` removes them.
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
    """Implements `Lake` for a Delta table in an object store."""

    format = DELTA
    root = None

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.place = store.uri

    def prepare(self) -> None:
        """Create the table if it does not exist. Raises ValueError if the place has other contents."""
        names = self.store.names()
        strange = [name for name in names if name != OWN_FOLDER]
        if DELTA_LOG not in names and strange:
            raise ValueError(
                f"{self.place!r} is not a Delta table, since it contains {strange[0]!r}: give an empty place"
            )
        with self.store.translated_errors():
            prepare_table(self.place, self.store.options)

    def has(self, batch: LakeBatch) -> bool:
        """Whether the table has this batch or a later one of the query."""
        return has_batch(self.table(), batch)

    def write(self, rows: "DataFrame", batch: LakeBatch) -> UncommittedBatch:
        """Let the executors write files, which readers ignore until they are committed."""
        files = written(rows.sortWithinPartitions(DAY, QUEUE), partitioned_writer(self.store))
        return UncommittedBatch(files=tuple(files), folder=None)

    def commit(self, batch: LakeBatch, written: UncommittedBatch) -> int:
        """Commit a written batch once, and return the version of the table after it."""
        with self.store.translated_errors():
            return commit_files(self.place, batch, written.files, self.store.options)[1]

    def ends(self, queues: Sequence[str]) -> dict[str, int]:
        """Return the offset after the last one in the log, for each queue."""
        return table_ends(self.table(), queues)

    def snapshot(self, version: int | None = None, batches: Sequence[str] = ()) -> LakeSnapshot:
        """Return the files of the latest version, or of the given one."""
        assert not batches
        return table_snapshot(self.table(version), "")

    def table(self, version: int | None = None) -> "DeltaTable":
        """Open the latest version of the table, or the given one."""
        with self.store.translated_errors():
            return open_table(self.place, version, self.store.options)
