"""The classic queue: ready messages, consumers and limits.

Invariants:

- While a message is ready, no consumer is ready (`pump` ends when one or the other is used up), so that a
  message published to an empty queue goes directly to a ready consumer. While the queue is paused, no
  consumer counts as ready.
- `_sole`, if it is not None, is the only consumer and ready, and no message is ready. Most queues have one
  consumer, and a publish to many queues in turn then touches few memory locations.
"""

from collections.abc import Callable, Iterator

from warren.errors import AccessRefused
from warren.model.arguments import Overflow, QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import HAS_EXPIRATION, PERSISTENT, Message, body_size_of
from warren.queues.backlog import Backlog
from warren.queues.consumers import ConsumerSet
from warren.queues.demand_listener import DemandListener
from warren.queues.disk_backlog import DiskBacklog
from warren.queues.message_backlog import MessageBacklog
from warren.queues.position_starts import PositionStarts
from warren.queues.priority_backlog import PriorityBacklog
from warren.queues.queue import ACCEPTED, NACKED, REFUSED, Consumer, Delivery, PeekedMessage, QueueHost
from warren.queues.taking_queue import TakingQueue
from warren.queues.ttl_changes import TtlChanges, TtlRecord
from warren.queues.unacked_pager import UnackedPager
from warren.store.recovered_queue import RecoveredQueue
from warren.store.stores import Stores

_ACCEPTED = ACCEPTED
_REFUSED = REFUSED
_HAS_EXPIRATION = HAS_EXPIRATION
_PERSISTENT = PERSISTENT
_NONE = -1


