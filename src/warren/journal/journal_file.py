"""The file of the metadata log on a disk: batches at its end, and from time to time a new file.

    append  ─▶ records behind the end, a sync, the high-water mark
    replace ─▶ a snapshot in a new file, a sync, the new name; then the log goes on behind it

Its owner has one job in progress at a time. After each sync the end of the log is written to the high-water
mark, without a sync of its own; `sync_mark` syncs that once a second.

Invariant: after a failed write or sync the content of the file is unknown, so that it is never written to
again: the next job is `replace`.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from warren.journal.file_format import NAME, SALT_SIZE, UNFINISHED_NAME, VERSION, encode_batch, kept_name
from warren.journal.high_water_mark import LOG_ID_SIZE, HighWaterMark
from warren.journal.journal_dependencies import JournalDependencies
from warren.journal.log_reader import RecoveredLog
from warren.journal.metadata_log import LogRecord
from warren.journal.snapshot import JournalSnapshot, SnapshotOrigin, SnapshotPlace
from warren.limits import (
    JOURNAL_LOG_SIZE_MIN,
    JOURNAL_MARK_SYNC_MS,
    JOURNAL_PREALLOCATION_SIZE,
    JOURNAL_RETRY_MS,
)
from warren.metadata.machine import Metadata
from warren.store.disk import CreateFile, Disk, DiskStep, RenameFile, SyncDirectory, SyncFile, WriteFile

# Called when a job has ended, with the error of the disk if it has failed.
Ended = Callable[[OSError | None], None]


class LogReach(Struct, frozen=True):
    """How far the log reaches behind a write."""

    # The index of its last entry.
    index: int
    # No queue that survives a restart has a higher number.
    number: int


class JournalFile:
    """The file that continues what was found."""

    __slots__ = (
        "_dependencies", "_disk", "_end", "_generation", "_is_marked", "_log_id", "_mark", "_old_version",
        "_retry_at", "_seed", "_snapshot_size", "_synced_at", "_zeroed_to", "failure", "synced_index",
    )  # fmt: skip

    def __init__(self, disk: Disk, dependencies: JournalDependencies, found: RecoveredLog) -> None:
        """The file that is on `disk`, which nothing is appended to before it is replaced."""
        known = found.mark.found
        self._disk = disk
        self._dependencies = dependencies
        # The version of a file of an older format, of which a copy is kept when it is replaced; 0 if there is
        # none.
        self._old_version = found.version if found.is_there and found.version < VERSION else 0
        # The end of the log, the place up to which the file has zeros, and the size of its snapshot.
        self._end = 0
        self._zeroed_to = 0
        self._snapshot_size = 0
        self._seed = 0
        # The id of the log, the last generation of its file, and the file with its high-water mark.
        self._log_id = found.log_id or (known.log_id if known else dependencies.random_bytes(LOG_ID_SIZE))
        self._generation = max(found.generation, known.generation if known else 0)
        self._mark = found.mark
        # True if the mark covers the whole log; and the time of its last sync (ms).
        self._is_marked = True
        self._synced_at = 0
        # The index of the last entry that is synced.
        self.synced_index = found.index
        # The last error, until a new file is written.
        self.failure: OSError | None = None
        self._retry_at = 0

    @property
    def is_retry_due(self) -> bool:
        """True if a failed write may be tried again."""
        # A clock that was set back delays nothing.
        return not 0 < self._retry_at - self._dependencies.now() <= JOURNAL_RETRY_MS

    @property
    def is_too_long(self) -> bool:
        """True if the log behind the snapshot is so long that a new file is shorter."""
        return self._end - self._snapshot_size > max(JOURNAL_LOG_SIZE_MIN, self._snapshot_size)

    @property
    def is_mark_due(self) -> bool:
        """True if the mark is to be synced by itself."""
        return self._mark.is_dirty and self._is_mark_old

    @property
    def is_marked(self) -> bool:
        """True if the mark covers the whole log, synced or not."""
        return self._is_marked

    # What it is told to do.

    def append(
        self, records: Sequence[LogRecord], reach: LogReach, then: Ended, *, is_last: bool = False
    ) -> None:
        """Write and sync `records`, behind which the log reaches to `reach`; with `is_last` the mark too."""
        steps, is_mark_synced = self._batch(records, reach, is_last=is_last)

        def written(error: OSError | None) -> None:
            if error is None:
                self.synced_index = reach.index
            self._appended(error, then, is_mark_synced=is_mark_synced)

        self._disk.submit(steps, written)

    def append_now(self, records: Sequence[LogRecord], reach: LogReach) -> None:
        """Write and sync `records` synchronously. OSError from the disk; `fail` must be told."""
        steps, is_mark_synced = self._batch(records, reach, is_last=False)
        self._disk.perform(steps)
        self.synced_index = reach.index
        if is_mark_synced:
            self._mark.synced()

    def sync_mark(self, then: Ended) -> None:
        """Sync the mark."""
        self._disk.submit(self._mark_sync(), lambda error: self._appended(error, then, is_mark_synced=True))

    def snapshot(
        self, metadata: Metadata, place: SnapshotPlace, tail: Sequence[LogRecord] = ()
    ) -> JournalSnapshot:
        """The content of the next file: all of `metadata`, which are at `place` in the log, and a `tail`."""
        self._generation += 1
        dependencies = self._dependencies
        origin = SnapshotOrigin(self._log_id, self._generation, dependencies.random_bytes(SALT_SIZE))
        return JournalSnapshot(metadata, place, origin, cipher=dependencies.cipher, tail=tail)

    def replace(self, snapshot: JournalSnapshot, then: Ended) -> None:
        """Write `snapshot` into a new file, which replaces this one."""
        self._disk.submit(self._replacement(snapshot), lambda error: self._replaced(snapshot, error, then))

    def replace_now(self, snapshot: JournalSnapshot) -> None:
        """Write `snapshot` into a new file synchronously. OSError from the disk; `fail` must be told."""
        self._disk.perform(self._replacement(snapshot))
        self._switch_to(snapshot)

    def fail(self, error: OSError) -> None:
        """Note a failed write: nothing is written until a new file holds the whole state."""
        if self.failure is None:
            self._dependencies.report(error)
        self.failure = error
        self._retry_at = self._dependencies.now() + JOURNAL_RETRY_MS

    # Jobs.

    @property
    def _is_mark_old(self) -> bool:
        """True if the mark is to be synced: not with each batch, which would then wait for two syncs."""
        return self._dependencies.now() - self._synced_at >= JOURNAL_MARK_SYNC_MS

    def _batch(
        self, records: Sequence[LogRecord], reach: LogReach, *, is_last: bool
    ) -> tuple[list[DiskStep], bool]:
        """The steps that append `records`; and whether the mark is synced with them."""
        chunks = encode_batch(records, self._seed)
        self._is_marked = not records
        start = self._end
        self._end += sum(map(len, chunks))
        if self._end > self._zeroed_to:
            chunks.append(bytes(JOURNAL_PREALLOCATION_SIZE))
            self._zeroed_to = self._end + JOURNAL_PREALLOCATION_SIZE
        mark = HighWaterMark(
            log_id=self._log_id, generation=self._generation, end=self._end, index=reach.index,
            number=reach.number,
        )  # fmt: skip
        steps: list[DiskStep] = [
            WriteFile(NAME, start, chunks),
            SyncFile(NAME),
            self._mark.write(lambda: mark),
        ]
        is_mark_synced = is_last or self._is_mark_old
        return (steps + self._mark_sync() if is_mark_synced else steps), is_mark_synced

    def _mark_sync(self) -> list[DiskStep]:
        self._synced_at = self._dependencies.now()
        return [self._mark.sync()]

    def _appended(self, error: OSError | None, then: Ended, *, is_mark_synced: bool) -> None:
        if error is not None:
            self.fail(error)
        elif is_mark_synced:
            self._mark.synced()
        then(error)

    def _replaced(self, snapshot: JournalSnapshot, error: OSError | None, then: Ended) -> None:
        if error is None:
            self._switch_to(snapshot)
        else:
            self.fail(error)
        then(error)

    def _replacement(self, snapshot: JournalSnapshot) -> list[DiskStep]:
        """The steps that replace the log by `snapshot`; after a power cut one or the other is there."""
        new = UNFINISHED_NAME
        return [
            *self._copy_of_old_format(),
            *self._mark.begin(self._log_id),
            CreateFile(new, 0),
            WriteFile(new, 0, snapshot),
            SyncFile(new),
            RenameFile(new, NAME),
            SyncDirectory(),
            # The size of the snapshot is known only after it was written.
            self._mark.write(snapshot.mark),
            self._mark.sync(),
        ]

    def _copy_of_old_format(self) -> list[DiskStep]:
        """The steps that copy a file of an older format, before it is replaced for the first time."""
        if not self._old_version:
            return []
        new = UNFINISHED_NAME
        return [
            CreateFile(new, 0),
            WriteFile(new, 0, [self._disk.read(NAME, 0, self._disk.names()[NAME])]),
            SyncFile(new),
            RenameFile(new, kept_name(self._old_version)),
            SyncDirectory(),
        ]

    def _switch_to(self, snapshot: JournalSnapshot) -> None:
        """Continue the log behind `snapshot`."""
        self._old_version = 0
        self._mark.synced()
        self._synced_at = self._dependencies.now()
        self._seed = snapshot.seed
        self.synced_index = snapshot.mark().index
        self._is_marked = True
        self._end = self._zeroed_to = self._snapshot_size = snapshot.size
        if self.failure is not None:
            self.failure = None
            self._dependencies.report(None)
