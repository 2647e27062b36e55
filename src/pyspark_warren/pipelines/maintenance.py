"""Maintenance of a lake: compaction of small files, and removal of files that are no longer needed."""

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

TARGET_BYTES = 256 * 1_048_576
# A week, longer than any reader of an old version, or writer of a batch, should run.
RETENTION_HOURS = 168
_HOUR_S = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """The result of a compaction."""

    files_before: int
    files_after: int
    version: int


def compact(
    table: str | os.PathLike[str],
    *,
    day: str | None = None,
    target_bytes: int = TARGET_BYTES,
    storage_options: Mapping[str, str] | None = None,
) -> CompactionResult:
    """Rewrite small files of a Delta table into few large ones, of one day or of all days.

    Archives and readers can run at the same time. The rows do not change. Old files stay for readers of older
    versions until `clean` removes them. Raises ValueError for plain Parquet, or if the compaction fails.
    """
    lake = existing_lake(table, storage_options)
    if lake.format != DELTA:
        raise ValueError(
            f"{lake.place!r} is plain Parquet and cannot be compacted: it has no log, so a concurrent reader "
            "would see rows twice or not at all. Use larger batches, or Delta"
        )
    found = _opened(lake)
    try:
        with _asked(lake):
            told = found.optimize.compact(
                partition_filters=[(DAY, "=", day)] if day else None, target_size=target_bytes
            )
    except DeltaError as error:
        raise ValueError(
            f"{lake.place!r} was not compacted: {error}. If another compaction is running, wait for it"
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
    """Remove files of crashes and of old versions that are older than the retention, and return their paths.

    With `dry_run`, only return them. Raises ValueError for a retention below RETENTION_HOURS, or below the
    table's own `delta.deletedFileRetentionDuration`.
    """
    if retention_hours < RETENTION_HOURS:
        raise ValueError(
            f"the retention must be at least {RETENTION_HOURS} hours, not {retention_hours}: running queries "
            "may need younger files"
        )
    lake = existing_lake(table, storage_options)
    # An object store has no staging folders.
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
    """Return the context that converts errors of the object store; none is needed for a folder."""
    return nullcontext() if lake.store is None else lake.store.translated_errors()


def _left(root: Path, retention_hours: int) -> Iterator[Path]:
    """Yield staging folders whose files are all older than the retention."""
    limit = time.time() - retention_hours * _HOUR_S
    for folder in sorted((root / OWN_FOLDER / "staged").glob("*")):
        newest = max((one.stat().st_mtime for one in (folder, *folder.rglob("*"))), default=0.0)
        if newest < limit:
            yield folder
