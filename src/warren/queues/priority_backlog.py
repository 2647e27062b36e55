"""Ready messages by priority: a backlog for each level in use.

The highest level is delivered first.
"""

from collections.abc import Callable

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message, body_size_of
from warren.queues.backlog import Backlog
from warren.queues.queue import Delivery, PeekedMessage, Queue
from warren.queues.ttl_changes import LevelChange
from warren.store.recovered_queue import RecoveredQueue

# A place is a position, prefixed by the number of levels that are delivered before.
_RANK_SHIFT = 48


class PriorityBacklog(Backlog):
    """The backlog of a queue with priorities: ordered by priority, then by position."""

    __slots__ = ("_expiring", "_highest", "_levels", "_make_level", "_priority_max")

    def __init__(self, priority_max: int, make_level: Callable[[int], Backlog]) -> None:
        super().__init__()
        self._make_level = make_level
        self._priority_max = priority_max
        self._levels: list[Backlog | None] = [None] * (priority_max + 1)
        # No message waits above this level.
        self._highest = 0
        # The level where the last expired message was found: there may be more of them.
        self._expiring = 0

    def adopt(self, backlog: Backlog) -> None:
        """Have `backlog`, which another queue of messages was until now, as level 0; only while it is new."""
        self._levels[0] = backlog
        self.count = backlog.count
        self.byte_count = backlog.byte_count

    def push_delivered(self, message: Message, queue: Queue) -> Delivery:
        """Take `message` directly out of `queue` without enqueueing it; only while no message is ready."""
        return self._level(message).push_delivered(message, queue)

    def push(self, message: Message) -> None:
        """Append `message` to the messages of its priority."""
        self._level(message).push(message)
        self._count(message, 1)

    def push_deadline(self, message: Message, ttl_ms: int) -> int:
        """The deadline (ms) of `message`, which was just pushed; -1 means none."""
        return self._level(message).push_deadline(message, ttl_ms)

    def push_back(self, delivery: Delivery, ttl_ms: int) -> int:
        """Return `delivery` to its place among the messages of its priority.

        Returns its deadline (ms), or -1.
        """
        deadline = self._level(delivery.message).push_back(delivery, ttl_ms)
        self.count += 1
        self.byte_count += delivery.byte_count
        return deadline

    def pop(self, queue: Queue) -> Delivery:
        """Take the first message of the highest priority out. Only while `count` is not 0."""
        delivery = self._top().pop(queue)
        self.count -= 1
        self.byte_count -= delivery.byte_count
        return delivery

    def take(self, peeked: PeekedMessage, queue: Queue) -> Delivery | None:
        """Take the `peeked` message out of `queue`, wherever it is; None if it is not ready any more."""
        rank = peeked.place >> _RANK_SHIFT
        level = self._levels[-1 - rank]
        place = peeked.place - (rank << _RANK_SHIFT)
        delivery = (
            None
            if level is None
            else level.take(PeekedMessage(place, peeked.message, peeked.attempts), queue)
        )
        if delivery is not None:
            self.count -= 1
            self.byte_count -= delivery.byte_count
        return delivery

    def extent(self) -> list[range]:
        """The places of all messages that are ready now, as increasing ranges that exclude later messages."""
        found: list[range] = []
        for rank, level in enumerate(reversed(self._levels)):
            if level is not None:
                base = rank << _RANK_SHIFT
                found += [range(base, base + places.stop) for places in level.extent()]
        return found

    def last_place(self, message: Message) -> int:
        """The place of `message`, which was the last one pushed with its priority."""
        return (self._rank(message) << _RANK_SHIFT) + self._level(message).last_place(message)

    def place_of(self, delivery: Delivery) -> int:
        """The place that `delivery` was taken from."""
        return (self._rank(delivery.message) << _RANK_SHIFT) + delivery.position

    def is_deliverable(self) -> bool:
        """True if the message that `pop` would take may be delivered now. Only while `count` is not 0."""
        return self._top().is_deliverable()

    def is_fresh(self) -> bool:
        """True if the message that `pop` would take was never delivered before."""
        return self._top().is_fresh()

    def pop_message(self) -> Message:
        """Take the first message of the highest priority out and settle it."""
        message = self._top().pop_message()
        self._count(message, -1)
        return message

    def drop(self) -> Message:
        """Take the first message of the highest priority out and settle it, delivered before or not."""
        message = self._top().drop()
        self._count(message, -1)
        return message

    def first(self) -> Message:
        """The message that `pop` would take. Only while `count` is not 0."""
        return self._top().first()

    def oldest(self) -> int | None:
        """When the oldest message of any priority was published (Unix time, ms); None without messages."""
        times = [level.oldest() for level in self._levels if level is not None]
        return min((time for time in times if time is not None), default=None)

    def counts_by_priority(self) -> dict[int, int]:
        """The number of messages of each priority that has any."""
        return {
            priority: level.count
            for priority, level in enumerate(self._levels)
            if level is not None and level.count
        }

    def deadline_of(self, message: Message, position: int, ttl_ms: int) -> int:
        """The time (ms) when `message`, which was taken from `position`, expires; -1 means never."""
        return self._level(message).deadline_of(message, position, ttl_ms)

    def deadline(self, ttl_ms: int) -> int:
        """The time (ms) when the next message of any priority expires; -1 means none."""
        deadlines = [level.deadline(ttl_ms) for level in self._levels if level is not None]
        return min((deadline for deadline in deadlines if deadline >= 0), default=-1)

    def pop_expired(self, now: int, ttl_ms: int) -> Message | None:
        """Take out one message of any priority that has expired at `now` (ms); None if there is none."""
        for _ in self._levels:
            level = self._levels[self._expiring]
            message = None if level is None else level.pop_expired(now, ttl_ms)
            if message is not None:
                self._count(message, -1)
                return message
            self._expiring = (self._expiring or len(self._levels)) - 1
        return None

    def expired_place(self, now: int, ttl_ms: int) -> int:
        """The place of one message of any priority that has expired at `now` (ms); -1 if there is none."""
        for _ in self._levels:
            level = self._levels[self._expiring]
            place = -1 if level is None else level.expired_place(now, ttl_ms)
            if place >= 0:
                return (self._priority_max - self._expiring << _RANK_SHIFT) + place
            self._expiring = (self._expiring or len(self._levels)) - 1
        return -1

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages from place `first` on; places grow from the highest level down."""
        found: list[PeekedMessage] = []
        for rank, level in enumerate(reversed(self._levels)):
            base = rank << _RANK_SHIFT
            if level is not None and len(found) < count and first < base + (1 << _RANK_SHIFT):
                for peeked in level.peek(max(first - base, 0), count - len(found)):
                    peeked.place += base
                    found.append(peeked)
        return found

    def keep_ttl(self, ttl_ms: int) -> None:
        """Keep `ttl_ms` for all present and unacknowledged messages of the existing levels."""
        for level in self._levels:
            if level is not None:
                level.keep_ttl(ttl_ms)

    def forget_ttls(self) -> None:
        """Forget earlier times to live, since no message has them any more."""
        for level in self._levels:
            if level is not None:
                level.forget_ttls()

    def kept_ttls(self) -> list[LevelChange]:
        """The changes recorded by `keep_ttl`, by level."""
        return [
            (number, end, ttl_ms)
            for number, level in enumerate(self._levels)
            if level is not None
            for _, end, ttl_ms in level.kept_ttls()
        ]

    def clear(self) -> None:
        """Drop all messages."""
        for level in self._levels:
            if level is not None:
                level.clear()
        self.count = 0
        self.byte_count = 0

    def whole(self, message: Message) -> Message:
        """`message`, which was delivered, with its content."""
        return self._level(message).whole(message)

    def body(self, message: Message) -> bytes:
        """The body of `message`, which was delivered."""
        return self._level(message).body(message)

    def settled(self, delivery: Delivery) -> None:
        """Forget `delivery`, which was taken out before and is settled."""
        self._level(delivery.message).settled(delivery)

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Confirm to `confirmation` when everything pushed or delivered so far is stored as durably as it
        will be.
        """
        self._levels[self._highest].confirm(confirmation, sequence)  # type: ignore[union-attr]

    def forget(self) -> None:
        """Release everything; called when the queue was deleted and is empty."""
        for level in self._levels:
            if level is not None:
                level.forget()

    def restore(self, level: int, found: RecoveredQueue, ttl_ms: int) -> None:
        """Restore the messages of priority `level` that were `found`."""
        self._highest = max(self._highest, level)
        restored = self._levels[level] = self._make_level(level)
        restored.restore(level, found, ttl_ms)
        self.count += restored.count
        self.byte_count += restored.byte_count

    def paged_count(self) -> int:
        """The number of messages of all priorities that are only on disk."""
        return sum(level.paged_count() for level in self._levels if level is not None)

    def persistent_count(self) -> int:
        """The number of messages of all priorities that would survive a restart."""
        return sum(level.persistent_count() for level in self._levels if level is not None)

    def persistent_bytes(self) -> int:
        """The size in bytes of the bodies that would survive a restart."""
        return sum(level.persistent_bytes() for level in self._levels if level is not None)

    def shrink(self) -> None:
        """Page out messages that exceed the memory limit of the queue."""
        for level in self._levels:
            if level is not None:
                level.shrink()

    def _level(self, message: Message) -> Backlog:
        """The level that `message` waits on: its priority, or the highest that the queue has."""
        priority = min(message.priority, self._priority_max)
        self._highest = max(self._highest, priority)
        level = self._levels[priority]
        if level is None:
            level = self._levels[priority] = self._make_level(priority)
        return level

    def _rank(self, message: Message) -> int:
        """The number of levels that are delivered before that of `message`."""
        return self._priority_max - min(message.priority, self._priority_max)

    def _top(self) -> Backlog:
        while True:
            level = self._levels[self._highest]
            if level is not None and level.count:
                return level
            self._highest -= 1

    def _count(self, message: Message, difference: int) -> None:
        self.count += difference
        self.byte_count += difference * body_size_of(message)
