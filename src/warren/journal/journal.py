"""The log of metadata commands: a command is written and synced, then applied, then answered.

    propose ─▶ next ─ job ─▶ in flight ─ synced ─▶ applied in order ─▶ answered
       └─ depends on one of these: held, until that is answered

After each sync the end of the log is written to the high-water mark, without a sync of its own. One job is in
progress at a time; commands that arrive meanwhile share the next job and its sync. A command without durable
effects is applied at once, unless its outcome and that of a waiting command depend on each other.

Invariants: the log contains the exact outcome of all durable changes, since a command is written only when
nothing it depends on is in flight. Nothing is applied that a crash could undo. After a failed write or sync
the content of the file is unknown, so it is never written to again: a new file is written with the whole
state.
"""

import errno
from collections import deque
from collections.abc import Callable, Generator
from typing import Protocol

from msgspec import Struct

from warren.errors import AmqpError, InternalError, ResourceError
from warren.journal.codec import encode_entry
from warren.journal.durability import PendingReadWriteSets, ReadWriteSet, durable_commands, read_write_set
from warren.journal.file_format import NAME, SALT_SIZE, UNFINISHED_NAME, encode_batch
from warren.journal.high_water_mark import LOG_ID_SIZE, HighWaterMark, HighWaterMarkFile
from warren.journal.parameter_cipher import Cipher
from warren.journal.recovery import RecoveredLog
from warren.journal.snapshot import JournalSnapshot
from warren.limits import (
    JOURNAL_LOG_SIZE_MIN,
    JOURNAL_MARK_SYNC_MS,
    JOURNAL_PREALLOCATION_SIZE,
    JOURNAL_RETRY_MS,
)
from warren.metadata.commands import INTERNAL_USER, CommandContext, MetadataCommand, Reply
from warren.metadata.incarnation import FIRST_INCARNATION, Incarnation
from warren.metadata.machine import Metadata
from warren.store.disk import CreateFile, Disk, DiskStep, RenameFile, SyncDirectory, SyncFile, WriteFile

# The errors of a full file system, which may have room again later.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class ReplyFuture(Protocol):
    """A future of the event loop above."""

    def set_result(self, result: None, /) -> None:
        """Complete the future."""

    def done(self) -> bool:
        """True if the future was completed or cancelled."""

    def __await__(self) -> Generator[object, None, None]:
        """Wait for the result."""


class JournalDependencies(Struct, frozen=True, kw_only=True):
    """What a journal needs from above the waterline."""

    now: Callable[[], int]
    random_bytes: Callable[[int], bytes]
    make_future: Callable[[], ReplyFuture]
    # Called with each first error, and with None when writing works again.
    report: Callable[[OSError | None], None]
    # Encrypts secrets in the file; None leaves them as they are.
    cipher: Cipher | None = None
    # The run of the node that proposes the commands.
    incarnation: Incarnation = FIRST_INCARNATION


