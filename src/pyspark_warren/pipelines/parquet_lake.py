"""A lake of plain Parquet, without Delta: each micro-batch is a folder that is renamed to commit it.

A rename is atomic: a reader sees all of a batch or nothing, and a folder that is not empty is not replaced.
So a repeated batch finds its folder and is skipped, and of two drivers that write the same batch one commits.

    write files below _warren/staged │ rename to batch=<query>-<number>
              a crash here leaves a folder that readers ignore: `clean` removes it
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
    """Implements `Lake` for plain Parquet in a folder."""

    format = PARQUET

    store = None

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = str(root)

    def prepare(self) -> None:
        """Create the folder if it does not exist. Raises ValueError if it has other contents."""
        check_format(self.root, PARQUET)
        self.root.mkdir(parents=True, exist_ok=True)

    def has(self, batch: LakeBatch) -> bool:
        """Whether the batch is committed."""
        return self._folder(batch).is_dir()

    def write(self, rows: "DataFrame", batch: LakeBatch) -> UncommittedBatch:
        """Let the executors write `rows` to a staging folder."""
        return write_folder(rows, self.root, batch)

    def commit(self, batch: LakeBatch, written: UncommittedBatch) -> None:
        """Rename the staging folder, unless another attempt has committed the batch."""
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
        """Return the offset after the last one in the files, for each queue."""
        folders = self.root.glob(f"{BATCH}=*")
        return offset_ends((one for folder in folders for one in lake_files(folder)), queues)

    def snapshot(self, version: int | None = None, batches: Sequence[str] = ()) -> LakeSnapshot:
        """Return the current batches, or the given ones. Raises ValueError if one was removed."""
        assert version is None
        names = tuple(batches) or tuple(sorted(one.name for one in self.root.glob(f"{BATCH}=*")))
        gone = [name for name in names if not (self.root / name).is_dir()]
        if gone:
            raise ValueError(f"{gone[0]!r} was removed from the lake {str(self.root)!r}")
        files = tuple(str(self.root / name) for name in names)
        return LakeSnapshot(version=None, batches=names, files=files, partitions={}, times={})

    def _folder(self, batch: LakeBatch) -> Path:
        return self.root / f"{BATCH}={batch.folder}"
