"""The ready messages of a quorum queue, or of one of its priority levels.

It is a `DiskBacklog` whose messages are in the store before they arrive, and whose decisions go to the group:
a message that leaves is released in the store when the group has committed that. Messages are delivered only
below the reach, a position that is agreed on ahead, so that whoever leads next knows what may have been
delivered.
"""

from warren.model.message import Message, StoredMessage, body_size_of
from warren.queues.disk_backlog import DiskBacklog
from warren.queues.paged_index import PagedIndex
from warren.queues.queue import Delivery, PeekedMessage, Queue
from warren.queues.quorum.group import QuorumGroup
from warren.queues.quorum.returned_messages import ReturnState
from warren.store.cursor import QueueCursor
from warren.store.recovered_queue import RecoveredQueue
from warren.store.stores import Stores


class QuorumBacklog(DiskBacklog):
    """The backlog of one priority level of a quorum queue."""

    __slots__ = ("_group", "_proposals", "_returned", "place_base", "reach")

    def __init__(self, stores: Stores, cursor: QueueCursor, group: QuorumGroup) -> None:
        super().__init__(stores, cursor)
        self._group = group
        self._proposals = group.proposals
        # Position -> what is known of a recovered message that had come back, until it is delivered.
        self._returned: dict[int, ReturnState] = {}
        # The place of position 0 as long as the queue has no other levels; then they add it.
        self.place_base = 0
        # Messages before this position may be delivered.
        self.reach = group.reach(cursor.level)
        self._messages.start_at(group.end(cursor.level))

    @property
    def next_position(self) -> int:
        """The position of the first message that was never delivered, or of the next one that arrives.

        What an earlier leader may have delivered counts, although it is ready again.
        """
        return max(self._messages.base, self._redelivered_below)

    def is_deliverable(self) -> bool:
        """True if the message that `pop` would take may be delivered now. Only while `count` is not 0."""
        return self._messages.first_position() < self.reach

    def pop(self, queue: Queue) -> Delivery:
        """Take the first message out of `queue` for delivery. Only while `count` is not 0."""
        delivery = DiskBacklog.pop(self, queue)
        if self._returned:
            self._count_attempts(delivery)
        return delivery

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages from place `first` on, in delivery order."""
        base = self.place_base
        found = DiskBacklog.peek(self, max(first - base, 0), count)
        for peeked in found:
            state = self._returned.get(peeked.place)
            if state is not None:
                peeked.attempts = state.total
            peeked.place += base
        return found

    def take(self, peeked: PeekedMessage, queue: Queue) -> Delivery | None:
        """Take the `peeked` message out of `queue`, wherever it is; None if it is not ready any more."""
        place = peeked.place - self.place_base
        delivery = DiskBacklog.take(self, PeekedMessage(place, peeked.message, peeked.attempts), queue)
        if self._returned and delivery is not None:
            self._count_attempts(delivery)
        return delivery

    def extent(self) -> list[range]:
        """The places of all messages that are ready now, as increasing ranges that exclude later messages."""
        base = self.place_base
        return [range(base + each.start, base + each.stop) for each in DiskBacklog.extent(self)]

    def place_of(self, delivery: Delivery) -> int:
        """The place that `delivery` was taken from."""
        return self.place_base + delivery.position

    def expired_place(self, now: int, ttl_ms: int) -> int:
        """The place of one message that has expired at `now` (ms), which the caller removes; -1 if there is
        none.
        """
        position = self._messages.expired_place(now, ttl_ms)
        return position if position < 0 else self.place_base + position

    def restore(self, level: int, found: RecoveredQueue, ttl_ms: int) -> None:
        """Restore the messages that were `found`; the backlog must be new."""
        DiskBacklog.restore(self, level, found, ttl_ms)
        self.reach = self._group.reach(level)
        self._returned = {
            position: state for position, state in self._group.returned_positions(level) if state.total
        }

    def forget(self) -> None:
        """Release everything; called when the queue was deleted and is empty."""
        self._stores.persistent.drop(self._cursor)

    def abandon(self) -> None:
        """Forget all messages, which remain with the replica, since another one leads."""
        self._messages.clear()
        self._returned = {}
        self.count = self.byte_count = 0

    # --- private ----------------------------------------------------------------------------------

    def _count_attempts(self, delivery: Delivery) -> None:
        """Set the attempts of `delivery` to what is known of it since before the start, if that is new."""
        state = self._returned.pop(delivery.position, None)
        if state is not None:
            delivery.attempts = state.total
            delivery.failures = state.failed

    def keep_message(self, message: Message, position: int) -> None:
        # It is in the store already.
        self._persistent_count += 1
        self._persistent_bytes += body_size_of(message)

    def release_message(self, message: Message, position: int) -> None:
        stored: StoredMessage = message  # type: ignore[assignment]
        self._persistent_count -= 1
        # The place of a message without content is released by `settled`.
        self._persistent_bytes -= body_size_of(message)
        self._proposals.settle(stored, self._cursor, position)

    def finish_range(self, first: int, end: int, byte_count: int) -> None:
        self._proposals.settle_range(self._cursor, first, end, byte_count)

    def note_delivered(self, end: int) -> None:
        # The reach says so already.
        pass

    def discard_index(self, index: PagedIndex) -> None:
        self._proposals.when_committed(lambda: self._stores.discard(index))
