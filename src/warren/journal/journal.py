"""The log of metadata commands: a command is agreed on and synced, then applied, then answered.

    propose ─▶ next ─ job ─▶ written ─ synced ─▶ committed ─▶ applied ─▶ answered
       ├─ changes nothing that survives a restart, the node is alone, and nothing waits: applied ─▶ answered;
       │                                                its record ─▶ in front of the next job
       └─ another member leads: forwarded ─▶ next, there … ─▶ committed ─▶ applied here ─▶ answered

What is committed is decided by the metadata group (`metadata_group`), of which this node is a replica. The
journal writes what its replica hands over, and is the machine that applies what is committed.

Commands are applied in the order of the log. One job is in progress at a time; commands that arrive meanwhile
share the next job and its sync. A leader proposes a batch when all before it is applied, so that each command
is accepted or refused by the state that it finds, but for those in its batch.

Each entry has what the proposer stamped, the node, its incarnation, a serial number and the user, and the
time of the leader, which never goes back, so that a replay does exactly what was done. A command passes
`Metadata.accepted` before it is written: neither a refused command nor the rules by which it was refused are
in the log.

Invariants: nothing that survives a restart is applied before it is synced, with everything in front of it in
the log, and the vote for the term in which that was proposed. After a failed write or sync the content of the
file is unknown, so it is never written to again: a new file is written with the whole state. Until then, on a
node alone, commands that were refused are in doubt, since a crash may apply them: nothing is answered that
they could make untrue. With other members nothing is refused: they may have committed it.
"""

import errno
from collections import deque
from collections.abc import Callable

from warren.errors import AmqpError, InternalError, ResourceError
from warren.journal.barriers import Barriers, timed_out
from warren.journal.codec import LogPosition, VoteState, encode_entry
from warren.journal.file_format import SALT_SIZE
from warren.journal.high_water_mark import LOG_ID_SIZE, HighWaterMarkFile
from warren.journal.journal_dependencies import JournalDependencies, ReplyFuture
from warren.journal.journal_file import JournalFile, LogReach
from warren.journal.log_reader import RecoveredLog
from warren.journal.metadata_group import MetadataGroup
from warren.journal.metadata_log import LoggedProposal, LogStart, MetadataLog
from warren.journal.own_proposals import OwnProposal, OwnProposals
from warren.journal.proposal import Proposal
from warren.journal.received_metadata import ReceivedMetadata
from warren.journal.snapshot import JournalSnapshot, SnapshotOrigin, SnapshotPlace
from warren.journal.unsynced_end import sync_again
from warren.journal.volatility import is_certain, is_volatile
from warren.limits_metadata import (
    JOURNAL_BATCH_MAX,
    JOURNAL_UNWRITTEN_SIZE_MAX,
    METADATA_FORWARDED_MAX,
    METADATA_TIMEOUT_TICKS,
)
from warren.metadata.commands import (
    INTERNAL_USER,
    CommandContext,
    MetadataCommand,
    Outcome,
    Reply,
    SetParameter,
)
from warren.metadata.difference import replace
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.replication.raft.change import Configuration, ConfigurationChange
from warren.replication.raft.raft_messages import NOBODY, Entry, EntryId, RaftMessage, Snapshot
from warren.store.disk import Disk

# The errors of a full file system, which may have room again later.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
# The term of what was there before the first election.
_FIRST_TERM = 1
# Bytes of a random number of ticks.
_CHANCE_SIZE = 4
# Proposals of a leader to itself are not bounded: each is a client that waits.
_UNBOUNDED = 1 << 62


