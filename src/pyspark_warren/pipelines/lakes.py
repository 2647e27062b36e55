"""The layout of a lake: messages in a folder that driver and executors share, or in an object store.

day=…/queue=…/*.parquet         files of a Delta table, whose log is `_delta_log`
batch=…/day=…/queue=…/*.parquet files of plain Parquet: a batch is committed when its folder has this name
_warren/staged/…                files before their commit; readers ignore names that begin with `_`
_warren/checkpoints/<name>      checkpoint of a query
_warren/replays/<name>          plan and progress of a replay
"""

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote, unquote, urlsplit

import pyarrow.parquet as parquet

from pyspark_warren.pipelines.object_store import SCHEMES, ObjectStore
from pyspark_warren.schema import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELTA = "delta"
PARQUET = "parquet"
FORMATS = (DELTA, PARQUET)
DAY = "day"
QUEUE = "queue"
BATCH = "batch"
PARTITIONS = (DAY, QUEUE)
# Columns whose ranges are recorded for each file, so that readers can skip files.
ORDERED = ("offset", "broker_timestamp")
OWN_FOLDER = "_warren"
DELTA_LOG = "_delta_log"
_SUFFIX = ".parquet"
# Files that Spark's committer leaves beside the rows.
_LEFTOVERS = ("_SUCCESS", ".*.crc")


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeBatch:
    """Identifies a micro-batch: the id of the query and its number, which do not change after a crash."""

    query: str
    number: int
    # Name of the pipeline, recorded in the commit for information.
    name: str

    @property
    def folder(self) -> str:
        """Return the name of the folder of this batch."""
        return f"{self.query}-{self.number:010d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file of a batch with its statistics."""

    path: Path
    day: str
    queue: str
    rows: int
    size_bytes: int
    # (minimum, maximum, number of nulls) of each column of `ORDERED`.
    ranges: dict[str, tuple[Any, Any, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeSnapshot:
    """The files of a lake at one time; they stay readable until `clean` removes old files."""

    # The version of a Delta table; or the batch folders of plain Parquet.
    version: int | None
    batches: tuple[str, ...]
    # Files; or folders, if day and queue are in their names.
    files: tuple[str, ...]
    # (day, queue) of each file of a Delta table.
    partitions: Mapping[str, tuple[date, str]]
    # The half-open range of the times of receipt in each file, if it is known.
    times: Mapping[str, tuple[datetime, datetime]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UncommittedBatch:
    """A batch that is written but not committed."""

    files: tuple[DataFile, ...]
    # The staging folder; None if the files are in their final place.
    folder: Path | None


class Lake(Protocol):
    """A table to which micro-batches are committed exactly once."""

    # The folder or the URI, for messages.
    place: str
    format: str

    @property
    def root(self) -> Path | None:
        """The folder; None in an object store."""

    @property
    def store(self) -> ObjectStore | None:
        """The location in an object store; None for a folder."""

    def prepare(self) -> None:
        """Create the lake if it does not exist. Raises ValueError if the place has other contents."""

    def has(self, batch: LakeBatch) -> bool:
        """Whether the batch is committed."""

    def write(self, rows: "DataFrame", batch: LakeBatch) -> UncommittedBatch:
        """Let the executors write `rows`: messages with the column `day`."""

    def commit(self, batch: LakeBatch, written: UncommittedBatch) -> int | None:
        """Commit a written batch once; return the version of a Delta table, else None."""

    def ends(self, queues: Sequence[str]) -> dict[str, int]:
        """Return the offset after the last archived one, for each of `queues` that has rows in the lake."""

    def snapshot(self, version: int | None = None, batches: Sequence[str] = ()) -> LakeSnapshot:
        """Return the current files, or those of the given version or batches."""


def lake_folder(table: str | os.PathLike[str]) -> Path:
    """Return the path of a folder. Raises ValueError if `table` is empty or another kind of URI."""
    text = os.fspath(table)
    parts = urlsplit(text)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path)).absolute()
    if "://" in text:
        raise ValueError(
            f"{text!r} is not a folder: give a folder that the driver and all executors see under the same "
            f"path, or, for a lake, a place in an object store ({'://, '.join(SCHEMES)}://)"
        )
    if not text:
        raise ValueError("the path of the lake is empty")
    return Path(text).absolute()


def format_of(root: Path) -> str | None:
    """Return the format of the lake in a folder; None if there is none."""
    if (root / DELTA_LOG).is_dir():
        return DELTA
    if next(root.glob(f"{BATCH}=*"), None) is not None:
        return PARQUET
    return None


def check_format(root: Path, wanted: str) -> None:
    """Raise ValueError if `root` has other contents than a lake of the format `wanted`."""
    found = format_of(root)
    if found not in (None, wanted):
        raise ValueError(f"{str(root)!r} is already a lake of format {found!r}, not {wanted!r}")
    if root.exists() and not root.is_dir():
        raise ValueError(f"{str(root)!r} is a file: give a folder for the lake")
    # Another archive may be creating the lake at the same time.
    ours = (OWN_FOLDER, DELTA_LOG)
    strange = sorted(
        one.name for one in root.glob("*") if one.name not in ours and not one.name.startswith(f"{BATCH}=")
    )
    if found is None and strange:
        raise ValueError(
            f"{str(root)!r} is not a lake, since it contains {strange[0]!r}: give an empty or a new folder"
        )


def own_folder(lake: Lake, kind: str, name: str) -> Path:
    """Return the folder for the state of the pipeline `name`. Raises ValueError in an object store."""
    if lake.root is None:
        raise ValueError(
            f"the lake {lake.place!r} is in an object store, where Spark cannot keep a checkpoint: give a "
            "folder for it with checkpoint (--checkpoint)"
        )
    return lake.root / OWN_FOLDER / kind / quote(name, safe="")


def staging_folder(root: Path, batch: LakeBatch) -> Path:
    """Return a new staging folder for one attempt at a batch, which no other driver writes to."""
    return attempt_folder(root, batch.folder)


def attempt_folder(root: Path, name: str) -> Path:
    """Return the path of a new staging folder, to be renamed when it is complete."""
    return root / OWN_FOLDER / "staged" / f"{name}-{uuid.uuid4().hex[:8]}"


def staged_files(folder: Path) -> list[DataFile]:
    """Sync a staging folder to disk, and return its data files with their statistics."""
    for pattern in _LEFTOVERS:
        for path in folder.rglob(pattern):
            path.unlink()
    files = [_data_file(path) for path in sorted(folder.rglob(f"*{_SUFFIX}"))]
    sync_below(folder)
    return files


def sync_below(folder: Path) -> None:
    """Sync a folder and everything in it to disk."""
    for path in (folder, *folder.rglob("*")):
        sync(path)


def sync(path: Path) -> None:
    """Sync a file or a folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def discard(folder: Path) -> None:
    """Remove a folder if it exists."""
    shutil.rmtree(folder, ignore_errors=True)


def partition_of(path: Path) -> dict[str, str]:
    """Return the partition values in the path of a file: `day=…` and `queue=…`."""
    pairs = (part.partition("=") for part in path.parts[:-1] if "=" in part)
    return {name: unquote(value) for name, _, value in pairs}


def offset_ends(files: Iterator[DataFile], queues: Sequence[str]) -> dict[str, int]:
    """Return the offset after the last one in `files`, for each of `queues` that has rows."""
    ends: dict[str, int] = {}
    for one in files:
        largest = one.ranges["offset"][1]
        if one.queue in queues and largest is not None:
            ends[one.queue] = max(ends.get(one.queue, 0), largest + 1)
    return ends


def lake_files(folder: Path) -> Iterator[DataFile]:
    """Yield the data files below `folder`."""
    for path in sorted(folder.rglob(f"*{_SUFFIX}")):
        yield _data_file(path)


def _data_file(path: Path) -> DataFile:
    footer = parquet.read_metadata(path)
    partition = partition_of(path)
    return DataFile(
        path=path,
        day=partition[DAY],
        queue=partition[QUEUE],
        rows=footer.num_rows,
        size_bytes=path.stat().st_size,
        ranges={name: footer_range(footer, name) for name in ORDERED},
    )


def footer_range(footer: Any, name: str) -> tuple[Any, Any, int]:
    """Return minimum, maximum and number of nulls of a column from the footer of a file."""
    names = [footer.schema.column(number).path for number in range(footer.num_columns)]
    column = names.index(name)
    groups = [footer.row_group(number).column(column) for number in range(footer.num_row_groups)]
    known = [one.statistics for one in groups if one.statistics is not None]
    ranged = [one for one in known if one.has_min_max]
    return (
        min((one.min for one in ranged), default=None),
        max((one.max for one in ranged), default=None),
        sum(one.null_count or 0 for one in known),
    )


assert set(ORDERED) <= set(COLUMNS)