class ClassicQueue(TakingQueue):
    """A queue whose messages are on this node."""

    __slots__ = (
        "_attempts_max",
        "_bytes_max",
        "_consumers",
        "_expires_ms",
        "_has_kept_ttls",
        "_length_max",
        "_position_starts",
        "_ready",
        "_refuses",
        "_sole",
        "_ttl_ms",
        "_ttl_record",
        "_unacked_pager",
        "_wake_when",
    )  # fmt: skip

    def __init__(self, name: str, vhost_name: str, host: QueueHost, settings: QueueSettings) -> None:
        super().__init__(name, vhost_name, host, settings)
        # The earliest time for which the host was asked to wake this queue; _NONE if there is none.
        self._wake_when = _NONE
        self._consumers = ConsumerSet(is_single_active=settings.single_active_consumer)
        self._sole: Consumer | None = None
        self._ready = self._new_backlog(lambda _: MessageBacklog())
        # None if none of its messages is stored on disk.
        self._unacked_pager: UnackedPager | None = None
        self._ttl_ms = _NONE
        # True while messages may have another time to live than new ones.
        self._has_kept_ttls = False
        self._ttl_record: TtlRecord | None = None
        # None until a consumer asks for positions.
        self._position_starts: PositionStarts | None = None
        self.apply_settings(settings)

    def apply_settings(self, settings: QueueSettings) -> None:
        """Use `settings` from now on: the declared arguments merged with the policies that match."""
        self.settings = settings
        if self._ready.count or self.unacked_count:
            self._keep_ttl(_NONE if settings.message_ttl_ms is None else settings.message_ttl_ms)
        self._ttl_ms = _NONE if settings.message_ttl_ms is None else settings.message_ttl_ms
        self._expires_ms = _NONE if settings.expires_ms is None else settings.expires_ms
        self._length_max = _NONE if settings.length_max is None else settings.length_max
        self._bytes_max = _NONE if settings.length_bytes_max is None else settings.length_bytes_max
        self._attempts_max = _NONE if settings.delivery_limit is None else settings.delivery_limit
        self._refuses = settings.overflow is not Overflow.DROP_HEAD
        self._drop_overflow()
        self._wake_when = _NONE
        self._schedule()

    def attach_store(self, stores: Stores, number: int) -> None:
        """Page messages of this empty queue to `stores`; `number` is 0 unless persistent ones are stored."""
        if number:
            self._ttl_record = TtlRecord(stores.persistent, number)
        kept_ttls: dict[int, TtlChanges] = {}
        for level, end, ttl_ms in self._ttl_record.read() if self._ttl_record is not None else ():
            self._has_kept_ttls = True
            kept_ttls.setdefault(level, TtlChanges()).add(end, ttl_ms)

        def make_level(level: int) -> DiskBacklog:
            cursor = stores.persistent.cursor(number, level) if number else None
            return DiskBacklog(stores, cursor, kept_ttls.pop(level, None))

        self._ready = self._new_backlog(make_level)
        self._unacked_pager = UnackedPager(stores) if number else None

    def restore(self, level: int, found: RecoveredQueue) -> None:
        """Restore the messages of priority `level` that a store has `found`."""
        self._ready.restore(level, found, self._ttl_ms)
        if not self.is_dirty:
            self.mark_stats_dirty()
        self._schedule()

    def shrink(self) -> None:
        """Page out messages that exceed the memory limit of a queue."""
        self._ready.shrink()

    @property
    def paged_count(self) -> int:
        """The number of ready messages that are only on disk."""
        return self._ready.paged_count()

    @property
    def persistent_count(self) -> int:
        """The number of messages that would survive a restart, ready or unacknowledged."""
        return self._ready.persistent_count()

    @property
    def persistent_bytes(self) -> int:
        """The size in bytes of the bodies that would survive a restart."""
        return self._ready.persistent_bytes()

    @property
    def head_timestamp(self) -> int | None:
        """The property `timestamp` of the first ready message; None if it has none."""
        if not self._ready.count:
            return None
        return self._ready.first().properties().timestamp

    @property
    def oldest_ready_at(self) -> int | None:
        """When the oldest ready message was published (Unix time, ms); None without one."""
        return self._ready.oldest()

    @property
    def ready_by_priority(self) -> dict[int, int] | None:
        """The number of ready messages of each priority that has any; None without priorities."""
        return self._ready.counts_by_priority()

    @property
    def active_consumer(self) -> Consumer | None:
        """The active consumer, if the queue has single active consumer; else None."""
        return self._consumers.active

    @property
    def is_paused(self) -> bool:
        """True while deliveries are paused; messages are accepted all the same."""
        return self._consumers.is_paused

    @property
    def message_count(self) -> int:
        """The number of ready messages."""
        return self._ready.count

    @property
    def ready_bytes(self) -> int:
        """The size in bytes of the bodies of the ready messages."""
        return self._ready.byte_count

    @property
    def consumer_count(self) -> int:
        """The number of consumers."""
        return self._consumers.count

    @property
    def is_empty(self) -> bool:
        """True if no message is ready."""
        return not self._ready.count

    @property
    def is_due_for_deletion(self) -> bool:
        """True if it has auto-delete, has had consumers, and has none now."""
        if self._consumers.count:
            return False
        is_expired = self._expires_ms >= 0 and self.used_at + self._expires_ms <= self._host.turn.now()
        return self.is_auto_delete or is_expired

    def consumers(self) -> Iterator[Consumer]:
        """Its consumers, oldest first."""
        return iter(self._consumers)

    def listen_to_demand(self, listener: DemandListener | None) -> ConsumerSet:
        """Tell `listener` when its demand may have changed; returns its consumers."""
        self.demand_listener = self._consumers.demand_listener = listener
        return self._consumers

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Deliver or enqueue `message`; REFUSED if the queue is full and rejects publishes."""
        self.published_count += 1
        if not self.is_dirty:
            self.mark_stats_dirty()
        if self._refuses and self.is_full_for(message):
            settings = self.settings
            # If there is no dead-letter exchange the message is not lost: its publisher is told.
            is_dead = settings.overflow is Overflow.REJECT_PUBLISH_DLX
            if is_dead and settings.dead_letter_exchange is not None:
                self._host.dead_letter(self, message, "maxlen")
            return _REFUSED
        consumer = self._sole
        if consumer is None or not consumer.is_ready():
            consumer = self._next_consumer()
        if consumer is None:
            self._enqueue(message)
        elif consumer.no_ack:
            self.delivered_no_ack_count += 1
            consumer.deliver_message(message, False)
            return _ACCEPTED
        else:
            self._deliver(consumer, self._ready.push_delivered(message, self))
        if confirmation is not None and message.flags & _PERSISTENT:
            self._ready.confirm(confirmation, sequence)
        return _ACCEPTED

    def _next_consumer(self) -> Consumer | None:
        """The consumer for a message that is published now; None if the message has to wait."""
        consumer = None
        if not self._ready.count and self._consumers.count:
            consumer = self._consumers.next()
        self._sole = consumer if self._consumers.count == 1 else None
        return consumer

    def _enqueue(self, message: Message) -> None:
        """Add `message` to the ready messages."""
        ready = self._ready
        if self._has_kept_ttls and not ready.count and not self.unacked_count:
            self._forget_ttls()
        ready.push(message)
        if self._ttl_ms >= 0 or message.flags & _HAS_EXPIRATION:
            self._wake_by(ready.push_deadline(message, self._ttl_ms))
        if self._length_max >= 0 or self._bytes_max >= 0:
            self._drop_overflow()

    def pump(self) -> None:
        """Deliver ready messages to ready consumers."""
        ready = self._ready
        self._sole = None
        if self._wake_when >= 0 and self._wake_when <= self._host.turn.now():
            self.expire()
        while ready.count and ready.is_deliverable():
            if self._has_kept_ttls and self._has_expired():
                continue
            consumer = self._consumers.next()
            if consumer is None:
                return
            if consumer.no_ack and ready.is_fresh():
                self.delivered_no_ack_count += 1
                if not self.is_dirty:
                    self.mark_stats_dirty()
                consumer.deliver_message(ready.pop_message(), False)
            else:
                self._deliver(consumer, ready.pop(self))

    def get(self, no_ack: bool = False) -> Delivery | None:
        """Take the first ready message for basic.get; None if none is ready."""
        self.used_at = self._host.turn.now()
        if not self.is_dirty:
            self.mark_stats_dirty()
        if self._wake_when >= 0 and self._wake_when <= self._host.turn.now():
            self.expire()
        if self._has_kept_ttls:
            self._has_expired()
        if not self._ready.count or self._consumers.is_paused:
            self.got_empty_count += 1
            return None
        delivery = self._ready.pop(self)
        if self._has_kept_ttls:
            self._schedule()
        if delivery.attempts:
            self.redelivered_count += 1
        if no_ack:
            self.got_no_ack_count += 1
            self._ready.settled(delivery)
            return delivery
        self.got_count += 1
        self._count_unacked(delivery)
        unacked_pager = self._unacked_pager
        if unacked_pager is not None and self.unacked_bytes > unacked_pager.stores.queue_memory_max:
            unacked_pager.add(delivery)
        return delivery

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` ready messages from place `first` on, with bodies; may raise ConnectionForced."""
        return self._ready.peek(first, count)

    def extent(self) -> list[range]:
        """The places of all messages that are ready now, as increasing ranges that exclude later messages."""
        return self._ready.extent()

    def last_place(self, message: Message) -> int:
        """The place of `message`, which was the last one published to the queue."""
        return self._ready.last_place(message)

    def take(self, peeked: PeekedMessage) -> Delivery | None:
        """Take the `peeked` message out of the queue for a move; None if it is not ready any more."""
        delivery = self._ready.take(peeked, self)
        if delivery is not None:
            self._count_unacked(delivery)
            if self._has_kept_ttls:
                self._schedule()
        return delivery

    def take_unacked(self, peeked: PeekedMessage) -> Delivery | None:
        """Take the `peeked` message as unacknowledged; None if it is not ready any more."""
        delivery = self.take(peeked)
        unacked_pager = self._unacked_pager
        if unacked_pager is not None and delivery is not None:
            if self.unacked_bytes > unacked_pager.stores.queue_memory_max:
                unacked_pager.add(delivery)
            unacked_pager.shrink()
        return delivery

    def drop_bodies(self) -> None:
        """Drop bodies of unacknowledged messages that are on disk, as far as they exceed the memory limit."""
        if self._unacked_pager is not None:
            self._unacked_pager.shrink()

    def starts(self) -> PositionStarts | None:
        """The starts that have given positions of this queue; None if nobody has asked for positions."""
        return self._position_starts

    def give_positions(self, starts: PositionStarts) -> None:
        """Give positions away from now on, which are complete with `starts`."""
        self._position_starts = starts

    def place_of(self, delivery: Delivery) -> int:
        """The place of `delivery`, to which it would return; the places are those of `peek`."""
        return self._ready.place_of(delivery)

    def release(self, delivery: Delivery) -> None:
        """Settle `delivery`, which `take` returned and which is stored elsewhere now."""
        self._uncount_unacked(delivery)
        self._ready.settled(delivery)

    def give_back(self, delivery: Delivery) -> None:
        """Return `delivery`, which `take` returned, to its place; `pump` makes it available to consumers."""
        self._uncount_unacked(delivery)
        self._put_back(delivery)

    def refuses(self, message: Message) -> bool:
        """True if the queue is full for `message` and rejects publishes."""
        return self._refuses and self.is_full_for(message)

    def whole(self, delivery: Delivery) -> Message:
        """The message of `delivery` with its body. ConnectionForced if it cannot be read."""
        return self._ready.whole(delivery.message)

    def body(self, delivery: Delivery) -> bytes:
        """The body of the message of `delivery`. ConnectionForced if it cannot be read."""
        return self._ready.body(delivery.message)

    def acknowledge(self, delivery: Delivery) -> None:
        """Settle `delivery`."""
        self.acknowledged_count += 1
        self._uncount_unacked(delivery)
        self._ready.settled(delivery)

    def requeue(self, delivery: Delivery, reason: int = NACKED) -> None:
        """Return `delivery` to its place, or dead-letter it if it exceeds the delivery limit."""
        self._uncount_unacked(delivery)
        delivery.attempts += 1
        delivery.consumer = None
        if self._attempts_max >= 0 and delivery.attempts > self._attempts_max and not self.is_deleted:
            self._dead_letter_delivery(delivery, "delivery_limit")
        else:
            self._put_back(delivery)

    def reject(self, delivery: Delivery) -> None:
        """Dead-letter or drop `delivery`, which was rejected."""
        self._uncount_unacked(delivery)
        self._dead_letter_delivery(delivery, "rejected")

    def check_consumer(self, consumer: Consumer) -> None:
        """AccessRefused if `consumer` cannot be added because it, or an existing consumer, is exclusive."""
        is_alone = not self._consumers.count and not self._consumers.is_single_active
        if self._consumers.has_exclusive() or (consumer.is_exclusive and not is_alone):
            raise AccessRefused(f"queue '{self.name}' in vhost '{self.vhost_name}' in exclusive use")

    def add_consumer(self, consumer: Consumer) -> None:
        """Add `consumer`, which was admitted."""
        self._consumers.add(consumer)
        self._host.consumer_count += 1
        self.pump()

    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove `consumer`; its unacknowledged messages stay with its channel. May auto-delete the queue."""
        if not self._consumers.remove(consumer):
            return
        self._host.consumer_count -= 1
        self._sole = None
        self.used_at = self._host.turn.now()
        if self._consumers.count:
            return
        if self.is_auto_delete:
            self._host.delete_queue(self)
        else:
            self._schedule()

    def consumer_ready(self, consumer: Consumer) -> None:
        """Unpark `consumer`, which can take messages again, and deliver ready messages."""
        if self._consumers.unpark(consumer) and self._ready.count:
            self.pump()

    def unpark(self, consumer: Consumer) -> None:
        """Unpark `consumer`; `pump` delivers ready messages."""
        self._consumers.unpark(consumer)

    def pause(self) -> None:
        """Pause deliveries to consumers and basic.get until `resume`."""
        self._sole = None
        self._consumers.pause(True)

    def resume(self) -> None:
        """Resume deliveries."""
        self._consumers.pause(False)
        self.pump()

    def clear(self) -> int:
        """Drop the ready messages; returns their number."""
        count = self._ready.count
        if count and not self.is_dirty:
            self.mark_stats_dirty()
        self._ready.clear()
        return count

    def delete(self) -> int:
        """Delete the queue: cancel its consumers and drop its messages.

        Returns the number of ready messages.
        """
        self.is_deleted = True
        self._sole = None
        self._host.wake_at(self, _NONE)
        for consumer in self._consumers:
            self._consumers.remove(consumer)
            self._host.consumer_count -= 1
            consumer.cancelled()
        count = self.clear()
        self._ready.forget()
        if self._ttl_record is not None:
            self._ttl_record.forget()
        self._host.dirty.pop(self, None)
        return count

    def expire(self) -> None:
        """Drop expired messages, and delete the queue if it was unused for the time of x-expires."""
        now = self._host.turn.now()
        if self.is_deleted or self._wake_when < 0 or now < self._wake_when:
            return
        self._wake_when = _NONE
        self._drop_expired(now)
        if self._has_kept_ttls and not self._ready.count and not self.unacked_count:
            self._forget_ttls()
        if self._expires_ms >= 0 and self.is_unused and self.used_at + self._expires_ms <= now:
            self._host.delete_queue(self)
        else:
            self._schedule()

    def _drop_expired(self, now: int) -> None:
        """Dead-letter or drop all messages that have expired at `now` (ms)."""
        while (message := self._ready.pop_expired(now, self._ttl_ms)) is not None:
            if not self.is_dirty:
                self.mark_stats_dirty()
            self._dead_letter(message, "expired")

    def _keep_ttl(self, ttl_ms: int) -> None:
        """Keep the time to live of present messages if that of new ones, `ttl_ms`, differs."""
        if ttl_ms != self._ttl_ms:
            self._has_kept_ttls = True
            self._ready.keep_ttl(self._ttl_ms)
            if self._ttl_record is not None:
                self._ttl_record.write(self._ready.kept_ttls())

    def _forget_ttls(self) -> None:
        """Forget earlier times to live, since no message has them any more."""
        self._has_kept_ttls = False
        self._ready.forget_ttls()
        if self._ttl_record is not None:
            self._ttl_record.write([])

    def _has_expired(self) -> bool:
        """True if expired messages were dropped at the head; those behind may expire earlier."""
        count = self._ready.count
        self._wake_when = self._host.turn.now()
        self.expire()
        return self._ready.count != count

    def _new_backlog(self, make_level: Callable[[int], Backlog]) -> Backlog:
        priority_max = self.settings.priority_max
        return make_level(0) if priority_max is None else PriorityBacklog(priority_max, make_level)

    def _deliver(self, consumer: Consumer, delivery: Delivery) -> None:
        if delivery.attempts:
            self.redelivered_count += 1
        if consumer.no_ack:
            self.delivered_no_ack_count += 1
            if not self.is_dirty:
                self.mark_stats_dirty()
            message = self.outgoing(delivery) if delivery.attempts else delivery.message
            consumer.deliver_message(message, delivery.attempts > 0)
            self._ready.settled(delivery)
            return
        self.delivered_count += 1
        self._count_unacked(delivery)
        delivery.consumer = consumer
        consumer.deliver(delivery)
        unacked_pager = self._unacked_pager
        if unacked_pager is not None and self.unacked_bytes > unacked_pager.stores.queue_memory_max:
            unacked_pager.add(delivery)
            unacked_pager.shrink()

    def _put_back(self, delivery: Delivery) -> None:
        self._sole = None
        if self.is_deleted:
            self._ready.settled(delivery)
            return
        deadline = self._ready.push_back(delivery, self._ttl_ms)
        if deadline >= 0:
            self._wake_by(deadline)
        if self._length_max >= 0 or self._bytes_max >= 0:
            self._drop_overflow()

    def _count_unacked(self, delivery: Delivery) -> None:
        self.unacked_count += 1
        self.unacked_bytes += delivery.byte_count
        if not self.is_dirty:
            self.mark_stats_dirty()

    def _uncount_unacked(self, delivery: Delivery) -> None:
        self.unacked_count -= 1
        self.unacked_bytes -= delivery.byte_count
        if not self.is_dirty:
            self.mark_stats_dirty()

    def is_full_for(self, message: Message) -> bool:
        """True if the queue would exceed its limits with `message`."""
        ready = self._ready
        if self._length_max >= 0 and ready.count >= self._length_max:
            return True
        return self._bytes_max >= 0 and ready.byte_count + body_size_of(message) > self._bytes_max

    def _drop_overflow(self) -> None:
        """Drop messages from the head until the limits hold (x-overflow: drop-head)."""
        ready = self._ready
        if self._refuses:
            return
        while ready.count and (
            (self._length_max >= 0 and ready.count > self._length_max)
            or (self._bytes_max >= 0 and ready.byte_count > self._bytes_max)
        ):
            self._host.work += 1
            if not self.is_dirty:
                self.mark_stats_dirty()
            self._dead_letter(ready.drop(), "maxlen")
        if self._has_kept_ttls:
            self._schedule()

    def _dead_letter(self, message: Message, reason: str) -> None:
        if self.settings.dead_letter_exchange is not None:
            self._host.dead_letter(self, message, reason)
        else:
            self._host.count_discarded(self, reason)

    def _dead_letter_delivery(self, delivery: Delivery, reason: str) -> None:
        """Dead-letter or drop `delivery` for `reason`."""
        if not self.is_deleted:
            if self.settings.dead_letter_exchange is not None:
                self._host.dead_letter(self, self._ready.whole(delivery.message), reason)
            else:
                self._host.count_discarded(self, reason)
        self._ready.settled(delivery)

    def _wake_by(self, when: int) -> None:
        """Schedule a wake-up at `when` (ms) or earlier."""
        if when < 0 or (self._wake_when >= 0 and self._wake_when <= when):
            return
        self._wake_when = when
        if when <= self._host.turn.now():
            self.expire()
        else:
            self._host.wake_at(self, when)

    def _schedule(self) -> None:
        """Schedule a wake-up for the next expiring message and for the expiry of the queue."""
        when = self._ready.deadline(self._ttl_ms)
        if self._expires_ms >= 0 and self.is_unused:
            unused_until = self.used_at + self._expires_ms
            when = unused_until if when < 0 or unused_until < when else when
        if when >= 0:
            self._wake_when = when
            self._host.wake_at(self, when)
