"""The log of metadata commands: a command is written and synced, then applied, then answered.

    propose ─▶ next ─ job ─▶ in flight ─ synced ─▶ committed ─▶ applied ─▶ answered
       └─ changes nothing that survives a restart, and nothing waits: applied ─▶ answered;
                                                        its record ─▶ in front of the next job

What is committed is decided by the metadata group (`metadata_group`), of which this node is a replica. The
journal writes what its replica hands over, and is the machine that applies what is committed.

Commands are applied in the order of the log, which is the order in which they were proposed. One job is in
progress at a time; commands that arrive meanwhile share the next job and its sync. After each sync the end of
the log is written to the high-water mark, without a sync of its own.

Each entry has what the proposer stamped, the node, its incarnation, a serial number, the user and the time,
which never goes back, so that a replay does exactly what was done. A command passes `Metadata.accepted`
before it is written: neither a refused command nor the rules by which it was refused are in the log.

Invariants: nothing that survives a restart is applied before it is synced, with everything in front of it in
the log, and the vote for the term in which that was proposed. After a failed write or sync the content of the
file is unknown, so it is never written to again: a new file is written with the whole state. Until then
commands that were refused are in doubt, since a crash may apply them: nothing is answered that they could
make untrue.
"""

import errno
from collections import deque
from collections.abc import Callable, Generator
from typing import Protocol

from msgspec import Struct

from warren.errors import AmqpError, InternalError, ResourceError
from warren.journal.codec import LogPosition, VoteState, encode_entry
from warren.journal.file_format import (
    NAME,
    SALT_SIZE,
    UNFINISHED_NAME,
    VERSION,
    encode_batch,
    kept_name,
)
from warren.journal.high_water_mark import LOG_ID_SIZE, HighWaterMark, HighWaterMarkFile
from warren.journal.log_reader import RecoveredLog
from warren.journal.metadata_group import MetadataGroup
from warren.journal.metadata_log import LoggedProposal, MetadataLog
from warren.journal.parameter_cipher import Cipher
from warren.journal.snapshot import JournalSnapshot, SnapshotPlace
from warren.journal.unsynced_end import sync_again
from warren.journal.volatility import is_certain, is_volatile
from warren.limits import (
    JOURNAL_LOG_SIZE_MIN,
    JOURNAL_MARK_SYNC_MS,
    JOURNAL_PREALLOCATION_SIZE,
    JOURNAL_RETRY_MS,
)
from warren.limits_metadata import JOURNAL_BATCH_MAX, JOURNAL_UNWRITTEN_SIZE_MAX
from warren.metadata.commands import INTERNAL_USER, CommandContext, MetadataCommand, Reply, SetParameter
from warren.metadata.incarnation import FIRST_INCARNATION, Incarnation
from warren.metadata.machine import Metadata
from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_messages import Entry, EntryId
from warren.store.disk import CreateFile, Disk, DiskStep, RenameFile, SyncDirectory, SyncFile, WriteFile

