"""A queue that holds messages which are in it and not ready: dead letters that are kept, and a quarantine.

dies ─▶ kept until all targets of its dead letter have confirmed it ─▶ settled
exceeds the delivery limit, without a dead-letter exchange ─▶ quarantined ─▶ released or removed
"""

from warren.model.arguments import QueueSettings
from warren.model.message import Message, body_size_of
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Delivery, PeekedMessage, Queue, QueueHost
from warren.queues.quorum.batch_codec import HoldReason
from warren.queues.quorum.group_proposals import GroupProposals
from warren.queues.quorum.kept_dead_letters import KeptDeadLetters
from warren.queues.quorum.quarantined_messages import QuarantinedMessages
from warren.queues.quorum.retrying_queue import RetryingQueue

# Why a message died -> why it is held, and the other way round.
_HOLDS = {
    "rejected": HoldReason.REJECTED,
    "expired": HoldReason.EXPIRED,
    "delivery_limit": HoldReason.DELIVERY_LIMIT,
}
_REASONS = {hold: reason for reason, hold in _HOLDS.items()}


class HoldingQueue(RetryingQueue):
    """The base of a quorum queue, which holds messages."""

    __slots__ = ("_dead_letters", "_level_max", "_proposals", "_quarantine")

    def __init__(self, name: str, vhost_name: str, host: QueueHost, settings: QueueSettings) -> None:
        # What it proposes to its group; None without a store: it is a queue in memory then.
        self._proposals: GroupProposals | None = None
        self._quarantine = QuarantinedMessages()
        # The highest priority level.
        self._level_max = settings.priority_max or 0
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
        """Make the quarantined message at `place` ready; False if there is none, or if the queue is full
        without it.

        It may be delivered as often again as the delivery limit says, and is marked as redelivered. `pump`
        makes it available to consumers.
        """
        delivery = self._quarantine.get(place)
        if delivery is None or (self._refuses and self._is_full_with(delivery.byte_count, 0, 0)):
            return False
        self._quarantine.take(place)
        # It was delivered before, so that it does not begin with none.
        delivery.attempts, delivery.failures = 1, 0
        if self._proposals is not None:
            level = self._level_of(delivery.message)
            self._proposals.returned(level, delivery, 0)
            self._proposals.hold(level, delivery.position, HoldReason.NONE)
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

    # --- private ----------------------------------------------------------------------------------

    def abandon_held(self) -> None:
        """Forget what is held or delayed, which remains with the replica, since another one leads."""
        if self._dead_letters.count:
            self._dead_letters.clear()
        self._delayed.clear()
        self._quarantine = QuarantinedMessages()

    def take_held(self, place: int, hold: HoldReason) -> None:
        """Take the recovered message at `place`, which is held, out of the ready messages."""
        delivery = self.take_restored(place)
        if delivery is None:
            return
        if hold is HoldReason.QUARANTINED:
            self._quarantine.add(place, delivery)
        else:
            self._dead_letters.restore(delivery, _REASONS[hold])

    def take_restored(self, place: int) -> Delivery | None:
        """Take the ready message at `place`; None if there is none."""
        found = self._ready.peek(place, 1)
        return self._ready.take(found[0], self) if found and found[0].place == place else None

    def is_full_for(self, message: Message) -> bool:
        """True if the queue would exceed its limits with `message`, beside those that are not committed, the
        dead letters, the delayed and the quarantined messages.
        """
        quarantine = self._quarantine
        return self._is_full_with(body_size_of(message), quarantine.count, quarantine.byte_count)

    def _is_full_with(self, byte_count: int, quarantined_count: int, quarantined_bytes: int) -> bool:
        """True if the queue would exceed its limits with a body of this size, with so much in quarantine."""
        proposals, dead_letters, delayed = self._proposals, self._dead_letters, self._delayed
        count = quarantined_count + self._ready.count + dead_letters.count + delayed.count
        byte_count += quarantined_bytes + self._ready.byte_count
        byte_count += dead_letters.byte_count + delayed.byte_count
        if proposals is not None:
            count += proposals.pending_count
            byte_count += proposals.pending_bytes
        return 0 <= self._length_max <= count or 0 <= self._bytes_max < byte_count

    def _drop_overflow(self) -> None:
        """Drop quarantined messages, the oldest first, and then ready ones, until the limits hold."""
        ready, delayed, quarantine = self._ready, self._delayed, self._quarantine
        while not self._refuses and quarantine.count and (
            0 <= self._length_max < ready.count + delayed.count + quarantine.count
            or 0 <= self._bytes_max < ready.byte_count + delayed.byte_count + quarantine.byte_count
        ):  # fmt: skip
            self._host.work += 1
            self.mark_stats_dirty()
            self._dead_letter_delivery(quarantine.take_oldest(), "maxlen")
        RetryingQueue._drop_overflow(self)

    def quarantine(self, delivery: Delivery) -> None:
        """Put `delivery`, which has exceeded the delivery limit, into quarantine."""
        if self._proposals is not None:
            self._proposals.hold(self._level_of(delivery.message), delivery.position, HoldReason.QUARANTINED)
        self._quarantine.add(self._ready.place_of(delivery), delivery)
        if self._length_max >= 0 or self._bytes_max >= 0:
            self._drop_overflow()

    def _dead_letter_delivery(self, delivery: Delivery, reason: str) -> None:
        """Keep `delivery`, which has died for `reason`, as a dead letter, or dead-letter or drop it."""
        if self.settings.keeps_dead_letters and not self.is_deleted:
            self._keep_dead(delivery, reason)
        else:
            ClassicQueue._dead_letter_delivery(self, delivery, reason)

    def _keep_dead(self, delivery: Delivery, reason: str) -> None:
        """Keep `delivery` until all targets of its dead letter have confirmed it."""
        proposals, dead_letters = self._proposals, self._dead_letters
        kept = self._host.kept_counts
        kept[reason] = kept.get(reason, 0) + 1
        delivery.consumer = None
        dead_letters.add(delivery, reason)
        if proposals is None:
            dead_letters.wake()
        else:
            proposals.hold(self._level_of(delivery.message), delivery.position, _HOLDS[reason])
            proposals.when_committed(dead_letters.agreed)

    def _drop_expired(self, now: int) -> None:
        """Keep all messages that have expired at `now` (ms) as dead letters, or dead-letter or drop them."""
        if not self.settings.keeps_dead_letters:
            ClassicQueue._drop_expired(self, now)
            return
        while (place := self._ready.expired_place(now, self._ttl_ms)) >= 0:
            delivery = self.take_restored(place)
            if delivery is None:
                # It cannot be read, which was reported.
                return
            self.mark_stats_dirty()
            self._keep_dead(delivery, "expired")

    def _level_of(self, message: Message) -> int:
        """The priority level of `message` in this queue."""
        level = message.priority
        return level if level <= self._level_max else self._level_max
