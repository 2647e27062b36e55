"""A quorum queue that others than the clients of this node use, and that may lead after another replica.

enqueuer, number ─▶ publish_as ─▶ placed, or a repeat of what is placed or committed
what a node holds ─▶ claim ─▶ unacknowledged, as if this queue had delivered it
"""

from collections.abc import Callable

from warren.model.arguments import QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import PERSISTENT, Message, StoredMessage, stored_copy
from warren.model.message_position import RANK_SHIFT
from warren.queues.queue import ACCEPTED, REFUSED, Consumer, Delivery, QueueHost
from warren.queues.quorum.batch_codec import Enqueuer
from warren.queues.quorum.claims import Claims
from warren.queues.quorum.enqueuer_numbers import EnqueuerNumbers
from warren.queues.quorum.group import QuorumGroup
from warren.queues.quorum.holding_queue import HoldingQueue

# Added to ACCEPTED if a message is committed already.
REPEATED = 2
_ACCEPTED = ACCEPTED
_REFUSED = REFUSED
_REPEATED = REPEATED
_PERSISTENT = PERSISTENT
# A place in the group: the priority level and the position.
_LEVEL_SHIFT = 56
_POSITIONS = 0xFF_FFFF_FFFF_FFFF
# Of the place that a message has in the order of all levels.
_RANK_POSITIONS = (1 << RANK_SHIFT) - 1


class ClaimedQueue(HoldingQueue):
    """The base of a quorum queue, as the nodes see it that do not lead."""

    __slots__ = ("_group", "_numbers", "claims", "make_claims")

    def __init__(self, name: str, vhost_name: str, host: QueueHost, settings: QueueSettings) -> None:
        # None without a store: it is a queue in memory then.
        self._group: QuorumGroup | None = None
        # The numbers of what others have published to it; None if there is nothing.
        self._numbers: EnqueuerNumbers | None = None
        # What other nodes hold, of which they may not all have told yet; and who makes it as the queue begins
        # to lead, before anything is delivered.
        self.claims = Claims(self.add_consumer)
        self.make_claims: Callable[[ClaimedQueue], Claims] | None = None
        super().__init__(name, vhost_name, host, settings)

    def lead_anew(self) -> None:
        """Forget what was published to an earlier leader."""
        self._numbers = None

    def began(self) -> None:
        """Begin to lead."""
        if self.make_claims is not None:
            self.claims = self.make_claims(self)

    def publish_as(
        self,
        message: Message,
        confirmation: ConfirmListener,
        sequence: int,
        *,
        enqueuer: Enqueuer,
        number: int,
    ) -> int:
        """Propose `message`, which `enqueuer` has numbered; REFUSED as in `publish`, or if it is no leader.

        A number that is not higher than the last is a repeat: ACCEPTED with REPEATED if it is committed,
        otherwise `confirmation` is told when it is. ValueError if a number is left out.
        """
        group, proposals = self._group, self._proposals
        if group is None or proposals is None or not group.is_open:
            return _REFUSED
        numbers = self._numbers
        if numbers is None:
            numbers = self._numbers = EnqueuerNumbers(group.machine)
        is_own = enqueuer == proposals.enqueuer
        last = proposals.last_number if is_own else numbers.last(enqueuer)
        if number > last + 1:
            raise ValueError(f"message {number} of {enqueuer} follows {last}")
        if number <= last:
            if numbers.is_committed(enqueuer, number):
                return _ACCEPTED | _REPEATED
            proposals.confirm_last(confirmation, sequence)
            return _ACCEPTED
        if is_own:
            return self.publish(message, confirmation, sequence)
        self.published_count += 1
        if not self.is_dirty:
            self.mark_stats_dirty()
        if self._refuses and self.is_full_for(message):
            return _REFUSED
        stored: StoredMessage = message if message.flags & _PERSISTENT else stored_copy(message, _PERSISTENT)  # type: ignore[assignment]
        proposals.place_as(stored, self._level_of(message), enqueuer, number)
        numbers.placed(enqueuer, number)
        proposals.confirm_last(confirmation, sequence)
        return _ACCEPTED

    def last_number(self, enqueuer: Enqueuer) -> int:
        """The number of the last message of `enqueuer` that is committed or proposed."""
        group, proposals = self._group, self._proposals
        assert group is not None
        assert proposals is not None
        if enqueuer == proposals.enqueuer:
            return proposals.last_number
        if self._numbers is None:
            self._numbers = EnqueuerNumbers(group.machine)
        return self._numbers.last(enqueuer)

    def forget_runs_before(self, enqueuer: Enqueuer) -> None:
        """Forget the enqueuers of earlier runs of the node of `enqueuer`, which has begun to publish."""
        self.last_number(enqueuer)
        proposals, numbers = self._proposals, self._numbers
        if proposals is not None and numbers is not None:
            for each in numbers.before(enqueuer):
                numbers.forget(each)
                proposals.forget(each)

    def claim(self, place: int) -> Delivery | None:
        """Take the ready message at `place` of the group, which is handed out already; None if there is none.

        It does not count as another delivery.
        """
        group = self._group
        assert group is not None
        level, logical = place >> _LEVEL_SHIFT, place & _POSITIONS
        if logical >= group.machine.reach(level):
            return None
        delivery = self.take_restored(self._place(level, group.stored(level, logical)))
        if delivery is not None:
            state = group.machine.returned(level, logical)
            delivery.attempts, delivery.failures = state.total, state.failed
            self._count_unacked(delivery)
        return delivery

    def group_place(self, delivery: Delivery) -> int:
        """The place of `delivery` in the group, which is the same for all its members."""
        group: QuorumGroup = self._group  # type: ignore[assignment]
        level = self._level_of(delivery.message)
        return level << _LEVEL_SHIFT | group.log.logical(level, delivery.position)

    def lasting_place(self, place: int) -> int:
        """The place with the position in the group instead of the one in the store."""
        group, level = self._group, self._level_max - (place >> RANK_SHIFT)
        if group is None:
            return place
        return self._place(level, group.log.logical(level, place & _RANK_POSITIONS))

    def place_here(self, lasting: int) -> int:
        """The place of the message with the `lasting` place in the store of this node."""
        group, level = self._group, self._level_max - (lasting >> RANK_SHIFT)
        if group is None:
            return lasting
        return self._place(level, group.stored(level, lasting & _RANK_POSITIONS))

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call `callback` when what was settled and returned is committed; never if it is not, here."""
        if self._proposals is not None:
            self._proposals.when_settled(callback)

    async def admit(self, consumer: Consumer) -> None:
        """Raise an AmqpError if `consumer` cannot be added; waits for those that were attached before."""
        await self.claims.wait()
        await HoldingQueue.admit(self, consumer)

    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove `consumer`, also one that waits for the claims of others."""
        self.claims.discard(consumer)
        HoldingQueue.remove_consumer(self, consumer)

    # --- private ----------------------------------------------------------------------------------

    def _place(self, level: int, position: int) -> int:
        """The place of the message at `position` of `level`: higher levels come first."""
        return ((self._level_max - level) << RANK_SHIFT) + position
