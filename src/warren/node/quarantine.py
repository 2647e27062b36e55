"""Stored data that the metadata do not name, kept until an operator removes them or they are named again.

<data>/quarantine/vhosts/<digits>/             a whole virtual host, as it was in vhosts/
                  streams/<digits>/            files of streams, of the virtual host with this directory name
                  metadata/<a time>/           damaged metadata, which an operator chose to start without
                  acknowledged                 the ids of the items that an operator has acknowledged

Messages of a queue are stored among those of others, and stay there: their store counts them as in use.

Data are deleted without a warning only if the metadata log contains the command that deleted the object: a
virtual host is recorded as removed until its files are deleted; the number of a queue was released in a
journal without gaps (`metadata/in_doubt_numbers`). Data that the metadata name again are restored.
"""

import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from warren.management.quarantine_view import QuarantinedItem
from warren.metadata.machine import Metadata
from warren.node.acknowledgement import Acknowledgements
from warren.node.vhost_folders import (
    QUARANTINE,
    STREAMS,
    VHOSTS,
    directory_name,
    is_deleted,
    name_in,
    set_aside,
)
from warren.runtime.locked_directory import make_directory
from warren.runtime.read_only_disk import ReadOnlyDisk
from warren.store.recovered_queue import RecoveredQueue
from warren.store.streams.segment import is_stream_file, stream_of
from warren.store.survey import MessageTotals, queue_totals, sum_totals, survey_store, survey_streams

logger = logging.getLogger("warren.quarantine")

_METADATA = "metadata"
# The name of this directory in older versions.
_LOST = ".lost"
_HINT = "kept until `warren quarantine remove`"


class _OrphanedQueue(Struct):
    """Messages of a queue that the metadata do not name, in the open store of their virtual host."""

    vhost: str
    number: int
    levels: dict[int, RecoveredQueue]

    @property
    def id(self) -> str:
        return f"queue-{directory_name(self.vhost)}-{self.number}"

    def item(self) -> QuarantinedItem:
        held = queue_totals(self.levels)
        return QuarantinedItem(
            id=self.id, kind="queue", vhost=self.vhost, number=self.number, path="",
            messages=held.messages, byte_count=held.byte_count,
        )  # fmt: skip


