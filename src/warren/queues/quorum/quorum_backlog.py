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
from warren.store.cursor import QueueCursor
from warren.store.recovered_queue import RecoveredQueue
from warren.store.stores import Stores


class QuorumBacklog(DiskBacklog):
    """The backlog of one priority level of a quorum queue."""

    __slots__ = ("_attempts", "_group", "place_base", "reach")

    def __init__(self, stores: Stores, cursor: QueueCursor, group: QuorumGroup) -> None:
        super().__init__(stores, cursor)
        self._group = group
        # Position -> number of deliveries, of recovered messages that had come back.
        self._attempts: dict[int, int] = {}
        # The place of position 0 as long as the queue has no other levels; then they add it.
        self.place_base = 0
        # Messages before this position may be delivered.
        self.reach = group.reach(cursor.level)
        self._messages.start_at(group.end(cursor.level))

    @property
    def next_position(self) -> int:
        """The position of the first message that was never delivered, or of the next one that arrives."""
        return self._messages.base

    def is_deliverable(self) -> bool:
        """True if the message that `pop` would take may be delivered now. Only while `count` is not 0."""
        return self._messages.first_position() < self.reach

    def pop(self, queue: Queue) -> Delivery:
        """Take the first message out of `queue` for delivery. Only while `count` is not 0."""
        delivery = DiskBacklog.pop(self, queue)
        if self._attempts:
            delivery.attempts = self._attempts.pop(delivery.position, delivery.attempts)
        return delivery

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages from place `first` on, in delivery order."""
        base = self.place_base
        found = DiskBacklog.peek(self, max(first - base, 0), count)
        for peeked in found:
            if self._attempts:
                peeked.attempts = self._attempts.get(peeked.place, peeked.attempts)
            peeked.place += base
        return found

    def take(self, peeked: PeekedMessage, queue: Queue) -> Delivery | None:
        """Take the `peeked` message out of `queue`, wherever it is; None if it is not ready any more."""
        place = peeked.place - self.place_base
        delivery = DiskBacklog.take(self, PeekedMessage(place, peeked.message, peeked.attempts), queue)
        if delivery is not None and self._attempts:
            delivery.attempts = self._attempts.pop(delivery.position, delivery.attempts)
        return delivery

    def extent(self) -> list[range]:
        """The places of all messages that are ready now, as increasing ranges that exclude later messages."""
        base = self.place_base
        return [range(base + each.start, base + each.stop) for each in DiskBacklog.extent(self)]

    def place_of(self, delivery: Delivery) -> int:
        """The place that `delivery` was taken from."""
        return self.place_base + delivery.position

    def push_back(self, delivery: Delivery, ttl_ms: int) -> int:
        """Return `delivery` to its place; returns its deadline (ms), or -1."""
        self._group.returned(self._cursor.level, delivery.position, delivery.attempts)
        return DiskBacklog.push_back(self, delivery, ttl_ms)

    def restore(self, level: int, found: RecoveredQueue, ttl_ms: int) -> None:
        """Restore the messages that were `found`; the backlog must be new."""
        DiskBacklog.restore(self, level, found, ttl_ms)
        self.reach = self._group.reach(level)
        self._attempts = {
            position: state.total for position, state in self._group.returned_positions(level) if state.total
        }

    def forget(self) -> None:
        """Release everything; called when the queue was deleted and is empty."""
        self._stores.persistent.drop(self._cursor)

    # --- private ----------------------------------------------------------------------------------

    def keep_message(self, message: Message, position: int) -> None:
        # It is in the store already.
        self._persistent_count += 1
        self._persistent_bytes += body_size_of(message)

    def release_message(self, message: Message, position: int) -> None:
        stored: StoredMessage = message  # type: ignore[assignment]
        self._persistent_count -= 1
        # The place of a message without content is released by `settled`.
        self._persistent_bytes -= body_size_of(message)
        self._group.settle(stored, self._cursor, position)

    def finish_range(self, first: int, end: int) -> None:
        self._group.settle_range(self._cursor, first, end)

    def note_delivered(self, end: int) -> None:
        # The reach says so already.
        pass

    def discard_index(self, index: PagedIndex) -> None:
        self._group.when_committed(lambda: self._stores.discard(index))
