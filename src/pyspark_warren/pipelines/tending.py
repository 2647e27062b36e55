"""Tends a lake: small files become large ones, and what no reader or writer can need any more is removed."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from pyspark_warren.pipelines.lakes import DAY, DELTA, OWN, discard, format_of, lake_folder

TARGET_OCTETS = 256 * 1_048_576
# A week: who has begun to read an old version, or to write a batch, has ended by then.
RETENTION_HOURS = 168
_HOUR_S = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What compaction has done."""

    files_before: int
    files_after: int
    version: int


def compact(
    table: str | os.PathLike[str], *, day: str | None = None, target_octets: int = TARGET_OCTETS
) -> Compacted:
    """Rewrite small files of a Delta table as fewer, of one day or of all; archives may go on meanwhile.

    The table keeps its rows. Old files stay, for those who read older versions, until `clean` removes them.
    """
    root = _delta(table, "compacted")
    lake = DeltaTable(str(root))
    try:
        told = lake.optimize.compact(
            partition_filters=[(DAY, "=", day)] if day else None, target_size=target_octets
        )
    except DeltaError as error:
        raise ValueError(
            f"{str(root)!r} was not compacted: {error}. If somebody else compacts it, let them finish"
        ) from None
    return Compacted(
        files_before=told["numFilesRemoved"], files_after=told["numFilesAdded"], version=lake.version()
    )


def clean(
    table: str | os.PathLike[str], *, retention_hours: int = RETENTION_HOURS, dry_run: bool = False
) -> list[str]:
    """Remove what crashes have left, and files of old versions, all older than the retention; which they are.

    A Delta table refuses a retention below its own, `delta.deletedFileRetentionDuration`.
    """
    root = lake_folder(table)
    kind = format_of(root)
    removed = [f"{path.relative_to(root)}/" for path in _left(root, retention_hours)]
    if kind == DELTA:
        try:
            lake = DeltaTable(str(root))
            removed += lake.vacuum(retention_hours=retention_hours, dry_run=dry_run, full=True)
        except DeltaError as error:
            raise ValueError(f"{str(root)!r} was not cleaned: {error}") from None
    elif kind is None:
        raise ValueError(f"there is no lake in {str(root)!r}")
    if not dry_run:
        for path in list(_left(root, retention_hours)):
            discard(path)
    return sorted(removed)


def _delta(table: str | os.PathLike[str], what: str) -> Path:
    root = lake_folder(table)
    kind = format_of(root)
    if kind is None:
        raise ValueError(f"there is no lake in {str(root)!r}")
    if kind != DELTA:
        raise ValueError(
            f"{str(root)!r} is plain Parquet and cannot be {what}: without a log, whoever lists it "
            "meanwhile would see rows twice, or not at all. Make larger batches, or use Delta"
        )
    return root


def _left(root: Path, retention_hours: int) -> Iterator[Path]:
    """Folders of attempts that nobody has written into for as long as the retention."""
    if retention_hours < RETENTION_HOURS:
        raise ValueError(
            f"the retention is at least {RETENTION_HOURS} hours, not {retention_hours}: a query that is "
            "running may need what is younger"
        )
    limit = time.time() - retention_hours * _HOUR_S
    for folder in sorted((root / OWN / "staged").glob("*")):
        newest = max((one.stat().st_mtime for one in (folder, *folder.rglob("*"))), default=0.0)
        if newest < limit:
            yield folder
