"""Plain Parquet, for those who have no Delta: a batch is a folder, and is there when it is renamed.

A rename is the commit: it happens or it does not, whoever lists the lake sees all of a batch or nothing, and
a folder with rows in it is not replaced by another. So a batch that is made again finds its folder, and of
two drivers with the same batch one commits.

    write files below _warren/staged │ rename to batch=<query>-<number>
              a crash here leaves a folder that no reader sees: `clean` removes it
"""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_warren.pipelines.folder_writer import write_folder
from pyspark_warren.pipelines.lakes import (
    BATCH,
    PARQUET,
    LakeBatch,
    LakeSnapshot,
    UncommittedBatch,
    check_format,
    discard,
    lake_files,
    offset_ends,
    staged_files,
    sync,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ParquetLake:
    """See `Lake`."""

    format = PARQUET

    store = None

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = str(root)

    def prepare(self) -> None:
        """Make the folder, if it is not there."""
        check_format(self.root, PARQUET)
        self.root.mkdir(parents=True, exist_ok=True)

    def has(self, batch: LakeBatch) -> bool:
        """Whether the batch is there."""
        return self._folder(batch).is_dir()

    def write(self, rows: "DataFrame", batch: LakeBatch) -> UncommittedBatch:
        """Have the executors write a folder."""
        return write_folder(rows, self.root, batch)

    def commit(self, batch: LakeBatch, written: UncommittedBatch) -> None:
        """Rename the folder, whole, unless another attempt has done so."""
        folder = written.folder
        assert folder is not None
        if staged_files(folder):
            try:
                os.rename(folder, self._folder(batch))
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            sync(self.root)
        discard(folder)

    def ends(self, queues: Sequence[str]) -> dict[str, int]:
        """Behind the last offset of each queue, as the files themselves say."""
        folders = self.root.glob(f"{BATCH}=*")
        return offset_ends((one for folder in folders for one in lake_files(folder)), queues)

    def snapshot(self, version: int | None = None, batches: Sequence[str] = ()) -> LakeSnapshot:
        """The batches that are there, or those that were."""
        assert version is None
        names = tuple(batches) or tuple(sorted(one.name for one in self.root.glob(f"{BATCH}=*")))
        gone = [name for name in names if not (self.root / name).is_dir()]
        if gone:
            raise ValueError(f"{gone[0]!r} was removed from the lake {str(self.root)!r}")
        files = tuple(str(self.root / name) for name in names)
        return LakeSnapshot(version=None, batches=names, files=files, partitions={}, times={})

    def _folder(self, batch: LakeBatch) -> Path:
        return self.root / f"{BATCH}={batch.folder}"