class Quarantine:
    """The quarantine of one data directory."""

    def __init__(self, data: Path, metadata: Metadata) -> None:
        self._data = data
        self._folder = data / QUARANTINE
        self._metadata = metadata
        self._known = Acknowledgements(self._folder)
        # By id: the items in the folder, and those in stores.
        self._moved: dict[str, tuple[QuarantinedItem, list[Path]]] = {}
        self._pinned: dict[str, _OrphanedQueue] = {}
        # The highest number of the queues and streams in quarantine.
        self.number_max = 0

    def items(self) -> list[QuarantinedItem]:
        """All quarantined items."""
        # Copies: a restart of a virtual host changes both, in another thread.
        moved = [item for item, _ in list(self._moved.values())]
        found = moved + [pinned.item() for pinned in list(self._pinned.values())]
        # Metadata are here because an operator has started the node without the damaged part.
        return [
            replace(item, acknowledged=item.kind == _METADATA or self._known.has(item.id)) for item in found
        ]

    def acknowledge(self) -> int:
        """Acknowledge all items; returns how many were not acknowledged before."""
        return self._known.add(item.id for item in self.items() if not item.acknowledged)

    def begin(self) -> None:
        """Register the items that earlier starts have moved here."""
        for path in _folders(self._folder / VHOSTS):
            self._note_vhost(path)
        for path in _folders(self._folder / STREAMS):
            self._note_streams(path)
        for path in _folders(self._folder / _METADATA):
            self._note(_item("metadata", path, MessageTotals(byte_count=_size_on_disk(path))), [path])

    # --- virtual hosts ----------------------------------------------------------------------------

    def reconcile_vhosts(self, names: Iterable[str]) -> None:
        """Move directories of virtual hosts that are not in `names` here; restore those that are."""
        vhosts = self._data / VHOSTS
        known = {directory_name(name): name for name in names}
        for digits, name in known.items():
            kept = self._folder / VHOSTS / digits
            if kept.exists() and not (vhosts / digits).exists():
                make_directory(vhosts)
                os.rename(kept, vhosts / digits)
                self._went(f"vhost-{digits}")
                logger.warning("vhost '%s' is in the metadata again: restored from %s", name, kept)
        for path in _folders(vhosts):
            if path.name in known:
                continue
            if is_deleted(path):
                logger.warning("vhost '%s' was deleted: removing its messages in %s", name_in(path), path)
                shutil.rmtree(path, ignore_errors=True)
            else:
                self._move_vhost(path)

    def _move_vhost(self, path: Path) -> None:
        moved = _free(self._folder / VHOSTS / path.name.removesuffix(_LOST))
        make_directory(moved.parent)
        os.rename(path, moved)
        item = self._note_vhost(moved)
        logger.error(
            "vhost '%s' is not in the metadata: %s messages (%d bytes) moved to %s, %s %s",
            item.vhost, item.messages, item.byte_count, moved, _HINT, item.id,
        )  # fmt: skip

    def _note_vhost(self, path: Path) -> QuarantinedItem:
        held = MessageTotals(byte_count=_size_on_disk(path))
        for folder, survey in ((path, survey_store), (path / STREAMS, survey_streams)):
            found = _surveyed(folder, survey) if folder.exists() else {}
            self.number_max = max([self.number_max, *found])
            held = held.plus(MessageTotals(messages=sum_totals(found).messages))
        return self._note(_item("vhost", path, held, vhost=name_in(path)), [path])

    # --- streams ----------------------------------------------------------------------------------

    def reconcile_streams(self, name: str, folder: Path, numbers: set[int]) -> None:
        """Move streams of vhost `name` that are not in `numbers` out of `folder`; restore those that are."""
        kept = self._folder / STREAMS / directory_name(name)
        present = _by_stream(folder)
        for number, files in _by_stream(kept).items():
            if number in numbers and number not in present:
                for file in files:
                    os.rename(file, folder / file.name)
                self._went(f"stream-{kept.name}-{number}")
                logger.warning(
                    "vhost '%s': stream %d is in the metadata again: restored from the quarantine",
                    name,
                    number,
                )
        unknown = {
            number: files
            for number, files in present.items()
            if number not in numbers and not self._metadata.was_deleted(number)
        }
        if not unknown:
            return
        make_directory(kept)
        for file in chain.from_iterable(unknown.values()):
            os.rename(file, kept / file.name)
        for item in self._note_streams(kept, name):
            if item.number in unknown:
                logger.error(
                    "vhost '%s': stream %d is not in the metadata: %d messages (%d bytes) moved to %s, %s %s",
                    name, item.number, item.messages, item.byte_count, kept, _HINT, item.id,
                )  # fmt: skip

    def _note_streams(self, path: Path, name: str = "") -> list[QuarantinedItem]:
        known = self._metadata.vhosts.by_name
        vhost = name or next((one for one in known if directory_name(one) == path.name), "")
        held = _surveyed(path, survey_streams)
        self.number_max = max([self.number_max, *held])
        return [
            self._note(
                _item("stream", path, held.get(number, MessageTotals()), vhost=vhost, number=number), files
            )
            for number, files in _by_stream(path).items()
        ]

    # --- queues -----------------------------------------------------------------------------------

    def pin(self, vhost: str, found: dict[int, dict[int, RecoveredQueue]]) -> None:
        """Register messages in the open store of `vhost`, of queues that the metadata do not name."""
        self.unpin(vhost)
        for number, levels in found.items():
            pinned = _OrphanedQueue(vhost, number, levels)
            self._pinned[pinned.id] = pinned
            self.number_max = max(self.number_max, number)
            item = pinned.item()
            logger.error(
                "vhost '%s': queue %d is not in the metadata: %d messages (%d bytes) stay there, %s %s",
                vhost, number, item.messages, item.byte_count, _HINT, item.id,
            )  # fmt: skip

    def unpin(self, vhost: str) -> None:
        """Remove what `pin` registered of `vhost`, whose store is closed."""
        for id in [id for id, pinned in self._pinned.items() if pinned.vhost == vhost]:
            del self._pinned[id]

    def take_pinned(self, id: str) -> tuple[str, int, dict[int, RecoveredQueue]] | None:
        """Remove the orphaned queue `id`; returns its vhost, number and messages, None if unknown."""
        pinned = self._pinned.pop(id, None)
        if pinned is not None:
            self._known.forget(id)
        return None if pinned is None else (pinned.vhost, pinned.number, pinned.levels)

    def number_of(self, id: str) -> int:
        """Return the number of the queue `id`; 0 if there is none."""
        pinned = self._pinned.get(id)
        return 0 if pinned is None else pinned.number

    # --- moved files ------------------------------------------------------------------------------

    def keep_metadata(self, folder: Path) -> None:
        """Keep a copy of the incomplete metadata in `folder` before they are overwritten."""
        copy = _free(self._folder / _METADATA / str(time.time_ns()))
        make_directory(copy.parent)
        shutil.copytree(folder, copy)
        logger.warning("the metadata were copied to %s before they are changed", copy)

    def remove(self, id: str) -> Callable[[], None] | None:
        """Return a function for a thread that deletes the files of `id`; None if there is no such item."""
        found = self._went(id)
        if found is None:
            return None
        return lambda: _remove(found[1])

    def _went(self, id: str) -> tuple[QuarantinedItem, list[Path]] | None:
        """Forget the item `id`; returns it, if there was one."""
        self._known.forget(id)
        return self._moved.pop(id, None)

    def _note(self, item: QuarantinedItem, paths: list[Path]) -> QuarantinedItem:
        self._moved[item.id] = (item, paths)
        return item


