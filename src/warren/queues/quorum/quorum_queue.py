"""The quorum queue: a classic queue whose messages and decisions are agreed on by a group.

A message is ready, and its publisher gets the confirm, when its entry is committed. What consumers and limits
decide is decided here, with the code of the classic queue, and takes effect for the store when it is
committed. Transient messages are stored like persistent ones.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from warren.errors import InternalError, NotFound, ResourceLocked
from warren.limits_raft import REACH_AHEAD_MAX, UNCOMMITTED_BYTES_MAX
from warren.metadata.incarnation import Incarnation
from warren.model.arguments import QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import PERSISTENT, Message, StoredMessage, stored_copy
from warren.queues.classic import ClassicQueue
from warren.queues.priority_backlog import PriorityBacklog
from warren.queues.queue import (
    ACCEPTED,
    NACKED,
    REFUSED,
    REJECTED,
    Consumer,
    Delivery,
    QueueHost,
)
from warren.queues.queue_counts import QueueCounts
from warren.queues.quorum.batch_codec import HoldReason, SettledRun
from warren.queues.quorum.claimed_queue import ClaimedQueue
from warren.queues.quorum.delivery_count import with_delivery_count
from warren.queues.quorum.group import SOLE_MEMBER, GroupMembership, QuorumGroup
from warren.queues.quorum.group_proposals import Committed
from warren.queues.quorum.pending_batch import PendingBatch
from warren.queues.quorum.quorum_backlog import QuorumBacklog
from warren.queues.quorum.raft_storage import NO_MEMBERS, encode_configuration
from warren.queues.quorum.replica_messages import begin_again
from warren.queues.quorum.untrusted_replica import UntrustedReplica
from warren.queues.replication_status import ReplicationStatus, in_memory
from warren.queues.unacked_pager import UnackedPager
from warren.replication.raft.change import Configuration
from warren.store.group_log import GroupLog
from warren.store.group_record import PositionRun
from warren.store.recovered_queue import RecoveredQueue
from warren.store.stores import Stores

_ACCEPTED = ACCEPTED
_REFUSED = REFUSED
_PERSISTENT = PERSISTENT
_REJECTED = REJECTED
# The bodies of one write, so that its entries, with their commands, are not refused by the group.
_PROPOSED_SIZE_MAX = UNCOMMITTED_BYTES_MAX // 2


class QuorumQueue(ClaimedQueue):
    """A quorum queue with its only member on this node."""

    __slots__ = (
        "_backlogs", "_has_levels", "_incarnation", "_is_retreating", "_membership", "_restoring", "_stores",
        "_untrusted", "ended",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        vhost_name: str,
        host: QueueHost,
        settings: QueueSettings,
        *,
        incarnation: Incarnation,
        membership: GroupMembership = SOLE_MEMBER,
    ) -> None:
        self._incarnation = incarnation
        self._membership = membership
        # Called when it has ended, with its consumers and what was published and is not committed.
        self.ended: Callable[[QuorumQueue, list[Consumer], list[PendingBatch]], None] = _refuse
        self._stores: Stores | None = None
        # The replica of a queue that is down.
        self._untrusted: UntrustedReplica | None = None
        # The backlog of each priority level that is in use.
        self._backlogs: dict[int, QuorumBacklog] = {}
        # Who is called when that is restored.
        self._restoring: list[Callable[[], None]] = []
        # Whether there is more than priority level 0.
        self._has_levels = False
        # True if nothing is delivered any more, since the node stops.
        self._is_retreating = False
        super().__init__(name, vhost_name, host, settings)

    def attach_store(self, stores: Stores, number: int) -> None:
        """Replicate the queue with `number`, in the log of `stores` that has its messages."""
        store = stores.persistent
        log = GroupLog.find(store, number)
        if log is None:
            voters = self._membership.voters
            configuration = encode_configuration(Configuration(voters))
            index = 1 if len(voters) > 1 else 0
            log = GroupLog.create(store, number, self._membership.replica, configuration, index=index)
        elif not log.replica:
            # This node had a replica earlier.
            log.begin_again(self._membership.replica, NO_MEMBERS, ())
        self._stores = stores
        if log.untrusted:
            self._untrusted = UntrustedReplica(log)
        else:
            self._replicate(log, stores)

    def _replicate(self, log: GroupLog, stores: Stores, settled: Sequence[SettledRun] = ()) -> None:
        """Begin to replicate the queue in `log`; `settled` are messages that have left the queue."""
        group = QuorumGroup(
            log, stores.persistent, self, self._incarnation, membership=self._membership, settled=settled
        )
        self._use(group, stores)
        group.start()

    def _use(self, group: QuorumGroup, stores: Stores) -> None:
        """Propose to `group` from now on."""
        self._group = group
        self._proposals = group.proposals
        self.lead_anew()
        backlog = self._make_backlog(0)
        # Its places remain when a message with a priority comes.
        backlog.place_base = self._place(0, 0)
        self._ready = backlog
        self._unacked_pager = UnackedPager(stores)

    def _make_backlog(self, level: int) -> QuorumBacklog:
        stores, group = self._stores, self._group
        assert stores is not None
        assert group is not None
        backlog = QuorumBacklog(stores, stores.persistent.cursor(group.number, level), group)
        self._backlogs[level] = backlog
        return backlog

    def restore(self, level: int, found: RecoveredQueue) -> None:
        """Restore the messages of priority `level` that a store has `found`, when the group has opened."""
        if self._untrusted is not None:
            self._untrusted.found[level] = found
        elif self._group is None:
            ClassicQueue.restore(self, level, found)
        else:
            self._group.messages.restore(level, found)

    @property
    def group(self) -> QuorumGroup | None:
        """Its replica on this node, for messages of other members; None in memory, and while it is down."""
        return self._group

    @property
    def is_restored(self) -> bool:
        """True if the group has opened, so that the messages of earlier runs are there."""
        return self._untrusted is None and (self._group is None or self._group.is_open)

    @property
    def is_down(self) -> bool:
        """True while its replica is not trusted: nothing is accepted, confirmed or delivered."""
        return self._untrusted is not None

    def recover(self) -> None:
        """Accept what is missing if the queue is down: it opens soon, with what is readable."""
        untrusted, stores = self._untrusted, self._stores
        if untrusted is not None and stores is not None:
            settled = untrusted.accept()
            self._untrusted = None
            self.touch()
            self._schedule()
            self._replicate(untrusted.log, stores, settled)
            for level, found in untrusted.found.items():
                self.restore(level, found)

    def last_place(self, message: Message) -> int:
        """The place that `message`, which was the last one published, has when it is committed."""
        group = self._group
        if group is None:
            return ClassicQueue.last_place(self, message)
        return self._place(self._level_of(message), group.proposals.last_position)

    def is_behind(self, byte_count: int) -> bool:
        """True if so much waits for a commit that a message of `byte_count` may not be in the next write."""
        group = self._group
        if group is None:
            return self._untrusted is not None
        waiting = group.proposals.pending_bytes
        return not group.is_open or (waiting > 0 and waiting + byte_count > _PROPOSED_SIZE_MAX)

    def when_restored(self, callback: Callable[[], None]) -> None:
        """Call `callback` when it opens, before anything is delivered."""
        self._restoring.append(callback)

    def replication_status(self) -> ReplicationStatus | None:
        """Its replica on this node; in memory, that of a group without a log."""
        if self._untrusted is not None:
            return self._untrusted.status()
        group = self._group
        status = in_memory() if group is None else group.status()
        dead_letters = self._dead_letters
        return replace(
            status,
            quarantined_count=self._quarantine.count,
            quarantined_bytes=self._quarantine.byte_count,
            delayed_count=self._delayed.count,
            delayed_bytes=self._delayed.byte_count,
            dead_letter_count=dead_letters.count,
            dead_letter_bytes=dead_letters.byte_count,
        )

    @property
    def total_count(self) -> int:
        """The number of all messages: also delayed ones, quarantined ones, and dead letters that are kept."""
        waiting_count = self._delayed.count + self._quarantine.count + self._dead_letters.count
        return self._ready.count + self.unacked_count + waiting_count

    @property
    def is_local(self) -> bool:
        """False: its coroutines may wait for the group."""
        return False

    # --- what clients and others do ---------------------------------------------------------------

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Propose `message`; REFUSED if the queue is full and rejects publishes, or down."""
        proposals = self._proposals
        if proposals is None:
            if self._untrusted is not None:
                return _REFUSED
            return ClassicQueue.publish(self, message, confirmation, sequence)
        self.published_count += 1
        if not self.is_dirty:
            self.mark_stats_dirty()
        if self._refuses and self.is_full_for(message):
            return _REFUSED
        stored: StoredMessage = message if message.flags & _PERSISTENT else stored_copy(message, _PERSISTENT)  # type: ignore[assignment]
        proposals.place(stored, self._level_of(message), confirmation, sequence)
        return _ACCEPTED

    async def fetch(self, no_ack: bool) -> tuple[Delivery, int] | None:
        """Take the first ready message for basic.get, with the number of those behind it; None if there is
        none.

        With `no_ack` it is settled. It waits until the group agrees that the message may be delivered.
        """
        if self.settings.single_active_consumer:
            raise ResourceLocked(
                f"cannot obtain access to locked queue '{self.name}' in vhost '{self.vhost_name}'. basic.get"
                " operations are not supported by quorum queues with single active consumer"
            )
        self._check_up()
        await self.claims.wait()
        group = self._group
        while group is not None and not (group.is_open and self._is_deliverable()):
            if self._is_retreating:
                return None
            self._want_reach()
            await Committed(group.proposals)
            if self.is_deleted:
                raise NotFound(f"no queue '{self.name}' in vhost '{self.vhost_name}'")
        delivery = self.get(no_ack)
        return None if delivery is None else (delivery, self.message_count)

    def stop_delivering(self, ended: Callable[[], None]) -> None:
        """Deliver nothing any more, and have the group agree on what was never delivered.

        The node stops, or another replica is to lead.

        The reach is ahead of deliveries, so that otherwise whoever leads next would mark as redelivered what
        no client has got.
        """
        group = self._group
        if group is None or not group.is_open:
            ended()
            return
        self._is_retreating = True
        positions = {}
        is_idle = group.proposals.is_idle
        for level, backlog in self._backlogs.items():
            # What is proposed may raise the reach.
            if backlog.next_position < backlog.reach or not is_idle:
                positions[level] = backlog.next_position
            backlog.reach = 0
        group.proposals.retreat(positions)
        group.proposals.when_settled(ended)

    def keeps_leading(self) -> None:
        """Deliver again, since no other replica leads after `stop_delivering`."""
        self._is_retreating = False
        self.reached()

    async def inspect(self) -> QueueCounts:
        """The numbers of its ready messages and of its consumers, as soon as the group has opened."""
        await self._until_open()
        return self.counts()

    def check_consumer(self, consumer: Consumer) -> None:
        """Raise an AmqpError if `consumer` cannot be added, or the queue is down."""
        self._check_up()
        ClassicQueue.check_consumer(self, consumer)

    async def committed(self) -> None:
        """Wait until the group has committed what was proposed before."""
        if self._group is not None:
            await Committed(self._group.proposals)

    async def purge(self) -> int:
        """Drop the ready messages; returns their number when that is committed."""
        await self._until_open()
        count = self.clear()
        await self.committed()
        return count

    def pump(self) -> None:
        """Deliver ready messages to ready consumers."""
        if self._is_retreating:
            return
        ClassicQueue.pump(self)
        if self._ready.count and self._consumers.count:
            self._want_reach()

    def requeue(self, delivery: Delivery, reason: int = NACKED) -> None:
        """Return `delivery` to its place for `reason`, perhaps after a delay.

        If it exceeds the delivery limit it is dead-lettered or, without a dead-letter exchange, quarantined.
        """
        proposals = self._proposals
        self._uncount_unacked(delivery)
        has_failed = reason >= _REJECTED
        is_counted = has_failed or self._host.counts_all_returns
        is_over = is_counted and 0 <= self._attempts_max <= self._counted(delivery) and not self.is_deleted
        delivery.attempts += 1
        delivery.failures += has_failed
        delivery.consumer = None
        if not is_over:
            ready_at = self.retried_at(delivery, has_failed)
            if proposals is not None:
                proposals.returned(self._level_of(delivery.message), delivery, ready_at)
            if ready_at:
                self.delay(delivery, ready_at)
            else:
                self._put_back(delivery)
        elif self.settings.dead_letter_exchange is not None:
            self._dead_letter_delivery(delivery, "delivery_limit")
        else:
            self.quarantine(delivery)

    def outgoing(self, delivery: Delivery) -> Message:
        """The message of `delivery` with its counts, if it was fetched or delivered before."""
        return with_delivery_count(delivery.message, self._counted(delivery), delivery.attempts)

    def _counted(self, delivery: Delivery) -> int:
        """The number of its earlier deliveries that count towards the delivery limit."""
        return delivery.attempts if self._host.counts_all_returns else delivery.failures

    def begin_again(self, replica: int) -> None:
        """End the replica: what the store has is that of a new one with the number `replica`, or of none if
        that is 0.

        Its messages are released; the members that remain have them.
        """
        group, untrusted = self._group, self._untrusted
        if group is not None:
            group.begin_again(replica)
        elif untrusted is not None:
            begin_again(untrusted.log, untrusted.found, replica, NO_MEMBERS)

    def abandon(self) -> None:
        """End for good with its replica, since an error has broken one of them; publishers are refused."""
        group, self._untrusted = self._group, None
        super().abandon()
        self.claims.end(InternalError("the quorum queue has failed"))
        if group is not None:
            _refuse(self, [], group.abandon())

    def delete(self) -> int:
        """Delete the queue: cancel its consumers and drop its messages.

        Returns the number of ready and of delayed messages.
        """
        # Before those go on that wait for the group.
        self.is_deleted = True
        if self._group is not None:
            self._group.close()
        if self._untrusted is not None:
            self._discard(self._untrusted)
        for place in self._quarantine.places():
            self.remove_quarantined(place)
        for delivery in self._dead_letters.clear():
            self._ready.settled(delivery)
        return ClassicQueue.delete(self)

    # --- what the group says ----------------------------------------------------------------------

    def failed(self, error: Exception) -> None:
        """End, since the group has raised `error` outside of any connection."""
        self._host.end_failed(self, error)

    def opened(self) -> None:
        """Restore what was found, as far as nothing has settled it."""
        group = self._group
        assert group is not None
        # Where level 0 begins may have changed since this queue was made, also if it has no messages.
        levels = sorted({0, *group.levels()})
        if any(levels):
            self._use_levels()
        now, delayed = self._host.turn.now(), []
        for level in levels:
            ClassicQueue.restore(self, level, group.found(level))
            for position, state in group.returned_positions(level):
                if state.hold is not HoldReason.NONE:
                    self.take_held(self._place(level, position), state.hold)
                elif state.ready_at > now:
                    delayed.append((state.ready_at, self._place(level, position)))
        if not self.settings.keeps_dead_letters:
            self._dead_letters.publish_once()
        restoring, self._restoring = self._restoring, []
        for callback in restoring:
            callback()
        for ready_at, place in delayed:
            delivery = self.take_restored(place)
            if delivery is not None:
                self.delay(delivery, ready_at)
        self._dead_letters.forward()
        self.began()
        self.pump()

    def stopped_leading(self, unanswered: list[PendingBatch]) -> None:
        """End, since another replica leads: what was handed out can be settled without effect."""
        self._sole = None
        self._host.wake_at(self, -1)
        consumers = list(self._consumers)
        for consumer in consumers:
            self._consumers.remove(consumer)
            self._host.consumer_count -= 1
        self.abandon_held()
        for backlog in self._backlogs.values():
            backlog.abandon()
        self._host.dirty.pop(self, None)
        self.claims.end(InternalError("the leader of the quorum queue has changed"))
        self.ended(self, consumers, unanswered)

    def successor(self) -> "QuorumQueue":
        """The queue of the next time that this replica leads, after this one has ended."""
        group, stores = self._group, self._stores
        assert group is not None
        assert stores is not None
        queue = QuorumQueue(
            self.name,
            self.vhost_name,
            self._host,
            self.settings,
            incarnation=self._incarnation,
            membership=self._membership,
        )
        queue.ended = self.ended
        queue.make_claims = self.make_claims
        queue._stores = stores
        group.lead_for(queue)
        queue._use(group, stores)
        return queue

    def enter(self, messages: list[StoredMessage], runs: Sequence[PositionRun]) -> None:
        """Deliver or enqueue `messages`, which are committed; `runs` are their positions in the group."""
        self.reached()
        group: QuorumGroup = self._group  # type: ignore[assignment]
        place = 0
        for run in runs:
            level = run.level
            # The messages of a run are next to each other in the store as well.
            first, reach = group.stored(level, run.first), group.reach(level)
            if self._is_retreating:
                reach = 0
            end = first + run.count
            for position in range(first, end):
                self._enter(messages[place], level, position < reach)
                place += 1

    def _enter(self, message: StoredMessage, level: int, is_reached: bool) -> None:
        """Deliver or enqueue `message`, which is committed; it may be delivered if it `is_reached`."""
        if level and not self._has_levels:
            self._use_levels()
        consumer = self._sole
        if consumer is None or not consumer.is_ready():
            consumer = self._next_consumer()
        # As long as a message is ready, nobody is found here.
        if consumer is not None and is_reached:
            self._deliver(consumer, self._ready.push_delivered(message, self))
            return
        self._enqueue(message)
        if consumer is not None:
            self.pump()

    def reached(self) -> None:
        """Deliver what waited for the reach."""
        group = self._group
        assert group is not None
        if self._is_retreating:
            return
        for level, backlog in self._backlogs.items():
            backlog.reach = group.reach(level)
        if self._ready.count:
            self.pump()

    def delivers_at_once(self) -> bool:
        """True if messages are likely to be delivered as soon as they are committed."""
        return self._consumers.count > 0 and self._ready.count < REACH_AHEAD_MAX

    # --- private ----------------------------------------------------------------------------------

    def _check_up(self) -> None:
        """Raise an AmqpError if the queue is down."""
        if self._untrusted is not None:
            raise self._untrusted.refusal(self.name, self.vhost_name)

    def _discard(self, untrusted: UntrustedReplica) -> None:
        """Release all that was found of the deleted queue."""
        assert self._stores is not None
        settings = QueueSettings(priority_max=max(untrusted.found, default=0) or None)
        queue = ClassicQueue("", self.vhost_name, self._host, settings)
        queue.attach_store(self._stores, untrusted.log.number)
        for level, found in untrusted.found.items():
            queue.restore(level, found)
        queue.delete()
        untrusted.log.drop()

    async def _until_open(self) -> None:
        """Wait until the group has opened, or was closed."""
        self._check_up()
        group = self._group
        while group is not None and not group.is_open and not group.is_closed:
            await Committed(group.proposals)

    def _use_levels(self) -> None:
        """Order ready messages by priority from now on: a message with a level has come."""
        backlog = self._backlogs[0]
        backlog.place_base = 0
        self._has_levels = True
        levels = PriorityBacklog(self._level_max, self._make_backlog)
        levels.adopt(backlog)
        self._ready = levels

    def _is_deliverable(self) -> bool:
        ready = self._ready
        return not ready.count or ready.is_deliverable()

    def _want_reach(self) -> None:
        """Ask the group for the right to deliver more, if the next message may not be delivered yet."""
        group = self._group
        if group is None or not group.is_open or self._is_deliverable():
            return
        for level in sorted(self._backlogs, reverse=True):
            backlog = self._backlogs[level]
            if backlog.count and not backlog.is_deliverable():
                group.proposals.want_reach(level, backlog.next_position, self.unacked_count)
                return


# Makes the queue of a replica on this node, with the run that numbers what it publishes.
ReplicaMaker: TypeAlias = Callable[[Incarnation, GroupMembership], QuorumQueue]


def _refuse(queue: QuorumQueue, consumers: list[Consumer], unanswered: list[PendingBatch]) -> None:
    """Refuse what was published, and cancel the consumers."""
    for batch in unanswered:
        batch.refuse()
    for consumer in consumers:
        consumer.cancelled()