class Journal:
    """The log of the metadata on one disk."""

    __slots__ = (
        "_barriers", "_dependencies", "_disk", "_file", "_found", "_group", "_is_busy", "_is_reacting",
        "_leader", "_leaderless_ticks", "_log", "_metadata", "_next", "_now", "_on_closed", "_own",
        "_resolving", "_results",
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
        self._metadata = metadata
        self._disk = disk
        self._dependencies = dependencies
        # The log that was found, behind which the group begins; the group and its log.
        self._found = found
        self._file = JournalFile(disk, dependencies, found)
        self._now = found.now
        self._own = OwnProposals(dependencies.incarnation)
        self._log, self._group = self._begun()
        # The term and its leader, 0 if none is known, to which proposals were handed over.
        self._leader = self._group.leader
        self._is_busy = False
        # True while the group is told something, so that what follows is done at the end of that.
        self._is_reacting = False
        # The proposals that the next batches have, also those of other members, and what became of applied
        # ones of this node.
        self._next: deque[Proposal] = deque()
        self._results: list[tuple[OwnProposal, Reply | Exception]] = []
        self._barriers = Barriers(dependencies.make_future)
        # How long no leader has been known.
        self._leaderless_ticks = 0
        # Those that wait until nothing is in doubt, or until the attempt has failed.
        self._resolving: list[ReplyFuture] = []
        self._on_closed: Callable[[], None] | None = None

    def begin(self) -> None:
        """Write a snapshot of all metadata, synchronously, and lead the next term if there is no other voter.

        A failure is reported, and the next proposal tries again; until then the log that was read is synced.
        OSError if neither can be done: a message would be confirmed whose queue a power cut undoes.
        """
        # Until now, the metadata of a node alone can be changed beside the journal.
        self._log, self._group = self._begun()
        ticket, snapshot = self._take_snapshot()
        try:
            self._file.replace_now(snapshot)
            self._group.written(ticket)
            if self._log.decides_alone and self._log.unapplied_count:
                # Another member may have the log: the empty entry of the term waits for its sync as well.
                ticket = self._group.hand_over()
                self._file.append_now(self._log.take_records(), self._reach)
                self._group.written(ticket)
        except OSError as error:
            node = self._dependencies.incarnation.node
            if not sync_again(self._disk, self._metadata, self._dependencies.cipher, node=node):
                raise
            self._file.fail(error)
            self._fail(error)
        self._leader = self._group.leader

    async def propose(
        self, command: MetadataCommand, user: str = INTERNAL_USER, ticks_max: int = METADATA_TIMEOUT_TICKS
    ) -> Reply:
        """Have `command` agreed on and written, and apply it.

        AmqpError if it cannot be written, or if no majority of the members has agreed on it within
        `ticks_max` ticks: then it may be applied later.
        """
        proposal = self._own.number(command, user)
        if self._log.is_alone and not (self._next or self._log.unapplied_count):
            reply = self._reply_at_once(proposal)
            if reply is not None:
                if self._file.failure is not None or self._log.records_size >= JOURNAL_UNWRITTEN_SIZE_MAX:
                    self._start_next_job()
                return reply
        self._check_failure()
        own = self._own.add(proposal, ticks_max)
        self._hand_over()
        self._start_next_job()
        if own.result is None:
            own.future = self._dependencies.make_future()
            await own.future
        assert own.result is not None
        if isinstance(own.result, Reply):
            return own.result
        raise own.result

    @property
    def is_in_doubt(self) -> bool:
        """True from a failed write until the state is written anew: a crash may apply refused commands."""
        return self._file.failure is not None and self._log.decides_alone

    @property
    def synced_index(self) -> int:
        """The last change that is applied, committed and synced here: no start forgets it."""
        return min(self._file.synced_index, self._metadata.index)

    async def resolve(self) -> None:
        """Wait until nothing is in doubt. AmqpError if it cannot be written."""
        while self.is_in_doubt:
            if not self._is_busy:
                self._check_failure()
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

    # With other members.

    @property
    def group(self) -> MetadataGroup:
        """The replica of this node, for reading."""
        return self._group

    async def barrier(self, ticks_max: int = METADATA_TIMEOUT_TICKS) -> None:
        """Wait until all is applied here that was committed before this call.

        MetadataTimeout if no majority of the members answers within `ticks_max` ticks.
        """
        if not self._log.is_alone:
            await self._barriers.wait(self._group, self._react, ticks_max)

    async def is_outdated(self, index: int, ticks_max: int = METADATA_TIMEOUT_TICKS) -> bool:
        """Wait as for `barrier`; True if the metadata were not at `index`.

        MetadataTimeout also at once, if this node has known no leader for `ticks_max` ticks.
        """
        if self._leaderless_ticks >= ticks_max and self._group.leader[1] == NOBODY:
            raise timed_out()
        await self.barrier(ticks_max)
        return self._metadata.index != index

    def step(self, message: RaftMessage) -> None:
        """Take a message of the Raft core of another member."""
        self._group.step(message)
        self._react()

    def tick(self) -> None:
        """Note that METADATA_TICK_MS have passed; only needed while there are other members."""
        self._group.tick()
        for own in self._own.tick():
            own.end(timed_out(may_take_effect=own.was_handed_over))
        self._leaderless_ticks = 0 if self._group.leader[1] != NOBODY else self._leaderless_ticks + 1
        self._barriers.tick(self._group)
        self._react()

    def take_forwarded(self, proposal: Proposal) -> None:
        """Take a proposal of another member; one that does not lead drops it, since it is sent again."""
        if self._group.is_leader:
            self._next.append(proposal)
            self._start_next_job()

    def take_refusal(self, run: int, serial: int, reply: Reply) -> None:
        """Take the leader's refusal of a forwarded proposal of this or an earlier run, which is in no log."""
        own = self._own.settle(Incarnation(self._dependencies.incarnation.node, run), serial)
        if own is not None:
            own.end(reply)

    def forward_again(self, member: int) -> None:
        """Hand over again what was sent to `member`, since it may be lost."""
        if self._leader[1] == member:
            self._own.take_back()
            self._react()

    def process_ended(self, member: int) -> None:
        """Do not wait for a leader whose process has ended."""
        self._group.process_ended(member)
        self._react()

    def propose_change(self, change: ConfigurationChange) -> bool:
        """Propose a change of the members of the group; False if this node cannot now."""
        is_proposed = self._group.propose_change(change)
        self._react()
        return is_proposed

    def give_up_leadership(self) -> bool:
        """Have the best other voter lead; False if this node does not, or nobody else can."""
        is_waiting = self._group.give_up_leadership()
        self._react()
        return is_waiting

    def snapshot_sent(self, member: int, *, is_done: bool) -> None:
        """Note whether a member has got the snapshot that was sent to it."""
        self._group.snapshot_sent(member, is_done=is_done)
        self._react()

    # The machine of the group.

    def apply(self, entry: Entry) -> None:
        """Apply an entry that is committed; `_results` has what became of a proposal of this node."""
        logged = entry.payload
        if not isinstance(logged, LoggedProposal):
            self._metadata.index = entry.index
            return
        context = logged.context
        self._now = max(self._now, context.now)
        result: Reply | Exception
        try:
            result = self._metadata.apply(logged.command, context)
        except Exception as error:
            # The error belongs to this proposal; the others must not wait for ever because of it.
            result = error
        own = self._own.settle(context.incarnation, context.serial)
        if own is None:
            if isinstance(result, Exception):
                self._dependencies.report_error(result)
        elif isinstance(result, Reply) and result.outcome is Outcome.SKIPPED:
            # It was overtaken, so that it was never applied and never will be.
            self._own.add_again(own)
        else:
            self._results.append((own, result))

    def install(self, snapshot: Snapshot) -> None:
        """Replace the metadata by those of a snapshot, which is synced."""
        received = snapshot.payload
        assert isinstance(received, ReceivedMetadata)
        replace(self._metadata, received.metadata, snapshot.index)
        self._now = max(self._now, received.now)
        if self._log.received is snapshot:
            self._log.received = None
        applied = self._metadata.applied_proposals.last_serial(self._dependencies.incarnation)
        for own in self._own.take_up_to(applied):
            # Applied or skipped by others while this member was away.
            self._results.append(
                (own, InternalError("it is not known what became of a change of the metadata"))
            )

    # What follows from what the group was told.

    def _react(self) -> None:
        """Do what follows: send, write, answer, and hand over proposals if there is another leader."""
        if self._is_reacting:
            return
        self._is_reacting = True
        self._group.hand_over()
        self._is_reacting = False
        self._end_results()
        self._start_next_job()

    def _hand_over(self) -> None:
        """Hand proposals of this node to its log, or to the leader."""
        # A node alone leads, and knows when it begins another term.
        if not self._log.is_alone and self._leader != self._group.leader:
            self._leader = self._group.leader
            # Those of other members are sent again.
            self._next.clear()
            self._own.take_back()
        if self._group.is_leader:
            self._own.hand_over(self._next.append, _UNBOUNDED)
            return
        leader = self._leader[1]
        if leader != NOBODY:
            others = self._dependencies.others
            self._own.hand_over(lambda proposal: others.forward(leader, proposal), METADATA_FORWARDED_MAX)

    def _end_results(self) -> None:
        """Answer the proposals that were applied."""
        results, self._results = self._results, []
        for own, result in results:
            own.end(result)

    def _check_failure(self) -> None:
        """Raise if a proposal of the only voter cannot be written now."""
        failure = self._file.failure
        if failure is not None and self._log.decides_alone and not self._file.is_retry_due:
            raise _refusal(failure)

    # On a node alone, before the next job.

    def _proceed(self) -> None:
        """Apply what need not wait for the disk, and start the next job."""
        while self._next and self._log.is_alone and not self._log.unapplied_count:
            proposal = self._next[0]
            result: Reply | Exception | None
            try:
                result = self._reply_at_once(proposal)
            except Exception as error:
                # The error belongs to this proposal; the others must not wait for ever because of it.
                result = error
            if result is None:
                break
            self._next.popleft()
            self._settle(proposal, result)
        self._start_next_job()

    def _reply_at_once(self, proposal: Proposal) -> Reply | None:
        """Apply a command before which nothing waits; None if it has to wait for the disk."""
        metadata, failure = self._metadata, self._file.failure
        accepted = metadata.accepted(proposal.command)
        if isinstance(accepted, Reply):
            return accepted
        is_at_once = is_volatile(metadata, accepted)
        if is_at_once and (failure is None or is_certain(metadata, accepted)):
            context, record = self._logged(accepted, proposal)
            # After a failure the next write is a snapshot, unless that is being written already.
            is_written = failure is None or self._is_busy
            if self._group.append_alone(record, is_written=is_written):
                self._now = context.now
                return metadata.apply(accepted, context)
        self._check_failure()
        return None

    # Batches.

    def _take_next(self) -> None:
        """Propose as many commands to the group as one batch may have."""
        if self._log.unapplied_count or not self._group.is_leader:
            return
        count = 0
        while self._next and count < JOURNAL_BATCH_MAX:
            proposal = self._next[0]
            # Its stored value can have passwords that it refers to, of a command in this batch.
            if count and isinstance(proposal.command, SetParameter):
                break
            try:
                command = self._metadata.accepted(proposal.command)
                if isinstance(command, Reply):
                    if count:
                        # A command in this batch may make room for it.
                        break
                    self._settle(self._next.popleft(), command)
                    continue
                context, record = self._logged(command, proposal)
            except Exception as error:
                # The error belongs to this proposal; the others must not wait for ever because of it.
                self._settle(self._next.popleft(), error)
                continue
            if not self._group.propose(LoggedProposal(command, context, record)):
                # Too much is uncommitted, so there is a batch before it.
                break
            self._now = context.now
            self._next.popleft()
            count += 1
        self._group.hand_over()

    def _settle(self, proposal: Proposal, result: Reply | Exception) -> None:
        """Answer a proposal that is not put into the log, or that was applied at once."""
        own = self._own.settle(proposal.incarnation, proposal.serial)
        if own is not None:
            own.end(result)
        elif proposal.incarnation != self._dependencies.incarnation:
            reply = result if isinstance(result, Reply) else Reply(Outcome.REFUSED, str(result))
            self._dependencies.others.refuse(proposal, reply)

    def _logged(self, command: MetadataCommand, proposal: Proposal) -> tuple[CommandContext, bytes]:
        """The context of the accepted `command` at its next place in the log, and its record."""
        dependencies, metadata = self._dependencies, self._metadata
        context = CommandContext(
            index=self._group.next_index, now=max(self._now, dependencies.now()), user=proposal.user,
            incarnation=proposal.incarnation, serial=proposal.serial, is_accepted=True,
        )  # fmt: skip
        position = LogPosition(self._log.hard.term, metadata.index, metadata.next_number)
        return context, encode_entry(command, context, position, dependencies.cipher)

    def _stamp(self, index: int, commit: int) -> tuple[CommandContext, int]:
        """The context of an entry of the group itself, and the next number of a queue if that is known."""
        now = self._now = max(self._now, self._dependencies.now())
        context = CommandContext(index=index, now=now, incarnation=self._dependencies.incarnation)
        return context, self._metadata.next_number if commit == self._metadata.index else 0

    # Jobs.

    def _start_next_job(self) -> None:
        """Start the next job, if there is work and no job in progress."""
        if self._is_busy or self._is_reacting:
            return
        self._hand_over()
        log, file = self._log, self._file
        if file.failure is not None:
            if file.is_retry_due:
                self._replace_file()
            else:
                self._end_close()
            return
        if self._next:
            self._take_next()
        is_waited_for = bool(log.records) and (not log.is_alone or log.unapplied_count > 0)
        has_work = is_waited_for or log.records_size >= JOURNAL_UNWRITTEN_SIZE_MAX
        if log.received is not None or (has_work and file.is_too_long):
            self._replace_file()
        elif has_work or (self._on_closed is not None and not file.is_marked):
            self._append_batch()
        elif file.is_mark_due:
            self._is_busy = True
            file.sync_mark(lambda error: self._end_job(0, error))
        else:
            self._end_close()

    def _end_close(self) -> None:
        if self._on_closed is not None:
            on_closed, self._on_closed = self._on_closed, None
            on_closed()

    def _append_batch(self) -> None:
        self._is_busy = True
        ticket = self._log.ticket
        self._file.append(
            self._log.take_records(),
            self._reach,
            lambda error: self._end_job(ticket, error),
            is_last=self._on_closed is not None,
        )

    def _replace_file(self) -> None:
        self._is_busy = True
        ticket, snapshot = self._take_snapshot()
        self._file.replace(snapshot, lambda error: self._end_job(ticket, error))

    def _take_snapshot(self) -> tuple[int, JournalSnapshot]:
        """The content of the next file; and what to tell the group when it is synced."""
        # It has everything that was handed over until now.
        ticket = self._group.hand_over()
        log = self._log
        log.take_records()
        received = log.received
        if received is None:
            return ticket, self._file.snapshot(
                self._metadata, self._place(log.applied_id, self._now), log.tail()
            )
        metadata = received.payload
        assert isinstance(metadata, ReceivedMetadata)
        place = self._place(EntryId(received.term, received.index), metadata.now)
        return ticket, self._file.snapshot(metadata.metadata, place, log.tail())

    def _place(self, last: EntryId, now: int) -> SnapshotPlace:
        log = self._log
        return SnapshotPlace(
            index=last.index, term=last.term, now=now, hard=log.hard, configuration=log.configuration
        )

    def _image(self, applied: EntryId) -> JournalSnapshot:
        """The metadata as they are, as the payload of a snapshot for another member."""
        origin = SnapshotOrigin(bytes(LOG_ID_SIZE), 0, bytes(SALT_SIZE))
        return JournalSnapshot(self._metadata, self._place(applied, self._now), origin)

    @property
    def _reach(self) -> LogReach:
        # As if each entry that is not applied declared a queue.
        log = self._log
        return LogReach(log.last_index(), self._metadata.next_number - 1 + log.unapplied_count)

    def _end_job(self, ticket: int, error: OSError | None) -> None:
        """Have everything applied that is committed now, and answer its proposals."""
        self._is_reacting = True
        if error is None:
            self._group.written(ticket)
        self._is_reacting = self._is_busy = False
        if error is not None:
            self._fail(error)
        self._end_results()
        # Only a new file resolves doubts, and while there are some nothing else is written.
        resolving, self._resolving = self._resolving, []
        for future in resolving:
            if not future.done():
                future.set_result(None)
        self._proceed()

    def _fail(self, error: OSError) -> None:
        """Refuse all commands that the only voter cannot write; with others they wait for the next file.

        What was handed over stays in memory, and is in that file.
        """
        self._log.take_records()
        if not self._log.decides_alone:
            return
        self._next.clear()
        refused = self._own.take_all()
        # The snapshot that is written next has what was applied.
        self._group.fail()
        self._log.take_records()
        self._leader = self._group.leader
        for own in refused:
            own.end(_refusal(error))

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
        configuration = found.configuration
        if not configuration.members and not dependencies.is_joining:
            configuration = Configuration((node,))
        applied = EntryId(term, metadata.index)
        start = LogStart(node=node, applied=applied, hard=hard, configuration=configuration, tail=found.tail)
        log = MetadataLog(start, self._stamp, self._image)

        def chance(count: int) -> int:
            return int.from_bytes(dependencies.random_bytes(_CHANCE_SIZE), "big") % count

        return log, MetadataGroup(
            dependencies.incarnation, log, self, chance=chance, send=dependencies.others.send
        )


def _refusal(error: OSError) -> AmqpError:
    text = f"cannot write the metadata: {error.strerror or error}"
    return ResourceError(text) if error.errno in _NO_SPACE else InternalError(text)
