"""Recovery of incomplete metadata: lists the choices, and applies one for the next start."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from warren.journal.file_format import NAME, JournalError
from warren.journal.high_water_mark import HighWaterMarkFile
from warren.journal.journal import Journal
from warren.journal.journal_dependencies import JournalDependencies
from warren.journal.log_reader import RecoveredLog
from warren.journal.recovery import doubt_numbers, find_loss, find_older, read_log
from warren.metadata.machine import Metadata
from warren.node.quarantine import Quarantine
from warren.node.store_reaches import forget_metadata, metadata_reached
from warren.node.vhost_folders import STREAMS, VHOSTS, directory_name, is_deleted
from warren.runtime.clock import wall_ms
from warren.runtime.disk import DirectoryDisk
from warren.runtime.randomness import random_bytes
from warren.runtime.read_only_disk import ReadOnlyDisk
from warren.runtime.worker_thread import WorkerThread
from warren.store.survey import MessageTotals, survey_store, survey_streams

_METADATA = "metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryChoice:
    """One way to recover the metadata."""

    name: str
    metadata: Metadata
    found: RecoveredLog
    # Why it cannot be chosen; empty if it can.
    error: str = ""

    @property
    def problem(self) -> str:
        """What is missing from it; empty if it is complete."""
        faults = [*self.found.damage, *([self.found.loss] if self.found.loss is not None else [])]
        return self.error or "; ".join(map(str, faults))

    def counts(self) -> dict[str, int]:
        """The numbers of objects that exist after this choice."""
        vhosts = self.metadata.vhosts.by_name.values()
        queues = [queue for vhost in vhosts for queue in vhost.topology.queues.values()]
        streams = sum(queue.kind == "stream" for queue in queues)
        return {
            "vhosts": len(vhosts),
            "queues": len(queues) - streams,
            "streams": streams,
            "bindings": sum(len(list(vhost.topology.bindings())) for vhost in vhosts),
            "users": len(self.metadata.users.by_name),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredQueue:
    """The messages that the store of one virtual host holds for one queue or stream."""

    digits: str
    number: int
    held: MessageTotals


def recovery_choices(data: Path, copy: Path | None) -> list[RecoveryChoice]:
    """Return the choices for the directory `data`: the readable part, a copy, nothing. Raises OSError."""
    own = data / _METADATA / NAME
    found = [_choice("readable", data, own)]
    if copy is not None:
        found.append(_choice("copy", data, copy / NAME if copy.is_dir() else copy))
    return [*found, _choice("empty", data, None)]


def stored_queues(data: Path) -> list[StoredQueue]:
    """Return the queues and streams in the stores; raises OSError."""
    return list(_stored_queues(data / VHOSTS))


def orphaned(choice: RecoveryChoice, stored: list[StoredQueue]) -> tuple[int, MessageTotals]:
    """Return the stored queues and streams that `choice` does not name, with their messages."""
    named = {
        (directory_name(vhost.name), queue.number)
        for vhost in choice.metadata.vhosts.by_name.values()
        for queue in vhost.topology.queues.values()
    }
    is_whole = not choice.problem
    left = [
        one
        for one in stored
        if (one.digits, one.number) not in named
        and not (is_whole and choice.metadata.was_deleted(one.number))
    ]
    return len(left), MessageTotals(
        sum(one.held.messages for one in left), sum(one.held.byte_count for one in left)
    )


def apply_choice(data: Path, choice: RecoveryChoice, stored: list[StoredQueue]) -> None:
    """Replace the metadata by `choice` for the next start; the old files are copied first. Raises OSError."""
    folder = data / _METADATA
    folder.mkdir(mode=0o700, exist_ok=True)
    Quarantine(data, choice.metadata).keep_metadata(folder)
    if choice.problem:
        doubt_numbers(choice.metadata, choice.found, max((one.number for one in stored), default=0))
    failures: list[OSError] = []
    dependencies = JournalDependencies(
        now=wall_ms,
        random_bytes=random_bytes,
        make_future=asyncio.Future,
        report=lambda error: failures.append(error) if error is not None else None,
    )
    loop = asyncio.new_event_loop()
    with (
        closing(loop),
        closing(WorkerThread(_METADATA)) as worker,
        closing(DirectoryDisk(folder, loop, worker)) as disk,
    ):
        Journal(choice.metadata, disk, dependencies, choice.found).begin()
        if failures:
            raise failures[0]
        forget_metadata(data, loop, worker)


def _choice(name: str, data: Path, file: Path | None) -> RecoveryChoice:
    folder = data / _METADATA
    metadata = Metadata()
    with closing(ReadOnlyDisk(folder)) as disk:
        found = RecoveredLog(
            mark=HighWaterMarkFile.read(disk) if folder.exists() else HighWaterMarkFile(None)
        )
    try:
        if file is not None:
            read_log(file.read_bytes(), metadata, found)
    except FileNotFoundError:
        return RecoveryChoice(name=name, metadata=metadata, found=found, error=f"there is no {str(file)!r}")
    except JournalError as error:
        return RecoveryChoice(name=name, metadata=metadata, found=found, error=str(error))
    if file is not None:
        found.loss = find_loss(found, is_mark_there=True) or find_older(found, metadata_reached(data))
        return RecoveryChoice(name=name, metadata=metadata, found=found)
    return RecoveryChoice(
        name=name, metadata=metadata, found=found, error="all queues, users and virtual hosts are forgotten"
    )


def _stored_queues(vhosts: Path) -> Iterator[StoredQueue]:
    for path in sorted(vhosts.iterdir()) if vhosts.exists() else ():
        if not path.is_dir() or is_deleted(path):
            continue
        for folder, survey in ((path, survey_store), (path / STREAMS, survey_streams)):
            if folder.exists():
                with closing(ReadOnlyDisk(folder)) as disk:
                    for number, held in survey(disk).items():
                        yield StoredQueue(digits=path.name, number=number, held=held)
