"""The replica of a quorum queue on this node: what it proposes, and what follows from a commit.

    place, settle, returned ─▶ pending batch ─ prepare ─▶ entry of the log ─ committed ─▶ machine, queue
                                                │ with the next write of the store

A message is appended to the store as it is published, so that it is written once for all queues that it was
routed to; what belongs to one write becomes entries behind its messages. Nothing is done before its entry is
committed: messages become ready then, publishers get their confirms, and what was settled is released.

A snapshot of another member replaces the log, the messages and the machine of a replica that does not lead.
Its messages are received first; all of it is there, or all that was there before, after a crash at any point.

What earlier runs have left in the log is applied before the queue opens, which is when the first entry of
this term is committed: settled messages are not restored, and the machine has the rest.

Positions are those of the store; `GroupLog.logical` gives the ones that all members of the group share.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Protocol

from warren.limits_raft import (
    GROUP_COMPACTED_ENTRIES,
    GROUP_COMPACTED_SIZE,
    GROUP_COMPACTED_SIZE_ALONE,
    QUORUM_BATCH_SIZE,
    REACH_AHEAD_MAX,
    REACH_AHEAD_MIN,
)
from warren.metadata.incarnation import Incarnation
from warren.model.column import Column
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import BODY_ON_DISK, StoredMessage, body_size_of
from warren.queues.queue import Delivery
from warren.queues.quorum.batch_builder import BatchBuilder
from warren.queues.quorum.batch_codec import Enqueuer, HoldReason, SettledRun, SettleReason, decode, encode
from warren.queues.quorum.machine import QuorumMachine
from warren.queues.quorum.pending_batch import PendingBatch
from warren.queues.quorum.raft_storage import (
    GroupStorage,
    QuorumPayload,
    QuorumSnapshot,
    new_quorum_payload,
)
from warren.queues.quorum.replica_messages import ReplicaMessages
from warren.queues.quorum.returned_messages import ReturnState
from warren.queues.replication_status import ReplicationStatus
from warren.replication.driver import RaftDriver
from warren.replication.raft.raft_messages import Entry, RaftMessage, Snapshot
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.replica import Replica
from warren.replication.raft.state import RaftDependencies
from warren.store.cursor import QueueCursor
from warren.store.group_listener import GroupListener
from warren.store.group_log import GroupLog
from warren.store.group_record import GroupSnapshot, PositionRun
from warren.store.message_store import MessageStore
from warren.store.recovered_queue import RecoveredQueue

_BODY_ON_DISK = BODY_ON_DISK
_BATCH_SIZE = QUORUM_BATCH_SIZE
_COMPACTED_SIZE_ALONE = GROUP_COMPACTED_SIZE_ALONE
# Looked up once: an attribute of an enum costs as much as the rest of settling a message.
_ACKNOWLEDGED = SettleReason.ACKNOWLEDGED


class GroupOwner(Protocol):
    """The queue, as its group sees it."""

    def opened(self) -> None:
        """The group leads, and has applied everything of earlier runs."""

    def enter(self, messages: list[StoredMessage], runs: Sequence[PositionRun]) -> None:
        """`messages` are committed; `runs` are their positions in the group."""

    def reached(self) -> None:
        """More messages can be delivered; `enter` looks for that by itself."""

    def delivers_at_once(self) -> bool:
        """True if messages are likely to be delivered as soon as they are committed."""


class QuorumGroup(GroupListener):
    """The replica of one quorum queue on this node; it leads if it is the only member."""

    __slots__ = (
        "_batches", "_builder", "_driver", "_ends", "_enqueuer", "_log", "_number", "_opening", "_owner",
        "_pending", "_proposed", "_reach_asked", "_settled_before", "_store", "is_closed", "is_open",
        "machine", "messages", "pending_bytes", "pending_count", "send",
    )  # fmt: skip

    def __init__(
        self,
        log: GroupLog,
        store: MessageStore,
        owner: GroupOwner,
        incarnation: Incarnation,
        *,
        settled: Sequence[SettledRun] = (),
    ) -> None:
        self._log = log
        self._store = store
        self._owner = owner
        # What is agreed on, beside the messages; and these, until the queue has them.
        self.machine = _machine_of(log.snapshot.machine)
        self.messages = ReplicaMessages(log)
        # Sends messages to other members, as soon as there are any.
        self.send: Callable[[Sequence[RaftMessage]], None] = _send
        # True from when it leads and has applied what earlier runs have left, until it is closed.
        self.is_open = False
        self.is_closed = False
        # Messages that were published and are not committed, and the size of their bodies.
        self.pending_count = 0
        self.pending_bytes = 0
        # The numbers of the messages that this run of the node has published.
        self._enqueuer = Enqueuer(incarnation.node, incarnation.number)
        self._number = 0
        # What is gathered now, what waits to be proposed before it, and what is proposed.
        self._builder = BatchBuilder()
        self._pending = PendingBatch()
        self._batches: list[PendingBatch] = []
        self._proposed: list[PendingBatch] = []
        # Level -> the reach that was proposed last.
        self._reach_asked: dict[int, int] = {}
        # What entries of earlier runs have settled; `settled` is of those that are not in the log any more.
        self._settled_before: list[SettledRun] = [*settled]
        # Who waits for it to open.
        self._opening: list[Callable[[], None]] = []
        # Level -> the position behind the last message that has entered the queue.
        self._ends = {level: log.stored(level, log.end(level)) for level in log.levels()}
        log.listener = self
        storage = GroupStorage(log, self.messages)
        # The sole voter never waits for an election, so that its timeout does not matter.
        dependencies = RaftDependencies(storage=storage, chance=lambda _: 0)
        replica = Replica(log.replica, dependencies, RaftSettings(), applied=log.snapshot.index)
        self._driver = RaftDriver(replica, storage, self, lambda messages: self.send(messages))

    def start(self) -> None:
        """Have this replica lead if nobody else votes; `GroupOwner.opened` follows when that is synced."""
        configuration = self._driver.replica.configuration
        if configuration.voters == (self._log.replica,) and not configuration.outgoing:
            self._driver.campaign()
        self._driver.flush()

    # --- what other members send ------------------------------------------------------------------

    def receive(self, message: StoredMessage, level: int, position: int) -> None:
        """Store `message` of a snapshot that `step` gets, at `position` of `level` in the group.

        Another replica leads, so that what was published here is refused.
        """
        assert not self.is_open, "who leads receives no snapshot"
        self._refuse_pending()
        self.messages.receive(message, level, position)

    def discard_received(self) -> None:
        """Make the messages void that were received for a snapshot that will not come."""
        self.messages.discard_received()

    def step(self, message: RaftMessage) -> None:
        """Take a message of another member; those of a snapshot that is not installed are void then.

        QuorumFormatError, and nothing is done, if a snapshot has what this version cannot read.
        """
        if message.snapshot is not None:
            payload = message.snapshot.payload
            assert isinstance(payload, QuorumSnapshot)
            _machine_of(payload.machine)
            self._refuse_pending()
        self._driver.step(message)
        self._driver.flush()
        if message.snapshot is not None:
            self.messages.discard_received()

    # --- what is proposed -------------------------------------------------------------------------

    def place(
        self, message: StoredMessage, level: int, confirmation: ConfirmListener | None, sequence: int
    ) -> None:
        """Publish `message` with priority `level`; it enters the queue when that is committed."""
        pending = self._pending
        if pending.byte_count >= _BATCH_SIZE or self._builder.is_full:
            pending = self._next_batch()
        position = self._log.place(message, level)
        self._number += 1
        self._builder.enqueue(self._enqueuer, self._number, level, position)
        before = pending.byte_count
        pending.add(message)
        self.pending_count += 1
        self.pending_bytes += pending.byte_count - before
        if confirmation is not None:
            pending.confirm(confirmation, sequence)

    def settle(self, message: StoredMessage, cursor: QueueCursor, position: int) -> None:
        """Settle `message` at `position` of `cursor`: it is released when that is committed."""
        if self.is_closed:
            self._drop(message)
            self._store.finish(cursor, position, position + 1)
            return
        level = cursor.level
        self._room().settle(level, self._log.logical(level, position), body_size_of(message), _ACKNOWLEDGED)
        self._pending.release(message, cursor, position)
        self._log.announce_later()

    def settle_range(self, cursor: QueueCursor, first: int, end: int) -> None:
        """Settle the positions from `first` up to `end`, whose messages are released by another call."""
        if self.is_closed:
            self._store.finish(cursor, first, end)
            return
        level = cursor.level
        for low, high in self._log.logical_ranges(level, first, end):
            self._room().settle_run(SettledRun(level, low, high - low, reason=SettleReason.PURGED))
        self._pending.call_back(lambda: self._store.finish(cursor, first, end))
        self._log.announce_later()

    def hold(self, level: int, position: int, hold: HoldReason) -> None:
        """Record why the message at `position` is held, or that it is not any more."""
        logical = self._log.logical(level, position)
        self._room().hold(level, logical, hold)
        self._log.announce()

    def returned(self, level: int, delivery: Delivery, ready_at: int) -> None:
        """Record that `delivery` of `level` came back, and is ready at `ready_at` (ms); 0 is at once."""
        if not self.is_closed:
            logical = self._log.logical(level, delivery.position)
            failed, total = delivery.failures, delivery.attempts
            self._room().return_counted(level, logical, failed, total, ready_at=ready_at)
            self._log.announce_later()

    def want_reach(self, level: int, position: int, count: int) -> None:
        """Make it possible to deliver `count` messages, or a few more, from `position` on."""
        logical = self._log.logical(level, position)
        if self._reach_asked.get(level, 0) <= logical:
            ahead = min(max(2 * count, REACH_AHEAD_MIN), REACH_AHEAD_MAX)
            self._reach_asked[level] = logical + ahead
            self._room().raise_reach(level, logical + ahead)
            self._log.announce()

    def reach(self, level: int) -> int:
        """The position of `level` before which messages may be delivered."""
        return self._log.stored(level, self.machine.reach(level))

    def stored(self, level: int, position: int) -> int:
        """The position in the store of the message at `position` of `level` in the group."""
        return self._log.stored(level, position)

    def when_committed(self, callback: Callable[[], None]) -> None:
        """Call `callback` when everything that was proposed before is committed and applied."""
        if self.is_closed:
            callback()
        elif self._is_empty() and not self._batches and not self._proposed:
            if self.is_open:
                callback()
            else:
                self._opening.append(callback)
        else:
            last = self._pending
            if self._is_empty():
                last = self._batches[-1] if self._batches else self._proposed[-1]
            last.call_back(callback)
            self._log.announce()

    # --- as the listener of the log ---------------------------------------------------------------

    def prepare(self) -> None:
        """Propose what was gathered, since the store is about to write."""
        if self.is_closed or not self._driver.replica.leads():
            # It is asked again as it opens.
            return
        if not self._is_empty():
            self._next_batch()
        while self._batches and self._propose(self._batches[0]):
            self._proposed.append(self._batches[0])
            del self._batches[0]
        self._driver.flush()

    def shorten(self) -> None:
        """Replace the entries by a snapshot, since they would be written again."""
        applied = self._driver.applied
        if self.is_open and applied > self._log.snapshot.index:
            self._replace_entries(applied)

    def written(self, ticket: int) -> None:
        """Note that all changes of the log up to `ticket` are synced."""
        if not self.is_closed:
            self._driver.written(ticket)

    # --- as the machine of the driver -------------------------------------------------------------

    def apply(self, entries: Sequence[Entry]) -> None:
        """Apply committed entries."""
        for entry in entries:
            if self.is_closed:
                return
            if self.is_open:
                if entry.size:
                    self._apply_proposed(entry)
            else:
                self._apply_earlier(entry)
        if self._batches:
            self._log.announce()
        self._compact(entries[-1])

    def install(self, snapshot: Snapshot) -> None:
        """Continue with `snapshot`, which is synced with its messages, instead of everything before it."""
        assert not self.is_open, "who leads receives no snapshot"
        payload, log = snapshot.payload, self._log
        assert isinstance(payload, QuorumSnapshot)
        self.machine = _machine_of(payload.machine)
        self.messages.synced(snapshot.index)
        self._settled_before = []
        self._reach_asked = {}
        self._ends = {level: log.stored(level, end) for level, end in sorted(payload.ends.items())}

    # --- opening and closing ----------------------------------------------------------------------

    @property
    def number(self) -> int:
        """The number of the group, which is that of its queue."""
        return self._log.number

    @property
    def last_position(self) -> int:
        """The position in the store of the message that was published last."""
        return self._log.last_stored

    def status(self) -> ReplicationStatus:
        """What this replica is, and how far its log is."""
        replica, log = self._driver.replica, self._log
        return ReplicationStatus(
            role=replica.soft_state.role.value.replace("-", "_"),
            is_voter=True,
            term=replica.hard_state.term,
            last_index=replica.log.last_index(),
            written_index=replica.log.offset - 1,
            commit_index=replica.hard_state.commit,
            applied_index=replica.log.applied,
            snapshot_index=log.snapshot.index,
        )

    def levels(self) -> list[int]:
        """The priority levels that have had messages."""
        return list(self._ends)

    def end(self, level: int) -> int:
        """The position behind the last message of `level` that has entered the queue."""
        end = self._ends.get(level)
        return self._log.stored(level, 0) if end is None else end

    def remaining(self, level: int) -> RecoveredQueue:
        """What of the messages of `level` that the replica has is in the queue.

        An entry can have settled messages that the store has not released before it was closed.
        """
        end, found = self.end(level), self.messages.take(level)
        # The reach may be ahead of the last message; those that follow were never delivered.
        delivered_up_to = min(self.reach(level), end)
        if found is None:
            return RecoveredQueue(
                positions=Column(),
                locations=Column(),
                byte_count=0,
                expiring=[],
                delivered_up_to=delivered_up_to,
                end=end,
            )
        positions, locations, byte_count = found.positions, found.locations, found.byte_count
        gone = self._take_settled(level)
        if gone:
            positions, locations = Column(), Column()
            for place in range(found.count):
                position, location = found.positions.get(place), found.locations.get(place)
                if position in gone:
                    byte_count -= self._release_found(level, position, location)
                else:
                    positions.append(position)
                    locations.append(location)
        return RecoveredQueue(
            positions=positions,
            locations=locations,
            byte_count=byte_count,
            expiring=[each for each in found.expiring if each[0] not in gone],
            delivered_up_to=delivered_up_to,
            end=end,
        )

    def _take_settled(self, level: int) -> set[int]:
        """The positions of `level` that entries have settled, and the store has not."""
        log, cursor = self._log, self._store.cursor(self._log.number, level)
        stored = (
            log.stored(level, position)
            for run in self._settled_before
            if run.level == level
            for position in range(run.first, run.first + run.count)
        )
        return {position for position in stored if not cursor.has(position)}

    def _release_found(self, level: int, position: int, location: int) -> int:
        """Release a message that an entry has settled; returns the size of its body."""
        message = self._store.reader().read(location)
        self._store.release_at(location, self._store.cursor(self._log.number, level), position)
        return 0 if message is None else body_size_of(message)

    def places(self, batch: PendingBatch) -> Iterator[tuple[int, int]]:
        """The level and the position in the store of each message of `batch`."""
        for run in batch.batch.runs:
            # The messages of a run are next to each other in the store as well.
            first = self._log.stored(run.level, run.first)
            for position in range(first, first + run.count):
                yield run.level, position

    def returned_positions(self, level: int) -> Iterator[tuple[int, ReturnState]]:
        """The positions of the messages of `level` that have come back, with what is known of them."""
        for each in self.machine.returned_ranges():
            if each.level == level:
                for position in range(each.first, each.end):
                    yield self._log.stored(level, position), each.state

    def close(self) -> None:
        """Forget the log of the deleted queue; whoever published to it gets a confirm."""
        self.is_closed = True
        self.is_open = False
        self._log.listener = None
        self._pending.batch = self._builder.take()
        batches = [*self._proposed, *self._batches, self._pending]
        self._proposed.clear()
        self._batches.clear()
        self._pending = PendingBatch()
        for batch in batches:
            places = self.places(batch)
            for message, (level, position) in zip(batch.messages, places, strict=True):
                self._store.release(message, self._store.cursor(self._log.number, level), position)
            self._release_all(batch)
            batch.answer()
        self.pending_count = self.pending_bytes = 0
        self._log.drop()
        self._call_waiting()

    # --- private ----------------------------------------------------------------------------------

    def _next_batch(self) -> PendingBatch:
        """End the batch, and begin another one."""
        ended = self._pending
        if ended.messages and self._owner.delivers_at_once():
            self._builder.reach_enqueued()
        ended.batch = self._builder.take()
        self._batches.append(ended)
        self._pending = PendingBatch()
        return self._pending

    def _is_empty(self) -> bool:
        """True if nothing was gathered."""
        return not self._pending.messages and self._builder.is_empty()

    def _room(self) -> BatchBuilder:
        """The builder of the batch that takes another command."""
        if self._builder.is_full:
            self._next_batch()
        return self._builder

    def _propose(self, pending: PendingBatch) -> bool:
        """Propose `pending`; False if too much is uncommitted."""
        batch = pending.batch
        commands = encode(batch)
        payload = new_quorum_payload(batch.runs, commands)
        pending.index = self._driver.propose(payload, len(commands) + pending.byte_count + 1)
        return pending.index > 0

    def _apply_proposed(self, entry: Entry) -> None:
        """Apply an entry that this replica has proposed in this term."""
        pending = self._proposed[0]
        del self._proposed[0]
        assert pending.index == entry.index, entry.index
        batch = pending.batch
        self.machine.apply(batch)
        if pending.released:
            self._release_all(pending)
        owner = self._owner
        self.pending_count -= len(pending.messages)
        self.pending_bytes -= pending.byte_count
        if pending.messages:
            # A backlog that is made as they enter begins at the end before them.
            owner.enter(pending.messages, batch.runs)
            for run in batch.runs:
                self._ends[run.level] = self._log.stored(run.level, run.first) + run.count
        elif batch.reaches:
            owner.reached()
        pending.answer()

    def _apply_earlier(self, entry: Entry) -> None:
        """Apply an entry of an earlier run; the first one of this term opens the queue."""
        payload = entry.payload
        if isinstance(payload, QuorumPayload):
            batch = decode(payload.commands, payload.runs)
            self.machine.apply(batch)
            self._settled_before += batch.settled
        elif self._driver.is_leader and entry.term == self._driver.replica.hard_state.term:
            self.is_open = True
            self._owner.opened()
            self._settled_before = []
            self._forget_enqueuers()
            self._log.announce()
            self._call_waiting()

    def _forget_enqueuers(self) -> None:
        """Forget the numbers that earlier runs of this node have given."""
        own = self._enqueuer
        for each in self.machine.enqueuers():
            if each.node == own.node and each.incarnation < own.incarnation:
                self._room().forget(each)

    def _call_waiting(self) -> None:
        """Call those who waited for the group to open."""
        waiting, self._opening = self._opening, []
        for callback in waiting:
            callback()

    def _compact(self, last: Entry) -> None:
        """Forget the entries if no other member may lack them; a snapshot replaces them if they are many."""
        log = self._log
        if not self.is_open:
            return
        is_only_member = self._driver.replica.is_only_member()
        if is_only_member:
            log.forget(last.index)
        if log.has_tail(_COMPACTED_SIZE_ALONE) and (
            (is_only_member and log.has_tail(len(log.snapshot.machine)))
            or last.index - log.snapshot.index >= GROUP_COMPACTED_ENTRIES
            or log.has_tail(GROUP_COMPACTED_SIZE)
        ):
            self._replace_entries(last.index)

    def _replace_entries(self, index: int) -> None:
        """Replace the entries up to `index`, the last one that is applied, by a snapshot."""
        log = self._log
        log.compact(
            GroupSnapshot(
                index=index, term=log.term(index), configuration=log.snapshot.configuration,
                machine=self.machine.encode(),
            )
        )  # fmt: skip

    def _refuse_pending(self) -> None:
        """Refuse what was published and not proposed, since another replica leads."""
        for batch in (*self._batches, self._pending):
            batch.refuse()
            self._opening += batch.callbacks or ()
        self._batches.clear()
        self._builder.take()
        self._pending = PendingBatch()
        self.pending_count = self.pending_bytes = 0
        self._log.unplace()

    def _release_all(self, batch: PendingBatch) -> None:
        """Release the settled messages of `batch`."""
        for message in batch.released:
            self._drop(message)
        batch.finish_released(self._store)

    def _drop(self, message: StoredMessage) -> None:
        """Release what `message` takes in the store; its position is settled by `finish`."""
        if message.flags & _BODY_ON_DISK:
            self._store.drop_references(message.location)
        else:
            self._store.drop_message(message)


class Committed:
    """An awaitable that completes when everything that was proposed to a group before is committed."""

    __slots__ = ("_callback", "_is_done")

    def __init__(self, group: QuorumGroup) -> None:
        self._callback: Callable[[object], None] | None = None
        self._is_done = False
        group.when_committed(self._complete)

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` once, when it is committed."""
        self._callback = callback

    def __await__(self) -> Generator["Committed", None, None]:
        if not self._is_done:
            yield self

    def _complete(self) -> None:
        self._is_done = True
        if self._callback is not None:
            self._callback(self)


def _machine_of(data: bytes) -> QuorumMachine:
    """The machine of a snapshot with `data`; QuorumFormatError if it is invalid."""
    return QuorumMachine.decode(data) if data else QuorumMachine()


def _send(messages: Sequence[RaftMessage]) -> None:
    """Never called while there is no other member."""
    raise AssertionError(messages)
