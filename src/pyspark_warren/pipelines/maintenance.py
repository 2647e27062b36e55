"""Tends a lake: small files become large ones, and what no reader or writer can need any more is removed."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from pyspark_warren.pipelines.delta_lake import open_table
from pyspark_warren.pipelines.lake_factory import existing_lake
from pyspark_warren.pipelines.lakes import DAY, DELTA, OWN_FOLDER, Lake, discard

TARGET_OCTETS = 256 * 1_048_576
# A week: who has begun to read an old version, or to write a batch, has ended by then.
RETENTION_HOURS = 168
_HOUR_S = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """What compaction has done."""

    files_before: int
    files_after: int
    version: int


def compact(
    table: str | os.PathLike[str],
    *,
    day: str | None = None,
    target_octets: int = TARGET_OCTETS,
    storage_options: Mapping[str, str] | None = None,
) -> CompactionResult:
    """Rewrite small files of a Delta table as fewer, of one day or of all; archives may go on meanwhile.

    The table keeps its rows. Old files stay, for those who read older versions, until `clean` removes them.
    """
    lake = existing_lake(table, storage_options)
    if lake.format != DELTA:
        raise ValueError(
            f"{lake.place!r} is plain Parquet and cannot be compacted: without a log, whoever lists it "
            "meanwhile would see rows twice, or not at all. Make larger batches, or use Delta"
        )
    found = _opened(lake)
    try:
        with _asked(lake):
            told = found.optimize.compact(
                partition_filters=[(DAY, "=", day)] if day else None, target_size=target_octets
            )
    except DeltaError as error:
        raise ValueError(
            f"{lake.place!r} was not compacted: {error}. If somebody else compacts it, let them finish"
        ) from None
    return CompactionResult(
        files_before=told["numFilesRemoved"], files_after=told["numFilesAdded"], version=found.version()
    )


def clean(
    table: str | os.PathLike[str],
    *,
    retention_hours: int = RETENTION_HOURS,
    dry_run: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> list[str]:
    """Remove what crashes have left, and files of old versions, all older than the retention; which they are.

    A Delta table refuses a retention below its own, `delta.deletedFileRetentionDuration`.
    """
    if retention_hours < RETENTION_HOURS:
        raise ValueError(
            f"the retention is at least {RETENTION_HOURS} hours, not {retention_hours}: a query that is "
            "running may need what is younger"
        )
    lake = existing_lake(table, storage_options)
    # In an object store nothing is written to be renamed.
    left = [] if lake.root is None else list(_left(lake.root, retention_hours))
    removed = [f"{path.relative_to(lake.root)}/" for path in left if lake.root is not None]
    if lake.format == DELTA:
        try:
            with _asked(lake):
                removed += _opened(lake).vacuum(retention_hours=retention_hours, dry_run=dry_run, full=True)
        except DeltaError as error:
            raise ValueError(f"{lake.place!r} was not cleaned: {error}") from None
    if not dry_run:
        for path in left:
            discard(path)
    return sorted(removed)


def _opened(lake: Lake) -> DeltaTable:
    with _asked(lake):
        return open_table(lake.place, options=lake.store.options if lake.store is not None else None)


def _asked(lake: Lake) -> AbstractContextManager[None]:
    """For what the store is asked, if there is one."""
    return nullcontext() if lake.store is None else lake.store.translated_errors()


def _left(root: Path, retention_hours: int) -> Iterator[Path]:
    """Folders of attempts that nobody has written into for as long as the retention."""
    limit = time.time() - retention_hours * _HOUR_S
    for folder in sorted((root / OWN_FOLDER / "staged").glob("*")):
        newest = max((one.stat().st_mtime for one in (folder, *folder.rglob("*"))), default=0.0)
        if newest < limit:
            yield folder
