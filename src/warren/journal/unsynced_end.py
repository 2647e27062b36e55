"""Makes the metadata that a start has read survive a power cut, where it cannot write them into a new file.

The end of the log may be in the page cache only: a process wrote it and was killed before its sync, or a sync
failed and gave it up. What is behind the high-water mark is written again in its place, which needs no room.
"""

from warren.journal.file_format import NAME
from warren.journal.log_reader import RecoveredLog
from warren.journal.parameter_cipher import Cipher
from warren.journal.recovery import recover
from warren.metadata.machine import Metadata
from warren.store.disk import Disk, SyncDirectory, SyncFile, WriteFile


def sync_again(disk: Disk, metadata: Metadata, cipher: Cipher | None, *, node: int) -> bool:
    """Sync the log as it can be read now; False if there are durable queues in `metadata` that it has not.

    OSError if it cannot be written. A failed attempt to replace the file may have replaced it.
    """
    stored = Metadata()
    found = recover(disk, stored, cipher, node=node)
    if not found.is_there or found.damage or found.loss is not None:
        return False
    begin = _synced_to(found)
    end = disk.read(NAME, begin, found.end - begin)
    disk.perform([WriteFile(NAME, begin, [end]), SyncFile(NAME), SyncDirectory()])
    return _queue_numbers(stored) == _queue_numbers(metadata)


def _synced_to(found: RecoveredLog) -> int:
    """How far the file was certainly synced."""
    mark = found.mark.found
    is_of_file = mark is not None and (mark.log_id, mark.generation) == (found.log_id, found.generation)
    return mark.end if mark is not None and is_of_file else 0


def _queue_numbers(metadata: Metadata) -> dict[tuple[str, str], int]:
    """The numbers in the stores of all queues that survive a restart."""
    return {
        (name, queue.name): queue.number
        for name, vhost in metadata.vhosts.by_name.items()
        for queue in vhost.topology.queues.values()
        if queue.survives_restart
    }
