"""The replica of a quorum queue on this node: its log, its machine, its messages, and the proposals it makes.

    proposals ─ prepare ─▶ entry of the log ─▶ other members ─▶ committed ─▶ machine, messages, queue
    step ─▶ entry of another leader ─▶ synced ─▶ committed ─▶ machine, messages

What earlier terms have left in the log is applied before the queue opens, which is when the first entry of
this leader's term is committed. When another replica leads, the queue and its proposals end, and what is
committed is applied to the machine and the messages alone.

A snapshot of another member replaces the log, the messages and the machine of a replica that does not lead.
Its messages are received first; all of it is there, or all that was there before, after a crash at any point.

Positions are those of the store; `GroupLog.logical` gives the ones that all members of the group share.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from warren.limits_raft import (
    GROUP_COMPACTED_ENTRIES,
    GROUP_COMPACTED_SIZE,
    GROUP_COMPACTED_SIZE_ALONE,
    GROUP_ELECTION_TICKS,
)
from warren.metadata.incarnation import Incarnation
from warren.model.message import StoredMessage
from warren.queues.quorum.batch_codec import Enqueuer, QuorumBatch, Reach, SettledRun
from warren.queues.quorum.group_proposals import GroupOwner, GroupProposals
from warren.queues.quorum.machine import QuorumMachine
from warren.queues.quorum.pending_batch import PendingBatch
from warren.queues.quorum.raft_storage import (
    NO_MEMBERS,
    GroupStorage,
    QuorumPayload,
    QuorumSnapshot,
    encode_configuration,
)
from warren.queues.quorum.replica_messages import ReplicaMessages
from warren.queues.quorum.returned_messages import ReturnState
from warren.queues.replication_status import ReplicationStatus
from warren.replication.driver import RaftDriver
from warren.replication.raft.change import ConfigurationChange
from warren.replication.raft.raft_messages import NOBODY, Entry, EntryKind, RaftMessage, Snapshot
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.replica import Replica
from warren.replication.raft.state import RaftDependencies
from warren.store.group_listener import GroupListener
from warren.store.group_log import GroupLog
from warren.store.group_record import GroupSnapshot
from warren.store.message_store import MessageStore
from warren.store.recovered_queue import RecoveredQueue

_NORMAL = EntryKind.NORMAL
_SETTINGS = RaftSettings(election_ticks=GROUP_ELECTION_TICKS, tell_commit_later=True)


def _no_chance(below: int) -> int:
    """The sole voter never waits for an election, so that its timeout does not matter."""
    return 0


def _send_nothing(number: int, messages: Sequence[RaftMessage]) -> None:
    """Never called while there is no other member."""
    raise AssertionError(messages)


def _note_nothing(group: "QuorumGroup") -> None:
    """The default for who does not follow the members."""


class GroupMembership(Struct, frozen=True, kw_only=True):
    """Which replica of a group this node has, and its way to the others."""

    replica: int = 1
    # Those with which the group begins; none if this replica was added later, and has to hear of them.
    voters: tuple[int, ...] = (1,)
    # True if it campaigns as soon as the group begins.
    leads_first: bool = False
    # A number below the argument, for the timeouts of elections.
    chance: Callable[[int], int] = _no_chance
    # Sends messages of the group with a number to other members, as soon as there are any.
    send: Callable[[int, Sequence[RaftMessage]], None] = _send_nothing
    # Called when another configuration is in effect.
    changed: Callable[["QuorumGroup"], None] = _note_nothing


SOLE_MEMBER = GroupMembership()


class QuorumGroup(GroupListener):
    """The replica of one quorum queue on this node; it leads if it is the only member."""

    __slots__ = (
        "_driver", "_incarnation", "_is_left_alone", "_is_retiring", "_is_started", "_leads", "_log",
        "_loses_messages", "_membership", "_owner", "_storage", "_store", "_term", "_unwritten_ticks",
        "is_closed", "machine", "messages", "proposals",
    )  # fmt: skip

    def __init__(
        self,
        log: GroupLog,
        store: MessageStore,
        owner: GroupOwner,
        incarnation: Incarnation,
        *,
        membership: GroupMembership = SOLE_MEMBER,
        settled: Sequence[SettledRun] = (),
    ) -> None:
        self._log = log
        self._store = store
        self._owner = owner
        self._incarnation = incarnation
        self._membership = membership
        self.is_closed = False
        self._is_started = False
        # True while it leads, and the term in which it has opened the queue.
        self._leads = False
        self._term = 0
        # True while it leads and has another one lead, as soon as all agree on what was never delivered.
        self._is_retiring = False
        # True while the log on the disk has members of which this replica has ceased to wait; and whether
        # they may have had what it has not.
        self._is_left_alone = False
        self._loses_messages = False
        # The ticks in which the store has taken nothing of what was gathered.
        self._unwritten_ticks = 0
        # What is agreed on, beside the messages; `settled` are those of entries that are not in the log.
        self.machine = _machine_of(log.snapshot.machine)
        self.messages = ReplicaMessages(log, store, settled)
        self.proposals = self._new_proposals()
        log.listener = self
        storage = self._storage = GroupStorage(log, self.messages)
        storage.make_snapshot = self._snapshot
        replica = Replica(
            log.replica,
            RaftDependencies(storage=storage, chance=membership.chance),
            _SETTINGS,
            applied=log.snapshot.index,
        )
        self._driver = RaftDriver(replica, storage, self, self._send, incarnation=incarnation.number)

    def start(self) -> None:
        """Begin with the next write, when the messages were restored that the store has found.

        This replica leads if nobody else votes; `GroupOwner.opened` follows when that is synced.
        """
        self._log.announce()

    def lead_for(self, owner: GroupOwner) -> None:
        """Have `owner` be the queue from now on, after the one whose leadership has ended."""
        self._owner = owner
        self.proposals = self._new_proposals()

    # --- what other members send, and what time brings ------------------------------------------------

    def receive(self, message: StoredMessage, level: int, position: int) -> None:
        """Store `message` of a snapshot that `step` gets, at `position` of `level` in the group.

        Another replica leads.
        """
        assert not self._leads, "who leads receives no snapshot"
        if not self.proposals.is_idle:
            self._stop_leading()
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
        self._begin()
        self._driver.step(message)
        self._flush()
        if message.snapshot is not None:
            self.messages.discard_received()

    def snapshot_sent(self, replica: int, *, is_done: bool) -> None:
        """Note whether another replica has got the snapshot that was sent to it."""
        self._driver.replica.snapshot_sent(replica, is_done=is_done)
        self._flush()

    def is_behind(self, message: RaftMessage) -> bool:
        """True if the snapshot of `message` has what this replica does not know as committed."""
        snapshot, replica = message.snapshot, self._driver.replica
        return (
            snapshot is not None
            and snapshot.index > replica.commit_index()
            and message.term >= replica.hard_state.term
        )

    def tick(self) -> None:
        """Note that time has passed; hand over if the disk takes nothing, since it is full or hangs."""
        self._begin()
        if self._leads and self.proposals.is_gathered:
            self._unwritten_ticks += 1
            if self._unwritten_ticks >= _SETTINGS.slow_storage_ticks:
                self._unwritten_ticks = 0
                self.hand_over()
        self._driver.tick()
        self._flush()
        if self.proposals.is_due:
            # It has not handed over after all.
            self._log.announce()
        if self._is_retiring and self.proposals.is_idle:
            self._end_retiring()

    def entry_messages(self, entry: Entry) -> Sequence[StoredMessage | None]:
        """The messages of `entry`, which this replica sends to another; None for each one that is settled."""
        payload = entry.payload
        assert isinstance(payload, QuorumPayload)
        return self._storage.messages(entry.index) if payload.messages is None else payload.messages

    def entry_contents(self, entry: Entry) -> Sequence[StoredMessage | int | None] | None:
        """The messages of `entry`, or where they are; 0 or None for one that is settled.

        None if `entry` is not there any more.
        """
        payload = entry.payload
        assert isinstance(payload, QuorumPayload)
        return self._storage.contents(entry) if payload.messages is None else payload.messages

    def hand_over(self) -> bool:
        """Have the member lead that has most of the log; False if this one does not lead, or is alone."""
        return self._driver.hand_over() != NOBODY

    def retire(self, replica: int = NOBODY) -> None:
        """Have another member lead, which is `replica` if given, when all agree on what was never delivered.

        Nothing is delivered until then. If that fails, this one continues.
        """
        if self._is_retiring:
            return
        if not self.is_open:
            self._replace_leader(replica)
            return
        self._is_retiring = True
        self._owner.stop_delivering(lambda: self._replace_leader(replica))

    def transfer(self, replica: int) -> None:
        """Have another member lead, wherever the leader is; nothing happens if that fails."""
        self._driver.replica.transfer(replica)
        self._flush()

    def continue_alone(self, *, loses_messages: bool) -> None:
        """Be the only member, and lead, since the others are gone for good; not while a snapshot arrives.

        If it `loses_messages` that the others may have agreed on, each one counts as delivered.
        """
        replica = self._driver.replica
        if replica.leads() or replica.log.snapshot is not None:
            return
        self._begin()
        self._is_left_alone = True
        self._loses_messages = loses_messages
        replica.continue_alone()
        self._flush()
        self._membership.changed(self)

    def propose_change(self, change: ConfigurationChange) -> bool:
        """Propose a change of the members; False if this replica does not lead, or if that must wait."""
        if not self.is_open:
            return False
        is_proposed = self._driver.propose_change(change) > 0
        self._flush()
        return is_proposed

    # --- as the listener of the log ---------------------------------------------------------------

    def prepare(self) -> None:
        """Propose what was gathered, since the store is about to write."""
        if self.is_closed:
            return
        self._unwritten_ticks = 0
        self._begin()
        if self._driver.replica.leads():
            # Otherwise it is asked again as it opens.
            self.proposals.propose(self._driver)
        self._flush()

    def shorten(self) -> None:
        """Replace the entries by a snapshot, since they would be written again."""
        applied = self._driver.applied
        if applied > self._log.snapshot.index:
            self._retain_entries(applied)

    def written(self, ticket: int) -> None:
        """Note that all changes of the log up to `ticket` are synced."""
        if not self.is_closed:
            self._driver.written(ticket)
            self._flush()

    # --- as the machine of the driver -------------------------------------------------------------

    def apply(self, entries: Sequence[Entry]) -> None:
        """Apply committed entries."""
        for entry in entries:
            if self.is_closed:
                return
            if entry.kind is not _NORMAL:
                self._membership.changed(self)
                continue
            if entry.size:
                if self._term and entry.term == self._term:
                    self._apply_proposed(entry)
                else:
                    self._apply_received(entry)
            elif self._leads and not self._term and entry.term == self._driver.replica.hard_state.term:
                self._open(entry.term)
        if self.proposals.is_due:
            self._log.announce()
        if not self.is_closed and self.is_open and self._driver.replica.is_only_member():
            # No other member may lack them.
            self._log.forget(entries[-1].index)

    def role_changed(self) -> None:
        """End the proposals if another replica leads, or none."""
        replica = self._driver.replica
        if replica.leads():
            self._leads = True
        elif self._leads or (replica.soft_state.leader != NOBODY and not self.proposals.is_idle):
            self._stop_leading()

    def install(self, snapshot: Snapshot) -> None:
        """Continue with `snapshot`, which is synced with its messages, instead of everything before it."""
        assert not self.is_open, "who leads receives no snapshot"
        payload = snapshot.payload
        assert isinstance(payload, QuorumSnapshot)
        self.machine = _machine_of(payload.machine)
        self.messages.synced(snapshot.index)

    # --- what the queue asks ----------------------------------------------------------------------

    @property
    def number(self) -> int:
        """The number of the group, which is that of its queue."""
        return self._log.number

    @property
    def is_open(self) -> bool:
        """True from when it leads and has applied what earlier terms have left, while it does."""
        return self.proposals.is_open

    @property
    def leader(self) -> int:
        """The replica that leads as far as this one knows; 0 if it knows none."""
        return self._driver.replica.soft_state.leader

    @property
    def driver(self) -> RaftDriver:
        """The driver of this replica, for reading."""
        return self._driver

    @property
    def log(self) -> GroupLog:
        """The log of this replica, for reading."""
        return self._log

    def status(self) -> ReplicationStatus:
        """What this replica is, and how far its log is."""
        replica, log = self._driver.replica, self._log
        configuration = replica.configuration
        return ReplicationStatus(
            role=replica.soft_state.role.value.replace("-", "_"),
            is_voter=replica.id in configuration.voters,
            term=replica.hard_state.term,
            last_index=replica.log.last_index(),
            written_index=replica.log.offset - 1,
            commit_index=replica.hard_state.commit,
            applied_index=replica.log.applied,
            snapshot_index=log.snapshot.index,
            readable_count=self.messages.count,
            readable_bytes=self.messages.byte_count,
        )

    def reach(self, level: int) -> int:
        """The position of `level` before which messages may be delivered."""
        return self._log.stored(level, self.machine.reach(level))

    def stored(self, level: int, position: int) -> int:
        """The position in the store of the message at `position` of `level` in the group."""
        return self._log.stored(level, position)

    def levels(self) -> list[int]:
        """The priority levels that have had messages."""
        return self.messages.levels()

    def end(self, level: int) -> int:
        """The position behind the last message of `level` that has entered the queue."""
        return self.messages.end(level)

    def found(self, level: int) -> RecoveredQueue:
        """The messages of `level` that are in the queue."""
        return self.messages.found(level, self.reach(level))

    def returned_positions(self, level: int) -> Iterator[tuple[int, ReturnState]]:
        """The positions of the messages of `level` that have come back, with what is known of them."""
        for each in self.machine.returned_ranges():
            if each.level == level:
                for position in range(each.first, each.end):
                    yield self._log.stored(level, position), each.state

    def failed(self, error: Exception) -> None:
        """End the replica and its queue: `error` was raised outside of any connection."""
        self._owner.failed(error)

    def abandon(self) -> list[PendingBatch]:
        """End for good, since an error has broken it; returns what is not committed.

        What is stored stays as it is until the next start.
        """
        self.is_closed = True
        self._log.listener = None
        return self.proposals.end()

    def close(self) -> None:
        """Forget the log of the deleted queue; whoever published to it gets a confirm.

        The queue releases its messages, if it has opened.
        """
        self.is_closed = True
        self._log.listener = None
        if not self.is_open:
            self.messages.release_all()
        self.proposals.close()

    def begin_again(self, replica: int) -> None:
        """End this replica: its log is that of a new one with the number `replica`, or of none if that is 0.

        If it leads, its queue ends as when another replica leads.
        """
        if self._leads or not self.proposals.is_idle:
            self._stop_leading()
        self.is_closed = True
        self.messages.begin_again(replica, NO_MEMBERS)

    # --- private ----------------------------------------------------------------------------------

    def _new_proposals(self) -> GroupProposals:
        return GroupProposals(self._log, self._store, self._owner, self._incarnation)

    def _send(self, messages: Sequence[RaftMessage]) -> None:
        self._membership.send(self._log.number, messages)

    def _begin(self) -> None:
        """Begin with what the log has, once."""
        if self._is_started:
            return
        self._is_started = True
        configuration, hard = self._driver.replica.configuration, self._log.hard
        is_alone = configuration.voters == (self._log.replica,) and not configuration.outgoing
        if is_alone or (self._membership.leads_first and hard.term <= 1 and not hard.vote):
            self._driver.campaign()

    def _open(self, term: int) -> None:
        """Open the queue: everything of earlier terms is applied."""
        self._term = term
        own = self._incarnation
        if self._loses_messages:
            self._loses_messages = False
            reaches = tuple(Reach(level, end) for level, end in self.messages.ends().items())
            self.machine.apply(QuorumBatch(reaches=reaches))
        enqueuers = self.machine.enqueuers()
        self.proposals.open(self.machine.last_number(Enqueuer(own.node, own.number)))
        self._owner.opened()
        for each in enqueuers:
            # Numbers that earlier runs of a node have given.
            if each.node == own.node and each.incarnation < own.number:
                self.proposals.forget(each)
        self._log.announce()
        self.proposals.call_waiting()

    def _replace_leader(self, replica: int) -> None:
        if replica == NOBODY:
            self.hand_over()
            self._flush()
        else:
            self.transfer(replica)
        if self._is_retiring:
            self._end_retiring()

    def _end_retiring(self) -> None:
        """Continue to lead, unless another one is about to."""
        if self._leads and self._driver.replica.transfer_to == NOBODY:
            self._is_retiring = False
            self._owner.keeps_leading()

    def _stop_leading(self) -> None:
        """End the proposals, and with them the queue that has made them."""
        self._leads = False
        self._is_retiring = False
        self._term = 0
        self._storage.drop_recent(self._driver.applied)
        unanswered = self.proposals.end()
        self._owner.stopped_leading(unanswered)

    def _apply_proposed(self, entry: Entry) -> None:
        """Apply an entry that this replica has proposed in this term."""
        pending, messages = self.proposals.next_proposed(entry.index), self.messages
        batch = pending.batch
        applied = self.machine.apply(batch)
        assert not applied.repeats, f"entry {entry.index} repeats what was published before"
        if batch.settled:
            messages.forget(batch.settled)
        self.proposals.committed(pending)
        owner = self._owner
        if pending.messages:
            # A backlog that is made as they enter begins at the end before them.
            owner.enter(pending.messages, batch.runs)
            messages.keep(pending.messages, batch.runs)
        elif batch.reaches:
            owner.reached()
        pending.answer()

    def _apply_received(self, entry: Entry) -> None:
        """Apply an entry of another leader, or of an earlier term."""
        payload = entry.payload
        assert isinstance(payload, QuorumPayload)
        batch = payload.take_batch()
        repeats = self.machine.apply(batch).repeats
        self.messages.enter(entry.index, batch.runs, payload.sizes)
        if repeats:
            self.messages.drop(repeats)
        if batch.settled:
            self.messages.settle(batch.settled)

    def _flush(self) -> None:
        """Do what the replica wants to have done, and replace the entries by a snapshot if they are many.

        Messages with entries are sent before these are replaced.
        """
        driver, log = self._driver, self._log
        driver.flush()
        if self.is_open and (
            self._is_left_alone or (not log.snapshot.index and not driver.replica.is_only_member())
        ):
            # Its configuration is another one on the disk. Or it began alone, with a configuration before
            # all entries: who is added is not to be sent these without it, but a snapshot.
            self._is_left_alone = False
            self._replace_entries(driver.applied)
        if self._storage.has_recent:
            self._storage.drop_recent(self._lowest_match())
        if self.is_closed or not log.has_tail(GROUP_COMPACTED_SIZE_ALONE):
            return
        applied = driver.applied
        count = applied - log.snapshot.index
        if count > 0 and (
            (self.is_open and driver.replica.is_only_member() and log.has_tail(len(log.snapshot.machine)))
            or count >= GROUP_COMPACTED_ENTRIES
            or log.has_tail(GROUP_COMPACTED_SIZE)
        ):
            self._retain_entries(applied)

    def _retain_entries(self, index: int) -> None:
        """Replace the entries up to `index` by a snapshot, and keep those that members lack in memory."""
        if self.is_open:
            self._storage.retain(self._lowest_match() + 1, index)
        self._replace_entries(index)

    def _lowest_match(self) -> int:
        """The index up to which all members have the log, but those that need a snapshot in any case."""
        replica = self._driver.replica
        first = self._storage.first_index()
        matches = [each.match for each in replica.progress.values() if each.match + 1 >= first]
        return min(matches, default=replica.log.applied)

    def _snapshot(self) -> Snapshot | None:
        """The state as of the last applied entry, for a member that lacks entries; None before the first.

        The entries remain, since other members may lack only some of them.
        """
        index = self._driver.applied
        if not index:
            return None
        payload = QuorumSnapshot(self.machine.encode(), self.messages.ends())
        return Snapshot(index, self._log.term(index), self._driver.replica.configuration, payload)

    def _replace_entries(self, index: int) -> None:
        """Replace the entries up to `index`, the last one that is applied, by a snapshot."""
        log = self._log
        log.compact(
            GroupSnapshot(
                index=index, term=log.term(index),
                configuration=encode_configuration(self._driver.replica.configuration),
                machine=self.machine.encode(),
            )
        )  # fmt: skip


def _machine_of(data: bytes) -> QuorumMachine:
    """The machine of a snapshot with `data`; QuorumFormatError if it is invalid."""
    return QuorumMachine.decode(data) if data else QuorumMachine()