# The errors of a full file system, which may have room again later.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
# The term of what was there before the first election.
_FIRST_TERM = 1
# Bytes of a random number of ticks.
_CHANCE_SIZE = 4


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
        "_batch_ticket", "_dependencies", "_disk", "_end", "_failure", "_found", "_generation", "_group",
        "_in_flight", "_is_busy", "_is_mark_syncing", "_is_marked", "_log", "_log_id", "_mark", "_metadata",
        "_next", "_now", "_old_version", "_on_closed", "_resolving", "_results", "_retry_at", "_seed",
        "_serial", "_snapshot_size", "_synced_at", "_zeroed_to",
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
        # The log that was found, behind which the group begins; the group, its log, and what `written` of the
        # group is told when the batch in progress is synced.
        self._found = found
        self._log, self._group = self._begun()
        self._batch_ticket = 0
        # The last time, and the number of the last proposal.
        self._now = found.now
        self._serial = 0
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
        # The time of the last sync of the mark (ms).
        self._synced_at = 0
        self._is_mark_syncing = False
        self._is_busy = False
        # True if the mark covers the whole log.
        self._is_marked = True
        self._failure: OSError | None = None
        self._retry_at = 0
        # The proposals in the log that are not answered, by their indexes, and what became of them.
        self._in_flight: dict[int, _Proposal] = {}
        self._results: list[tuple[_Proposal, Reply | Exception]] = []
        self._next: deque[_Proposal] = deque()
        # Those that wait until nothing is in doubt, or until the attempt has failed.
        self._resolving: list[ReplyFuture] = []
        self._on_closed: Callable[[], None] | None = None

    def begin(self) -> None:
        """Write a snapshot of all metadata and the vote for a new term, synchronously, and lead that term.

        A failure is reported, and the next proposal tries again; until then the log that was read is synced.
        OSError if neither can be done: a message would be confirmed whose queue a power cut undoes.
        """
        # Until now, the metadata can be changed beside the journal.
        self._log, self._group = self._begun()
        snapshot = self._take_snapshot()
        try:
            self._disk.perform(self._rewrite(snapshot))
            self._switch_to(snapshot)
            if self._log.has_unapplied:
                # Another member may have the log: the empty entry of the term waits for its sync as well.
                self._disk.perform(self._batch())
                self._end_batch()
        except OSError as error:
            if not sync_again(self._disk, self._metadata, self._dependencies.cipher):
                raise
            self._fail(error)

    async def propose(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        """Write `command`, then apply it. AmqpError if it cannot be written."""
        serial = self._serial = self._serial + 1
        if not (self._next or self._in_flight):
            reply = self._reply_at_once(command, user, serial)
            if reply is not None:
                if self._failure is not None or self._log.records_size >= JOURNAL_UNWRITTEN_SIZE_MAX:
                    self._start_next_job()
                return reply
        proposal = _Proposal(command, user, serial)
        self._next.append(proposal)
        self._start_next_job()
        if proposal.result is None:
            proposal.future = self._dependencies.make_future()
            await proposal.future
        assert proposal.result is not None
        if isinstance(proposal.result, Reply):
            return proposal.result
        raise proposal.result

    @property
    def is_in_doubt(self) -> bool:
        """True from a failed write until the state is written anew: a crash may apply refused commands."""
        return self._failure is not None

    async def resolve(self) -> None:
        """Wait until nothing is in doubt. AmqpError if it cannot be written."""
        while self._failure is not None:
            if not self._is_busy and not self._is_retry_due():
                raise _refusal(self._failure)
            future = self._dependencies.make_future()
            self._resolving.append(future)
            self._start_next_job()
            await future

    def close(self, on_closed: Callable[[], None]) -> None:
        """Call `on_closed` when nothing waits for the disk any more."""
        self._on_closed = on_closed
        self._start_next_job()

    def maintain(self) -> None:
        """Write anew after a failure, or sync the mark if no other job does; called every second."""
        self._start_next_job()

    def _proceed(self) -> None:
        """Apply what need not wait for the disk, and start the next job."""
        while self._next and not self._in_flight:
            proposal = self._next[0]
            result: Reply | Exception | None
            try:
                result = self._reply_at_once(proposal.command, proposal.user, proposal.serial)
            except Exception as error:
                # The error belongs to this proposal; the others must not wait for ever because of it.
                result = error
            if result is None:
                break
            self._next.popleft()
            proposal.end(result)
        self._start_next_job()

    def _reply_at_once(self, command: MetadataCommand, user: str, serial: int) -> Reply | None:
        """Apply a command before which nothing waits; None if it has to wait for the disk."""
        metadata, failure = self._metadata, self._failure
        accepted = metadata.accepted(command)
        if isinstance(accepted, Reply):
            return accepted
        is_at_once = is_volatile(metadata, accepted)
        if is_at_once and (failure is None or is_certain(metadata, accepted)):
            context, record = self._logged(accepted, user, serial)
            # After a failure the next write is a snapshot, unless that is being written already.
            is_written = failure is None or self._is_busy
            if self._group.append_alone(record, is_written=is_written):
                self._now = context.now
                return metadata.apply(accepted, context)
        if failure is not None and not self._is_retry_due():
            raise _refusal(failure)
        return None

    def _take_next(self) -> None:
        """Propose as many commands to the group as one batch may have."""
        in_flight = self._in_flight
        while self._next and len(in_flight) < JOURNAL_BATCH_MAX:
            proposal = self._next[0]
            # Its stored value can have passwords that it refers to, of a command in this batch.
            if in_flight and isinstance(proposal.command, SetParameter):
                break
            try:
                command = self._metadata.accepted(proposal.command)
                if isinstance(command, Reply):
                    if in_flight:
                        # A command in this batch may make room for it.
                        break
                    self._next.popleft().end(command)
                    continue
                context, record = self._logged(command, proposal.user, proposal.serial)
            except Exception as error:
                # The error belongs to this proposal; the others must not wait for ever because of it.
                self._next.popleft().end(error)
                continue
            if not self._group.propose(LoggedProposal(command, context, record)):
                # Too much is uncommitted, so there is a batch before it.
                break
            self._now = context.now
            in_flight[context.index] = self._next.popleft()

    def _logged(self, command: MetadataCommand, user: str, serial: int) -> tuple[CommandContext, bytes]:
        """The context of the accepted `command` at its next place in the log, and its record."""
        dependencies, metadata = self._dependencies, self._metadata
        context = CommandContext(
            index=self._group.next_index, now=max(self._now, dependencies.now()), user=user,
            incarnation=dependencies.incarnation, serial=serial, is_accepted=True,
        )  # fmt: skip
        position = LogPosition(self._log.hard.term, metadata.index, metadata.next_number)
        return context, encode_entry(command, context, position, dependencies.cipher)

    def _stamp(self, index: int) -> tuple[CommandContext, int]:
        """The context of an entry of the group itself, and the next number of a queue."""
        now = self._now = max(self._now, self._dependencies.now())
        incarnation = self._dependencies.incarnation
        return CommandContext(index=index, now=now, incarnation=incarnation), self._metadata.next_number

    def _apply(self, entry: Entry) -> None:
        """Apply an entry that is committed; `_results` has what became of a proposal."""
        logged = entry.payload
        if not isinstance(logged, LoggedProposal):
            self._metadata.index = entry.index
            return
        result: Reply | Exception
        try:
            result = self._metadata.apply(logged.command, logged.context)
        except Exception as error:
            # The error belongs to this proposal; the others must not wait for ever because of it.
            result = error
        self._results.append((self._in_flight[entry.index], result))

    def _start_next_job(self) -> None:
        """Start the next job, if there is work and no job in progress."""
        if self._is_busy:
            return
        is_ending = self._on_closed is not None and not self._is_marked and self._failure is None
        log = self._log
        has_work = bool(self._next) or log.records_size >= JOURNAL_UNWRITTEN_SIZE_MAX or log.has_unapplied
        is_retry = self._failure is not None and self._is_retry_due()
        if is_retry or (has_work and self._is_too_long()):
            self._is_busy = True
            snapshot = self._take_snapshot()
            self._disk.submit(self._rewrite(snapshot), lambda error: self._rewritten(snapshot, error))
        elif has_work or is_ending:
            self._is_busy = True
            self._disk.submit(self._batch(), self._written)
        elif self._mark.is_dirty and self._is_mark_due() and self._failure is None:
            self._is_busy = True
            self._disk.submit(self._sync_mark(), self._written)
        elif self._on_closed is not None:
            on_closed, self._on_closed = self._on_closed, None
            on_closed()

    def _is_retry_due(self) -> bool:
        # A clock that was set back delays nothing.
        return not 0 < self._retry_at - self._dependencies.now() <= JOURNAL_RETRY_MS

    def _is_too_long(self) -> bool:
        return self._end - self._snapshot_size > max(JOURNAL_LOG_SIZE_MIN, self._snapshot_size)

    def _batch(self) -> list[DiskStep]:
        self._take_next()
        self._batch_ticket = self._group.hand_over()
        records = self._log.take_records()
        chunks = encode_batch(records, self._seed)
        self._is_marked = not records
        start = self._end
        self._end += sum(map(len, chunks))
        if self._end > self._zeroed_to:
            chunks.append(bytes(JOURNAL_PREALLOCATION_SIZE))
            self._zeroed_to = self._end + JOURNAL_PREALLOCATION_SIZE
        mark = HighWaterMark(
            log_id=self._log_id,
            generation=self._generation,
            end=self._end,
            index=self._log.last_index(),
            # As if each command declared a queue: what they do is known when they are applied.
            number=self._metadata.next_number - 1 + len(self._in_flight),
        )
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
        assert not self._in_flight
        log = self._log
        assert not log.has_unapplied
        # It has everything that was handed over until now.
        self._batch_ticket = self._group.hand_over()
        log.take_records()
        self._generation += 1
        place = SnapshotPlace(
            index=log.base.index,
            term=log.base.term,
            now=self._now,
            hard=log.hard,
            configuration=log.configuration,
        )
        return JournalSnapshot(
            self._metadata,
            place,
            self._dependencies.random_bytes(SALT_SIZE),
            log_id=self._log_id,
            generation=self._generation,
            cipher=self._dependencies.cipher,
        )

    def _rewrite(self, snapshot: JournalSnapshot) -> list[DiskStep]:
        """The steps that replace the log by `snapshot`; after a power cut one or the other is there."""
        new = UNFINISHED_NAME
        return [
            *self._keep_old_format(),
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

    def _keep_old_format(self) -> list[DiskStep]:
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
        self._is_marked = True
        self._end = self._zeroed_to = self._snapshot_size = snapshot.size
        if self._failure is not None:
            self._failure = None
            self._dependencies.report(None)
        self._group.written(self._batch_ticket)

    def _rewritten(self, snapshot: JournalSnapshot, error: OSError | None) -> None:
        self._is_busy = False
        if error is None:
            self._switch_to(snapshot)
        else:
            self._fail(error)
        resolving, self._resolving = self._resolving, []
        for future in resolving:
            if not future.done():
                future.set_result(None)
        self._proceed()

    def _written(self, error: OSError | None) -> None:
        if error is not None:
            self._is_mark_syncing = self._is_busy = False
            self._fail(error)
        else:
            self._end_batch()
        self._proceed()

    def _end_batch(self) -> None:
        """Have everything applied that was written, and end its proposals."""
        if self._is_mark_syncing:
            self._mark.synced()
        self._is_mark_syncing = False
        self._group.written(self._batch_ticket)
        self._is_busy = False
        results, self._results = self._results, []
        self._in_flight = {}
        for proposal, result in results:
            proposal.end(result)

    def _fail(self, error: OSError) -> None:
        """Refuse all commands that wait for the disk.

        Nothing is written until a new file holds the whole state.
        """
        if self._failure is None:
            self._dependencies.report(error)
        self._failure = error
        self._retry_at = self._dependencies.now() + JOURNAL_RETRY_MS
        refused = [*self._in_flight.values(), *self._next]
        self._in_flight = {}
        self._next.clear()
        # The snapshot that is written next has what was applied.
        self._group.fail()
        self._log.take_records()
        for proposal in refused:
            proposal.end(_refusal(error))

    def _begun(self) -> tuple[MetadataLog, MetadataGroup]:
        """The log behind what was found and the metadata as they are, and a replica that continues it."""
        found, metadata, dependencies = self._found, self._metadata, self._dependencies
        node = dependencies.incarnation.node
        hard = VoteState(max(found.hard.term, found.term), found.hard.vote)
        # What was changed beside the log was changed in the last term of this node.
        term = found.term if metadata.index == found.index else 0
        if not term and metadata.index:
            term = max(hard.term, _FIRST_TERM)
        hard = VoteState(max(hard.term, term), hard.vote)
        configuration = found.configuration if found.configuration.voters else Configuration((node,))
        log = MetadataLog(EntryId(term, metadata.index), hard, configuration, self._stamp)

        def chance(count: int) -> int:
            return int.from_bytes(dependencies.random_bytes(_CHANCE_SIZE), "big") % count

        return log, MetadataGroup(node, log, self._apply, chance)


class _Proposal:
    """A command, and the future of its caller."""

    __slots__ = ("command", "future", "result", "serial", "user")

    def __init__(self, command: MetadataCommand, user: str, serial: int) -> None:
        self.command = command
        self.user = user
        self.serial = serial
        self.future: ReplyFuture | None = None
        self.result: Reply | Exception | None = None

    def end(self, result: Reply | Exception) -> None:
        """Set the result and complete the future."""
        self.result = result
        if self.future is not None and not self.future.done():
            self.future.set_result(None)


def _refusal(error: OSError) -> AmqpError:
    text = f"cannot write the metadata: {error.strerror or error}"
    return ResourceError(text) if error.errno in _NO_SPACE else InternalError(text)