class Journal:
    """The log of the metadata on one disk."""

    __slots__ = (
        "_dependencies", "_disk", "_end", "_failure", "_generation", "_held", "_in_flight", "_index",
        "_is_busy", "_is_mark_syncing", "_is_marked", "_log_id", "_mark", "_metadata", "_next", "_on_closed",
        "_pending_sets", "_retry_at", "_seed", "_snapshot_size", "_synced_at", "_zeroed_to",
    )  # fmt: skip

    def __init__(
        self,
        metadata: Metadata,
        disk: Disk,
        dependencies: JournalDependencies,
        found: RecoveredLog | None = None,
    ) -> None:
        """A journal for the changes of `metadata` after `begin`, continuing the log that was `found`."""
        found = found or RecoveredLog(mark=HighWaterMarkFile(None))
        known = found.mark.found
        self._metadata = metadata
        self._disk = disk
        self._dependencies = dependencies
        # The last index that was assigned.
        self._index = 0
        # The end of the log, the place up to which the file has zeros, and the size of its snapshot.
        self._end = 0
        self._zeroed_to = 0
        self._snapshot_size = 0
        self._seed = 0
        # The id of the log, the last generation of its file, and the file with its high-water mark.
        self._log_id = found.log_id or (known.log_id if known else dependencies.random_bytes(LOG_ID_SIZE))
        self._generation = max(found.generation, known.generation if known else 0)
        self._mark = found.mark
        # The time of the last sync of the mark (ms).
        self._synced_at = 0
        self._is_mark_syncing = False
        self._is_busy = False
        # True if the mark covers the whole log.
        self._is_marked = True
        self._failure: OSError | None = None
        self._retry_at = 0
        self._in_flight: list[_Proposal] = []
        self._next: list[_Proposal] = []
        self._held: deque[_Proposal] = deque()
        # The names read and written by the commands in `_in_flight` and `_next`.
        self._pending_sets = PendingReadWriteSets()
        self._on_closed: Callable[[], None] | None = None

    def begin(self) -> None:
        """Write a snapshot of all metadata, synchronously.

        A failure is reported, and the next proposal tries again.
        """
        snapshot = self._take_snapshot()
        try:
            self._disk.perform(self._rewrite(snapshot))
        except OSError as error:
            self._fail(error)
        else:
            self._switch_to(snapshot)

    async def propose(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        """Write `command` if any of its effects is durable, then apply it.

        AmqpError if it cannot be written.
        """
        metadata = self._metadata
        if not (self._is_busy or self._held or durable_commands(metadata, command)):
            return self._applied(command, metadata.index, user)
        proposal = _Proposal(command, user)
        if self._held or not self._admit(proposal):
            self._held.append(proposal)
        self._start_next_job()
        if proposal.result is None:
            proposal.future = self._dependencies.make_future()
            await proposal.future
        assert proposal.result is not None
        if isinstance(proposal.result, Reply):
            return proposal.result
        raise proposal.result

    def close(self, on_closed: Callable[[], None]) -> None:
        """Call `on_closed` when nothing waits for the disk any more."""
        self._on_closed = on_closed
        self._start_next_job()

    def maintain(self) -> None:
        """Sync the high-water mark if no other job does; called every second."""
        self._start_next_job()

    def _admit(self, proposal: "_Proposal") -> bool:
        """Start a command; False if it depends on one that waits."""
        is_alone = not (self._in_flight or self._next)
        command = proposal.command
        if not is_alone and self._pending_sets.conflicts_with(read_write_set(self._metadata, command)):
            return False
        made = durable_commands(self._metadata, command)
        if not made:
            proposal.end(self._applied(command, self._metadata.index, proposal.user))
        elif self._failure is not None and self._dependencies.now() < self._retry_at:
            proposal.end(_refusal(self._failure))
        else:
            self._index = max(self._index, self._metadata.index)
            proposal.index = self._index + 1
            proposal.entry = encode_entry(proposal.index, made, self._dependencies.cipher)
            proposal.read_write_set = read_write_set(self._metadata, command)
            self._index += 1
            self._pending_sets.add(proposal.read_write_set)
            self._next.append(proposal)
        return True

    def _start_next_job(self) -> None:
        """Start the next job, if there is work and no job in progress."""
        if self._is_busy:
            return
        if self._next and (self._failure is not None or self._is_too_long()):
            self._is_busy = True
            snapshot = self._take_snapshot()
            self._disk.submit(self._rewrite(snapshot), lambda error: self._rewritten(snapshot, error))
        elif self._next:
            self._is_busy = True
            self._in_flight, self._next = self._next, []
            self._disk.submit(self._batch(), self._written)
        elif not self._is_marked and self._on_closed is not None and self._failure is None:
            self._is_busy = True
            self._disk.submit(self._batch(), self._written)
        elif self._mark.is_dirty and self._is_mark_due() and self._failure is None:
            self._is_busy = True
            self._disk.submit(self._sync_mark(), self._written)
        elif self._on_closed is not None:
            on_closed, self._on_closed = self._on_closed, None
            on_closed()

    def _is_too_long(self) -> bool:
        return self._end - self._snapshot_size > max(JOURNAL_LOG_SIZE_MIN, self._snapshot_size)

    def _batch(self) -> list[DiskStep]:
        chunks = encode_batch([proposal.entry for proposal in self._in_flight], self._seed)
        self._is_marked = not self._in_flight
        start = self._end
        self._end += sum(map(len, chunks))
        if self._end > self._zeroed_to:
            chunks.append(bytes(JOURNAL_PREALLOCATION_SIZE))
            self._zeroed_to = self._end + JOURNAL_PREALLOCATION_SIZE
        index = self._in_flight[-1].index if self._in_flight else self._index
        mark = HighWaterMark(log_id=self._log_id, generation=self._generation, end=self._end, index=index)
        steps: list[DiskStep] = [
            WriteFile(NAME, start, chunks),
            SyncFile(NAME),
            self._mark.write(lambda: mark),
        ]
        return steps + self._sync_mark() if self._is_mark_due() else steps

    def _is_mark_due(self) -> bool:
        """True if the mark is to be synced: not with each batch, which would then wait for two syncs."""
        return (
            self._on_closed is not None or self._dependencies.now() - self._synced_at >= JOURNAL_MARK_SYNC_MS
        )

    def _sync_mark(self) -> list[DiskStep]:
        self._synced_at = self._dependencies.now()
        self._is_mark_syncing = True
        return [self._mark.sync()]

    def _take_snapshot(self) -> JournalSnapshot:
        self._index = max(self._index, self._metadata.index)
        self._generation += 1
        salt = self._dependencies.random_bytes(SALT_SIZE)
        return JournalSnapshot(
            self._metadata,
            self._index,
            salt,
            log_id=self._log_id,
            generation=self._generation,
            cipher=self._dependencies.cipher,
        )

    def _rewrite(self, snapshot: JournalSnapshot) -> list[DiskStep]:
        """The steps that replace the log by `snapshot`; after a power cut one or the other is there."""
        new = UNFINISHED_NAME
        return [
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

    def _switch_to(self, snapshot: JournalSnapshot) -> None:
        """Continue the log behind `snapshot`."""
        self._mark.synced()
        self._synced_at = self._dependencies.now()
        self._seed = snapshot.seed
        self._is_marked = True
        self._end = self._zeroed_to = self._snapshot_size = snapshot.size
        if self._failure is not None:
            self._failure = None
            self._dependencies.report(None)

    def _rewritten(self, snapshot: JournalSnapshot, error: OSError | None) -> None:
        self._is_busy = False
        if error is None:
            self._switch_to(snapshot)
        else:
            self._fail(error)
        self._settle()

    def _written(self, error: OSError | None) -> None:
        self._is_busy = False
        if error is not None:
            self._fail(error)
        elif self._is_mark_syncing:
            self._mark.synced()
        self._is_mark_syncing = False
        in_flight, self._in_flight = self._in_flight, []
        results = [self._tried(proposal) for proposal in in_flight]
        self._settle()
        for proposal, result in zip(in_flight, results, strict=True):
            proposal.end(result)

    def _settle(self) -> None:
        """Start the commands that waited for the job that has ended."""
        self._pending_sets = PendingReadWriteSets()
        for proposal in self._next:
            self._pending_sets.add(proposal.read_write_set)
        while self._held:
            try:
                if not self._admit(self._held[0]):
                    break
            except Exception as error:
                # The error belongs to this proposal; the others must not wait for ever because of it.
                self._held[0].end(error)
            self._held.popleft()
        self._start_next_job()

    def _fail(self, error: OSError) -> None:
        """Refuse all commands that wait for the disk.

        Nothing is written until a new file holds the whole state.
        """
        if self._failure is None:
            self._dependencies.report(error)
        self._failure = error
        self._retry_at = self._dependencies.now() + JOURNAL_RETRY_MS
        refused = self._in_flight + self._next
        self._in_flight = []
        self._next = []
        for proposal in refused:
            proposal.end(_refusal(error))

    def _tried(self, proposal: "_Proposal") -> "Reply | Exception":
        try:
            return self._applied(proposal.command, proposal.index, proposal.user)
        except Exception as error:
            # The error belongs to this proposal; the others must not wait for ever because of it.
            return error

    def _applied(self, command: MetadataCommand, index: int, user: str) -> Reply:
        return self._metadata.apply(
            command,
            CommandContext(
                index=index,
                now=self._dependencies.now(),
                user=user,
                incarnation=self._dependencies.incarnation,
            ),
        )


class _Proposal:
    """A command, and the future of its caller."""

    __slots__ = ("command", "entry", "future", "index", "read_write_set", "result", "user")

    def __init__(self, command: MetadataCommand, user: str) -> None:
        self.command = command
        self.user = user
        self.index = 0
        self.entry = b""
        self.read_write_set = _NO_READ_WRITE_SET
        self.future: ReplyFuture | None = None
        self.result: Reply | Exception | None = None

    def end(self, result: Reply | Exception) -> None:
        """Set the result and complete the future."""
        self.result = result
        if self.future is not None and not self.future.done():
            self.future.set_result(None)


_NO_READ_WRITE_SET = ReadWriteSet((), ())


def _refusal(error: OSError) -> AmqpError:
    text = f"cannot write the metadata: {error.strerror or error}"
    return ResourceError(text) if error.errno in _NO_SPACE else InternalError(text)
