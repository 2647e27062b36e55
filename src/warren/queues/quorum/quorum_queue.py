"""The quorum queue: a classic queue whose messages and decisions are agreed on by a group.

A message is ready, and its publisher gets the confirm, when its entry is committed. What consumers and limits
decide is decided here, with the code of the classic queue, and takes effect for the store when it is
committed. Transient messages are stored like persistent ones.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from warren.errors import NotFound, ResourceLocked
from warren.limits_raft import REACH_AHEAD_MAX, UNCOMMITTED_BYTES_MAX
from warren.metadata.incarnation import Incarnation
from warren.model.arguments import QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import PERSISTENT, Message, StoredMessage, body_size_of, stored_copy
from warren.model.message_position import RANK_SHIFT
from warren.queues.classic import ClassicQueue
from warren.queues.priority_backlog import PriorityBacklog
from warren.queues.queue import (
    ACCEPTED,
    NACKED,
    REFUSED,
    REJECTED,
    Consumer,
    Delivery,
    PeekedMessage,
    Queue,
    QueueHost,
)
from warren.queues.queue_counts import QueueCounts
from warren.queues.quorum.batch_codec import HoldReason, SettledRun
from warren.queues.quorum.delivery_count import with_delivery_count
from warren.queues.quorum.group import Committed, QuorumGroup
from warren.queues.quorum.kept_dead_letters import KeptDeadLetters
from warren.queues.quorum.quarantined_messages import QuarantinedMessages
from warren.queues.quorum.quorum_backlog import QuorumBacklog
from warren.queues.quorum.raft_storage import ALONE, encode_configuration
from warren.queues.quorum.retrying_queue import RetryingQueue
from warren.queues.quorum.untrusted_replica import UntrustedReplica
from warren.queues.replication_status import ReplicationStatus, in_memory
from warren.queues.unacked_pager import UnackedPager
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
# The number of the replica of a queue that has one.
ONLY_REPLICA = 1
# Why a message died -> why it is held, and the other way round.
_HOLDS = {
    "rejected": HoldReason.REJECTED,
    "expired": HoldReason.EXPIRED,
    "delivery_limit": HoldReason.DELIVERY_LIMIT,
}
_REASONS = {hold: reason for reason, hold in _HOLDS.items()}


class QuorumQueue(RetryingQueue):
    """A quorum queue with its only member on this node."""

    __slots__ = (
        "_backlogs", "_dead_letters", "_group", "_has_levels", "_incarnation", "_level_max",
        "_quarantine", "_restoring", "_stores", "_untrusted",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        vhost_name: str,
        host: QueueHost,
        settings: QueueSettings,
        *,
        incarnation: Incarnation,
    ) -> None:
        self._incarnation = incarnation
        # None without a store: it is a queue in memory then.
        self._group: QuorumGroup | None = None
        self._stores: Stores | None = None
        # The replica of a queue that is down.
        self._untrusted: UntrustedReplica | None = None
        # The backlog of each priority level that is in use.
        self._backlogs: dict[int, QuorumBacklog] = {}
        # Who is called when that is restored.
        self._restoring: list[Callable[[], None]] = []
        self._quarantine = QuarantinedMessages()
        # The highest priority level, and whether there is more than level 0.
        self._level_max = settings.priority_max or 0
        self._has_levels = False
        # Those that are kept until their targets have confirmed them.
        self._dead_letters = KeptDeadLetters(self, host)
        super().__init__(name, vhost_name, host, settings)

    def apply_settings(self, settings: QueueSettings) -> None:
        """Use `settings` from now on; dead letters that wait are sent again, or published at most once."""
        RetryingQueue.apply_settings(self, settings)
        dead_letters = self._dead_letters
        if not dead_letters.count:
            return
        if settings.keeps_dead_letters:
            dead_letters.wake()
        else:
            dead_letters.publish_once()

    def attach_store(self, stores: Stores, number: int) -> None:
        """Replicate the queue with `number`, in the log of `stores` that has its messages."""
        store = stores.persistent
        log = GroupLog.find(store, number)
        if log is None:
            log = GroupLog.create(store, number, ONLY_REPLICA, encode_configuration(ALONE))
        self._stores = stores
        if log.untrusted:
            self._untrusted = UntrustedReplica(log)
        else:
            self._replicate(log, stores)

    def _replicate(self, log: GroupLog, stores: Stores, settled: Sequence[SettledRun] = ()) -> None:
        """Begin to replicate the queue in `log`; `settled` are messages that have left the queue."""
        self._group = QuorumGroup(log, stores.persistent, self, self._incarnation, settled=settled)
        backlog = self._make_backlog(0)
        # Its places remain when a message with a priority comes.
        backlog.place_base = self._place(0, 0)
        self._ready = backlog
        self._unacked_pager = UnackedPager(stores)
        self._group.start()

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
        return self._place(self._level_of(message), group.last_position)

    def is_behind(self, byte_count: int) -> bool:
        """True if so much waits for a commit that a message of `byte_count` may not be in the next write."""
        group = self._group
        if group is None:
            return self._untrusted is not None
        waiting = group.pending_bytes
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
            delayed_count=self._delayed.count,
            delayed_bytes=self._delayed.byte_count,
            dead_letter_count=dead_letters.count,
            dead_letter_bytes=dead_letters.byte_count,
        )

    @property
    def total_count(self) -> int:
        """The number of all messages: also of those that are delayed, and of dead letters that are kept."""
        return self._ready.count + self.unacked_count + self._delayed.count + self._dead_letters.count

    @property
    def is_local(self) -> bool:
        """False: its coroutines may wait for the group."""
        return False

    # --- what clients and others do ---------------------------------------------------------------

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Propose `message`; REFUSED if the queue is full and rejects publishes, or down."""
        group = self._group
        if group is None:
            if self._untrusted is not None:
                return _REFUSED
            return ClassicQueue.publish(self, message, confirmation, sequence)
        self.published_count += 1
        if not self.is_dirty:
            self.mark_stats_dirty()
        if self._refuses and self.is_full_for(message):
            return _REFUSED
        stored: StoredMessage = message if message.flags & _PERSISTENT else stored_copy(message, _PERSISTENT)  # type: ignore[assignment]
        group.place(stored, self._level_of(message), confirmation, sequence)
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
        group = self._group
        while group is not None and not (group.is_open and self._is_deliverable()):
            self._want_reach()
            await Committed(group)
            if self.is_deleted:
                raise NotFound(f"no queue '{self.name}' in vhost '{self.vhost_name}'")
        delivery = self.get(no_ack)
        return None if delivery is None else (delivery, self.message_count)

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
            await Committed(self._group)

    async def purge(self) -> int:
        """Drop the ready messages; returns their number when that is committed."""
        await self._until_open()
        count = self.clear()
        await self.committed()
        return count

    def pump(self) -> None:
        """Deliver ready messages to ready consumers."""
        ClassicQueue.pump(self)
        if self._ready.count and self._consumers.count:
            self._want_reach()

    def requeue(self, delivery: Delivery, reason: int = NACKED) -> None:
        """Return `delivery` to its place for `reason`, perhaps after a delay.

        If it exceeds the delivery limit it is dead-lettered or, without a dead-letter exchange, quarantined.
        """
        group = self._group
        self._uncount_unacked(delivery)
        is_over = 0 <= self._attempts_max <= delivery.attempts and not self.is_deleted
        has_failed = reason >= _REJECTED
        delivery.attempts += 1
        delivery.failures += has_failed
        delivery.consumer = None
        if not is_over:
            ready_at = self.retried_at(delivery, has_failed)
            if group is not None:
                group.returned(self._level_of(delivery.message), delivery, ready_at)
            if ready_at:
                self.delay(delivery, ready_at)
            else:
                self._put_back(delivery)
        elif self.settings.dead_letter_exchange is not None:
            self._dead_letter_delivery(delivery, "delivery_limit")
        else:
            if group is not None:
                group.hold(self._level_of(delivery.message), delivery.position, HoldReason.QUARANTINED)
            self._quarantine.add(self._ready.place_of(delivery), delivery)

    def quarantined(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` quarantined messages from place `first` on, with bodies."""
        return [
            PeekedMessage(place, self.whole(delivery), delivery.attempts)
            for place, delivery in self._quarantine.listed(first, count)
        ]

    def quarantined_places(self) -> list[int]:
        """The places of all quarantined messages, in order."""
        return self._quarantine.places()

    def release_quarantined(self, place: int) -> bool:
        """Make the quarantined message at `place` ready; False if there is none.

        It may be delivered as often again as the delivery limit says, and is marked as redelivered. `pump`
        makes it available to consumers.
        """
        delivery = self._quarantine.take(place)
        if delivery is None:
            return False
        # It was delivered before, so that it does not begin with none.
        delivery.attempts, delivery.failures = 1, 0
        if self._group is not None:
            level = self._level_of(delivery.message)
            self._group.returned(level, delivery, 0)
            self._group.hold(level, delivery.position, HoldReason.NONE)
        self._put_back(delivery)
        self.mark_stats_dirty()
        return True

    def remove_quarantined(self, place: int) -> bool:
        """Settle the quarantined message at `place`; False if there is none."""
        delivery = self._quarantine.take(place)
        if delivery is None:
            return False
        self._ready.settled(delivery)
        self.mark_stats_dirty()
        return True

    def outgoing(self, delivery: Delivery) -> Message:
        """The message of `delivery` with its delivery count, if it was fetched or delivered before."""
        return with_delivery_count(delivery.message, delivery.attempts)

    def delete(self) -> int:
        """Delete the queue: cancel its consumers and drop its messages.

        Returns the number of ready and of delayed messages.
        """
        if self._group is not None:
            self._group.close()
        if self._untrusted is not None:
            self._discard(self._untrusted)
        for place in self._quarantine.places():
            self.remove_quarantined(place)
        for delivery in self._dead_letters.clear():
            self._ready.settled(delivery)
        return ClassicQueue.delete(self)

    # --- as the source of dead letters ------------------------------------------------------------

    @property
    def keeps_dead_letters(self) -> bool:
        """True if dead letters are kept until all their targets have confirmed them."""
        return self.settings.keeps_dead_letters

    def route_dead_letter(self, message: Message, reason: str) -> tuple[Message, list[Queue]] | None:
        """The dead letter that `message` becomes, and its targets; None if it has none."""
        return self._host.route_dead_letter(self, message, reason)

    def dead_letter_confirmed(self, delivery: Delivery) -> None:
        """Settle `delivery`, which all targets have confirmed."""
        self._ready.settled(delivery)
        self.mark_stats_dirty()

    def dead_letter_once(self, delivery: Delivery, reason: str) -> None:
        """Publish the dead letter of `delivery` at most once, and settle it."""
        ClassicQueue._dead_letter_delivery(self, delivery, reason)
        self.mark_stats_dirty()

    # --- what the group says ----------------------------------------------------------------------

    def opened(self) -> None:
        """Restore what was found, as far as nothing has settled it."""
        group = self._group
        assert group is not None
        levels = group.levels()
        if any(levels):
            self._use_levels()
        now, delayed = self._host.turn.now(), []
        for level in levels:
            ClassicQueue.restore(self, level, group.remaining(level))
            for position, state in group.returned_positions(level):
                if state.hold is not HoldReason.NONE:
                    self._take_held(self._place(level, position), state.hold)
                elif state.ready_at > now:
                    delayed.append((state.ready_at, self._place(level, position)))
        if not self.settings.keeps_dead_letters:
            self._dead_letters.publish_once()
        restoring, self._restoring = self._restoring, []
        for callback in restoring:
            callback()
        for ready_at, place in delayed:
            delivery = self._take_restored(place)
            if delivery is not None:
                self.delay(delivery, ready_at)
        self._dead_letters.forward()
        self.pump()

    def _take_held(self, place: int, hold: HoldReason) -> None:
        """Take the recovered message at `place`, which is held, out of the ready messages."""
        delivery = self._take_restored(place)
        if delivery is None:
            return
        if hold is HoldReason.QUARANTINED:
            self._quarantine.add(place, delivery)
        else:
            self._dead_letters.restore(delivery, _REASONS[hold])

    def _take_restored(self, place: int) -> Delivery | None:
        """Take the ready message at `place`; None if there is none."""
        found = self._ready.peek(place, 1)
        return self._ready.take(found[0], self) if found and found[0].place == place else None

    def enter(self, messages: list[StoredMessage], runs: Sequence[PositionRun]) -> None:
        """Deliver or enqueue `messages`, which are committed; `runs` are their positions in the group."""
        self.reached()
        group: QuorumGroup = self._group  # type: ignore[assignment]
        place = 0
        for run in runs:
            level = run.level
            # The messages of a run are next to each other in the store as well.
            first, reach = group.stored(level, run.first), group.reach(level)
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

    def _dead_letter_delivery(self, delivery: Delivery, reason: str) -> None:
        """Keep `delivery`, which has died for `reason`, as a dead letter, or dead-letter or drop it."""
        if self.settings.keeps_dead_letters and not self.is_deleted:
            self._keep_dead(delivery, reason)
        else:
            ClassicQueue._dead_letter_delivery(self, delivery, reason)

    def _keep_dead(self, delivery: Delivery, reason: str) -> None:
        """Keep `delivery` until all targets of its dead letter have confirmed it."""
        group, dead_letters = self._group, self._dead_letters
        kept = self._host.kept_counts
        kept[reason] = kept.get(reason, 0) + 1
        delivery.consumer = None
        dead_letters.add(delivery, reason)
        if group is None:
            dead_letters.wake()
        else:
            group.hold(self._level_of(delivery.message), delivery.position, _HOLDS[reason])
            group.when_committed(dead_letters.agreed)

    def keep_expired(self, now: int) -> None:
        """Take all messages that have expired at `now` (ms) out of the ready ones, if their dead letters are
        kept.
        """
        ready = self._ready
        if not self.keeps_dead_letters:
            return
        while (place := ready.expired_place(now, self._ttl_ms)) >= 0:
            delivery = self._take_restored(place)
            if delivery is None:
                # It cannot be read, which was reported.
                return
            self.mark_stats_dirty()
            self._keep_dead(delivery, "expired")

    async def _until_open(self) -> None:
        """Wait until the group has opened, or was closed."""
        self._check_up()
        group = self._group
        while group is not None and not group.is_open and not group.is_closed:
            await Committed(group)

    def _level_of(self, message: Message) -> int:
        """The priority level of `message` in this queue."""
        level = message.priority
        return level if level <= self._level_max else self._level_max

    def _place(self, level: int, position: int) -> int:
        """The place of the message at `position` of `level`: higher levels come first."""
        return ((self._level_max - level) << RANK_SHIFT) + position

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
                group.want_reach(level, backlog.next_position, self.unacked_count)
                return

    def is_full_for(self, message: Message) -> bool:
        """True if the queue would exceed its limits with `message`, beside those that are not committed, the
        dead letters and the delayed messages.
        """
        group, dead_letters, delayed = self._group, self._dead_letters, self._delayed
        count, byte_count = self._ready.count, self._ready.byte_count + body_size_of(message)
        if group is not None:
            count += group.pending_count
            byte_count += group.pending_bytes
        if dead_letters.count:
            count += dead_letters.count
            byte_count += dead_letters.byte_count
        if delayed.count:
            count += delayed.count
            byte_count += delayed.byte_count
        return 0 <= self._length_max <= count or 0 <= self._bytes_max < byte_count
