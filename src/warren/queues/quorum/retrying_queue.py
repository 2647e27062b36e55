"""A classic queue to which messages may come back with a delay: the delayed retry of RabbitMQ 4.3.

    requeue ─ retried_at ─▶ delayed ─ the time, or that of its expiration ─▶ ready, at its place

Delayed messages are neither ready nor unacknowledged. They count towards the limits of the queue, expire, and
are purged, but a queue that drops its head drops ready ones only.
"""

from warren.model.arguments import DelayedRetry, QueueSettings
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Delivery, QueueHost
from warren.queues.queue_counts import QueueCounts
from warren.queues.quorum.delayed_messages import DelayedMessages


class RetryingQueue(ClassicQueue):
    """The base of a quorum queue, which decides when a message that came back is ready."""

    __slots__ = ("_delayed", "_retries_later")

    def __init__(self, name: str, vhost_name: str, host: QueueHost, settings: QueueSettings) -> None:
        # Messages that came back and are not ready yet, and whether there may be more of them.
        self._delayed = DelayedMessages()
        self._retries_later = False
        super().__init__(name, vhost_name, host, settings)

    def apply_settings(self, settings: QueueSettings) -> None:
        """Use `settings` from now on; messages that are delayed remain so."""
        if self._delayed.count and not (self._ready.count or self.unacked_count):
            self._keep_ttl(-1 if settings.message_ttl_ms is None else settings.message_ttl_ms)
        self._retries_later = settings.delayed_retry is not DelayedRetry.DISABLED
        ClassicQueue.apply_settings(self, settings)

    def counts(self) -> QueueCounts:
        """The numbers of its ready messages, of its consumers and of its delayed messages."""
        return QueueCounts(self._ready.count, self._consumers.count, self._delayed.count)

    def clear(self) -> int:
        """Drop the ready messages, and those that are delayed; returns their number."""
        delayed = self._delayed.clear()
        for delivery in delayed:
            self._ready.settled(delivery)
        if delayed:
            self.mark_stats_dirty()
        return ClassicQueue.clear(self) + len(delayed)

    def expire(self) -> None:
        """Make delayed messages ready, drop expired ones, and delete the queue if it was unused."""
        now = self._host.turn.now()
        if self.is_deleted or self._wake_when < 0 or now < self._wake_when:
            return
        due = self._delayed.take_due(now)
        for delivery in due:
            self._ready.push_back(delivery, self._ttl_ms)
        ClassicQueue.expire(self)
        if due:
            self._sole = None
            self.mark_stats_dirty()
            self.pump()

    # --- private ----------------------------------------------------------------------------------

    def retried_at(self, delivery: Delivery, has_failed: bool) -> int:
        """The time (ms) when `delivery`, which comes back, is ready again; 0 is at once."""
        if not self._retries_later or self.is_deleted:
            return 0
        delay_ms = self.settings.retry_delay_ms(delivery.failures, has_failed=has_failed)
        return self._host.turn.now() + delay_ms if delay_ms else 0

    def delay(self, delivery: Delivery, ready_at: int) -> None:
        """Have `delivery`, which came back, wait until `ready_at` (ms), or until it expires."""
        ready = self._ready
        deadline = ready.deadline_of(delivery.message, delivery.position, self._ttl_ms)
        when = deadline if 0 <= deadline < ready_at else ready_at
        self._delayed.add(when, ready.place_of(delivery), delivery)
        if self._length_max >= 0 or self._bytes_max >= 0:
            self._drop_overflow()
        self._wake_by(when)

    def _schedule(self) -> None:
        """Schedule a wake-up for the next delayed or expiring message, and for the expiry of the queue."""
        ClassicQueue._schedule(self)
        self._wake_by(self._delayed.due())

    def _forget_ttls(self) -> None:
        """Forget earlier times to live unless a delayed message may have one."""
        if not self._delayed.count:
            ClassicQueue._forget_ttls(self)

    def _drop_overflow(self) -> None:
        """Drop ready messages from the head until the limits hold with the delayed ones."""
        ready, delayed = self._ready, self._delayed
        if not delayed.count:
            ClassicQueue._drop_overflow(self)
            return
        while not self._refuses and ready.count and (
            0 <= self._length_max < ready.count + delayed.count
            or 0 <= self._bytes_max < ready.byte_count + delayed.byte_count
        ):  # fmt: skip
            self._host.work += 1
            self.mark_stats_dirty()
            self._dead_letter(ready.drop(), "maxlen")
        if self._has_kept_ttls:
            self._schedule()
