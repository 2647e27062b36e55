"""A Delta table in an object store: files are written where they belong, and the commit names them.

The commit is an object that is put if it is not there, which the store refuses to the second of two. A file
that no commit names is seen by no reader, and removed when the table is cleaned.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark_warren.pipelines.delta_lake import (
    commit_files,
    has_batch,
    opened,
    prepare_table,
    table_ends,
    table_snapshot,
)
from pyspark_warren.pipelines.lakes import DAY, DELTA, LOG, OWN, QUEUE, Batch, Snapshot, Written
from pyspark_warren.pipelines.objects import partitioned, written
from pyspark_warren.pipelines.stores import Store

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame


class StoredDelta:
    """See `Lake`."""

    format = DELTA
    root = None

    def __init__(self, store: Store) -> None:
        self.store = store
        self.place = store.uri

    def prepare(self) -> None:
        """Make the table, if it is not there; ValueError if the place has something else."""
        names = self.store.names()
        strange = [name for name in names if name != OWN]
        if LOG not in names and strange:
            raise ValueError(f"{self.place!r} holds {strange[0]!r}, and is no Delta table: give an empty one")
        with self.store.asked():
            prepare_table(self.place, self.store.options)

    def has(self, batch: Batch) -> bool:
        """Whether the table has a batch, or one behind it."""
        return has_batch(self.table(), batch)

    def write(self, rows: "DataFrame", batch: Batch) -> Written:
        """Have the executors write files, which nobody sees until they are committed."""
        files = written(rows.sortWithinPartitions(DAY, QUEUE), partitioned(self.store))
        return Written(files=tuple(files), folder=None)

    def commit(self, batch: Batch, written: Written) -> int:
        """Commit what was written, once; the version of the table behind it."""
        with self.store.asked():
            return commit_files(self.place, batch, written.files, self.store.options)[1]

    def ends(self, queues: Sequence[str]) -> dict[str, int]:
        """Behind the last offset that the log knows of each queue."""
        return table_ends(self.table(), queues)

    def snapshot(self, version: int | None = None, batches: Sequence[str] = ()) -> Snapshot:
        """The files of the newest version, or of an older one."""
        assert not batches
        return table_snapshot(self.table(version), "")

    def table(self, version: int | None = None) -> "DeltaTable":
        """The table as it is now, or was."""
        with self.store.asked():
            return opened(self.place, version, self.store.options)
