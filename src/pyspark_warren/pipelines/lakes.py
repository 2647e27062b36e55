"""A lake: a folder that driver and executors share, with rows of messages in it, each batch of them once.

day=…/queue=…/*.parquet         what the log of a Delta table names; its log is `_delta_log`
batch=…/day=…/queue=…/*.parquet the same without a log: a batch is there when its folder has this name
_warren/staged/…                what a batch has written before it is there; no reader looks behind `_`
_warren/checkpoints/<name>      where a query stands
_warren/replays/<name>          what a replay sends, and how far it is
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
# By these rows are found: files say between which values theirs are.
ORDERED = ("offset", "broker_timestamp")
OWN_FOLDER = "_warren"
DELTA_LOG = "_delta_log"
_SUFFIX = ".parquet"
# What Spark's committer, and its checksums, leave beside the rows.
_LEFTOVERS = ("_SUCCESS", ".*.crc")


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeBatch:
    """One batch of one query, which are the same if it is made again after a crash."""

    query: str
    number: int
    # Of the pipeline, for those who look at the table.
    name: str

    @property
    def folder(self) -> str:
        """Its name among others."""
        return f"{self.query}-{self.number:010d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One file of a batch."""

    path: Path
    day: str
    queue: str
    rows: int
    octets: int
    # (smallest, largest, how many are null) of each column of `ORDERED`.
    ranges: dict[str, tuple[Any, Any, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeSnapshot:
    """What a lake has at one moment; it stays the same as long as nobody cleans."""

    # The version of a Delta table, or the folders of batches.
    version: int | None
    batches: tuple[str, ...]
    # Where the rows are; folders, if they say day and queue by their names.
    files: tuple[str, ...]
    # (day, queue) of each file, if not.
    partitions: Mapping[str, tuple[date, str]]
    # From when on, and until before when, the broker took in the rows of a file, where that is known.
    times: Mapping[str, tuple[datetime, datetime]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UncommittedBatch:
    """A batch that is in files which no reader sees."""

    files: tuple[DataFile, ...]
    # Where they are renamed from; None if they are where they belong.
    folder: Path | None


class Lake(Protocol):
    """A table that takes batches."""

    # How it is called: a folder or a URI.
    place: str
    format: str

    @property
    def root(self) -> Path | None:
        """The folder, if it is one."""

    @property
    def store(self) -> ObjectStore | None:
        """Where it is in an object store, if it is not."""

    def prepare(self) -> None:
        """Make it, if it is not there; ValueError if it holds something else."""

    def has(self, batch: LakeBatch) -> bool:
        """Whether a batch is there."""

    def write(self, rows: "DataFrame", batch: LakeBatch) -> UncommittedBatch:
        """Have the executors write `rows`, which are messages and their day."""

    def commit(self, batch: LakeBatch, written: UncommittedBatch) -> int | None:
        """Put in what was written, whole and once; the version of the table, if it has any."""

    def ends(self, queues: Sequence[str]) -> dict[str, int]:
        """Behind the last offset that it has of each queue; queues of which it has nothing are left out."""

    def snapshot(self, version: int | None = None, batches: Sequence[str] = ()) -> LakeSnapshot:
        """What it has now, or what it had then."""


def lake_folder(table: str | os.PathLike[str]) -> Path:
    """The folder of a lake; ValueError for a place that is none."""
    text = os.fspath(table)
    parts = urlsplit(text)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path)).absolute()
    if "://" in text:
        raise ValueError(
            "this is a folder that the driver and all executors see under the same path, or in an object "
            f"store ({'://, '.join(SCHEMES)}://) where a lake may be in one, not {text!r}"
        )
    if not text:
        raise ValueError("the path of the lake is empty")
    return Path(text).absolute()


def format_of(root: Path) -> str | None:
    """Which kind of lake is there; None if none is."""
    if (root / DELTA_LOG).is_dir():
        return DELTA
    if next(root.glob(f"{BATCH}=*"), None) is not None:
        return PARQUET
    return None


def check_format(root: Path, wanted: str) -> None:
    """Raise ValueError if there is something else than a lake of the kind that is `wanted`."""
    found = format_of(root)
    if found not in (None, wanted):
        raise ValueError(f"{str(root)!r} is a lake of format {found!r} already, not {wanted!r}")
    if root.exists() and not root.is_dir():
        raise ValueError(f"{str(root)!r} is a file: a lake is a folder")
    # Another archive may be making a lake here at this moment.
    ours = (OWN_FOLDER, DELTA_LOG)
    strange = sorted(
        one.name for one in root.glob("*") if one.name not in ours and not one.name.startswith(f"{BATCH}=")
    )
    if found is None and strange:
        raise ValueError(f"{str(root)!r} holds {strange[0]!r}, and is no lake: give an empty or a new folder")


def own_folder(lake: Lake, kind: str, name: str) -> Path:
    """A folder for what belongs to the pipeline `name` and is no row."""
    if lake.root is None:
        raise ValueError(
            f"the lake {lake.place!r} is in an object store, where Spark cannot keep where it stands: say "
            "with checkpoint (--checkpoint) which folder has that"
        )
    return lake.root / OWN_FOLDER / kind / quote(name, safe="")


def staging_folder(root: Path, batch: LakeBatch) -> Path:
    """Where one attempt at a batch writes: nobody else does, not even a driver that is thought to be dead."""
    return attempt_folder(root, batch.folder)


def attempt_folder(root: Path, name: str) -> Path:
    """A new folder for what is renamed when it is whole."""
    return root / OWN_FOLDER / "staged" / f"{name}-{uuid.uuid4().hex[:8]}"


def staged_files(folder: Path) -> list[DataFile]:
    """What was written into `folder`, as the files themselves tell; all of it is on the disk then."""
    for pattern in _LEFTOVERS:
        for path in folder.rglob(pattern):
            path.unlink()
    files = [_data_file(path) for path in sorted(folder.rglob(f"*{_SUFFIX}"))]
    sync_below(folder)
    return files


def sync_below(folder: Path) -> None:
    """All files in `folder`, and their names, survive the loss of power from now on."""
    for path in (folder, *folder.rglob("*")):
        sync(path)


def sync(path: Path) -> None:
    """What a file or a folder holds survives the loss of power from now on."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def discard(folder: Path) -> None:
    """Remove what was written, if it is there."""
    shutil.rmtree(folder, ignore_errors=True)


def partition_of(path: Path) -> dict[str, str]:
    """The values that the folders of a file say: `day=…` and `queue=…`."""
    pairs = (part.partition("=") for part in path.parts[:-1] if "=" in part)
    return {name: unquote(value) for name, _, value in pairs}


def offset_ends(files: Iterator[DataFile], queues: Sequence[str]) -> dict[str, int]:
    """Behind the last offset in `files` of each of `queues`."""
    ends: dict[str, int] = {}
    for one in files:
        largest = one.ranges["offset"][1]
        if one.queue in queues and largest is not None:
            ends[one.queue] = max(ends.get(one.queue, 0), largest + 1)
    return ends


def lake_files(folder: Path) -> Iterator[DataFile]:
    """All files below `folder` that have rows."""
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
        octets=path.stat().st_size,
        ranges={name: footer_range(footer, name) for name in ORDERED},
    )


def footer_range(footer: Any, name: str) -> tuple[Any, Any, int]:
    """The smallest and the largest value of a column of a file, and how many are null."""
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