def finish_removals(data: Path, metadata: Metadata) -> None:
    """Finish the deletion of virtual hosts that a command has deleted."""
    if not metadata.vhosts.removed:
        return
    vhosts = data / VHOSTS
    for name in metadata.vhosts.removed:
        path = vhosts / directory_name(name)
        if path.exists():
            os.rename(path, set_aside(path))
    if vhosts.exists():
        folder = os.open(vhosts, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    metadata.vhosts.removed.clear()


def _item(kind: str, path: Path, held: MessageTotals, *, vhost: str = "", number: int = 0) -> QuarantinedItem:
    name = f"{path.name}-{number}" if number else path.name
    return QuarantinedItem(
        id=f"{kind}-{name}", kind=kind, vhost=vhost, number=number, path=str(path),
        messages=held.messages, byte_count=held.byte_count,
    )  # fmt: skip


def _surveyed(
    path: Path, survey: Callable[[ReadOnlyDisk], dict[int, MessageTotals]]
) -> dict[int, MessageTotals]:
    try:
        with closing(ReadOnlyDisk(path)) as disk:
            return survey(disk)
    except OSError as error:
        logger.error("cannot count the messages in %s: %s", path, error)
        return {}


def _folders(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_dir()) if path.exists() else []


def _by_stream(path: Path) -> dict[int, list[Path]]:
    """Return the files in `path` by the number of their stream."""
    found: dict[int, list[Path]] = {}
    for file in sorted(path.iterdir()) if path.exists() else ():
        # The catalog belongs to all streams, and unknown files to none.
        if is_stream_file(file.name):
            found.setdefault(stream_of(file.name)[0], []).append(file)
    return found


def _size_on_disk(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _free(path: Path) -> Path:
    """Return `path`, with a number appended if it exists."""
    number = 1
    free = path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}.{number}")
    return free


def _remove(paths: list[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
