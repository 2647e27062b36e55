"""How far the stores of a data directory have seen the metadata come (`store/reach`)."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from warren.node.vhost_folders import QUARANTINE, VHOSTS, is_deleted
from warren.runtime.disk import DirectoryDisk
from warren.runtime.read_only_disk import ReadOnlyDisk
from warren.runtime.worker_thread import WorkerThread
from warren.store.reach import NAME, ReachFile
from warren.store.segment import NewerFormatError


def metadata_reached(data: Path) -> dict[str, int]:
    """The last change of the metadata that each store in `data` has seen, by directory. Raises OSError."""
    reached: dict[str, int] = {}
    for path in _stores(data / VHOSTS):
        with closing(ReadOnlyDisk(path)) as disk:
            try:
                reached[str(path)] = ReachFile(disk, NAME).found.reached
            except NewerFormatError:
                # The store is refused when it is opened, with this reason.
                continue
    return reached


def forget_metadata(data: Path, loop: asyncio.AbstractEventLoop, worker: WorkerThread) -> None:
    """Have no store in `data` expect more of the metadata, which an operator has chosen. Raises OSError."""
    for folder in (data / VHOSTS, data / QUARANTINE / VHOSTS):
        for path in _stores(folder):
            with closing(DirectoryDisk(path, loop, worker)) as disk:
                try:
                    ReachFile(disk, NAME).forget()
                except NewerFormatError:
                    continue


def _stores(folder: Path) -> Iterator[Path]:
    if folder.exists():
        yield from (path for path in sorted(folder.iterdir()) if path.is_dir() and not is_deleted(path))
