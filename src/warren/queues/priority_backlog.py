"""Ready messages by priority: a `MessageBacklog` for each level in use; the highest is delivered first."""

from collections.abc import Callable

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message, body_size_of
from warren.queues.message_backlog import MessageBacklog
from warren.queues.queue import Delivery, PeekedMessage, Queue
from warren.queues.ttl_changes import LevelChange
from warren.store.recovered_queue import RecoveredQueue

# A place is a position, and in front of it how many levels go out before.
_RANK_SHIFT = 48


class PriorityBacklog(MessageBacklog):
    """What `MessageBacklog` is, for a queue with `x-max-priority`: first by priority, then by position."""

    __slots__ = ("_expiring", "_highest", "_levels", "_make_level", "_priority_max")

    def __init__(self, priority_max: int, make_level: Callable[[int], MessageBacklog]) -> None:
        super().__init__()
        self._make_level = make_level
        self._priority_max = priority_max
        self._levels: list[MessageBacklog | None] = [None] * (priority_max + 1)
        # No message waits above this level.
        self._highest = 0
        # Where a message was found last whose time was over: there may be more of them.
        self._expiring = 0

    def push_delivered(self, message: Message, queue: Queue) -> Delivery:
        """`message` goes out of `queue` without having waited; only while nothing is ready."""
        return self._level(message).push_delivered(message, queue)

    def push(self, message: Message) -> None:
        """Add `message` behind all others of its priority."""
        self._level(message).push(message)
        self._count(message, 1)

    def push_deadline(self, message: Message, ttl_ms: int) -> int:
        """The deadline (ms) of `message`, pushed just now; -1: none."""
        return self._level(message).push_deadline(message, ttl_ms)

    def push_back(self, delivery: Delivery, ttl_ms: int) -> int:
        """Put `delivery` back to its place among those of its priority."""
        deadline = self._level(delivery.message).push_back(delivery, ttl_ms)
        self.count += 1
        self.octets += delivery.octets
        return deadline

    def pop(self, queue: Queue) -> Delivery:
        """Take the first message of the highest priority out. Only while `count` is not 0."""
        delivery = self._top().pop(queue)
        self.count -= 1
        self.octets -= delivery.octets
        return delivery

    def take(self, peeked: PeekedMessage, queue: Queue) -> Delivery | None:
        """Take what was `peeked` at out of `queue`, wherever it waits; None if it does not any more."""
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
            self.octets -= delivery.octets
        return delivery

    def extent(self) -> list[range]:
        """The places of all that waits now, and of nothing that is pushed later: in ranges that grow."""
        found: list[range] = []
        for rank, level in enumerate(reversed(self._levels)):
            if level is not None:
                base = rank << _RANK_SHIFT
                found += [range(base, base + places.stop) for places in level.extent()]
        return found

    def last_place(self, message: Message) -> int:
        """The place of `message`, which came in last of those of its priority."""
        return (self._rank(message) << _RANK_SHIFT) + self._level(message).last_place(message)

    def place_of(self, delivery: Delivery) -> int:
        """The place that `delivery` was taken from."""
        return (self._rank(delivery.message) << _RANK_SHIFT) + delivery.position

    def is_fresh(self) -> bool:
        """True if what `pop` would take was never handed out before."""
        return self._top().is_fresh()

    def pop_message(self) -> Message:
        """Take the first message of the highest priority out for good."""
        message = self._top().pop_message()
        self._count(message, -1)
        return message

    def drop(self) -> Message:
        """Take the first message of the highest priority out for good, handed out before or not."""
        message = self._top().drop()
        self._count(message, -1)
        return message

    def first(self) -> Message:
        """The message that `pop` would take. Only while `count` is not 0."""
        return self._top().first()

    def deadline(self, ttl_ms: int) -> int:
        """When the next message of any priority expires (ms); -1: none will."""
        deadlines = [level.deadline(ttl_ms) for level in self._levels if level is not None]
        return min((deadline for deadline in deadlines if deadline >= 0), default=-1)

    def pop_expired(self, now: int, ttl_ms: int) -> Message | None:
        """Take out one message of any priority whose time is over at `now`; None when there is none."""
        for _ in self._levels:
            level = self._levels[self._expiring]
            message = None if level is None else level.pop_expired(now, ttl_ms)
            if message is not None:
                self._count(message, -1)
                return message
            self._expiring = (self._expiring or len(self._levels)) - 1
        return None

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` of the messages from place `first` on; places grow from the highest level down."""
        found: list[PeekedMessage] = []
        for rank, level in enumerate(reversed(self._levels)):
            base = rank << _RANK_SHIFT
            if level is not None and len(found) < count and first < base + (1 << _RANK_SHIFT):
                for peeked in level.peek(max(first - base, 0), count - len(found)):
                    peeked.place += base
                    found.append(peeked)
        return found

    def keep_ttl(self, ttl_ms: int) -> None:
        """All that waits, or is out, has `ttl_ms` for good; a level to come has seen no change."""
        for level in self._levels:
            if level is not None:
                level.keep_ttl(ttl_ms)

    def forget_ttls(self) -> None:
        """Nothing is left that came before the last change of the time to live."""
        for level in self._levels:
            if level is not None:
                level.forget_ttls()

    def kept_ttls(self) -> list[LevelChange]:
        """What `keep_ttl` was told, by level."""
        return [
            (number, end, ttl_ms)
            for number, level in enumerate(self._levels)
            if level is not None
            for _, end, ttl_ms in level.kept_ttls()
        ]

    def clear(self) -> None:
        """Forget every message."""
        for level in self._levels:
            if level is not None:
                level.clear()
        self.count = 0
        self.octets = 0

    def whole(self, message: Message) -> Message:
        """`message`, which was handed out, with its content."""
        return self._level(message).whole(message)

    def body(self, message: Message) -> bytes:
        """The body of `message`, which was handed out."""
        return self._level(message).body(message)

    def settled(self, delivery: Delivery) -> None:
        """`delivery`, taken out before, will not come back."""
        self._level(delivery.message).settled(delivery)

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Have `confirmation` told when what was pushed, or passed by, is as safe as it is going to be."""
        self._levels[self._highest].confirm(confirmation, sequence)  # type: ignore[union-attr]

    def forget(self) -> None:
        """The queue is gone, and empty."""
        for level in self._levels:
            if level is not None:
                level.forget()

    def restore(self, level: int, found: RecoveredQueue, ttl_ms: int) -> None:
        """Have what was `found` of priority `level`."""
        self._highest = max(self._highest, level)
        restored = self._levels[level] = self._make_level(level)
        restored.restore(level, found, ttl_ms)
        self.count += restored.count
        self.octets += restored.octets

    def paged_count(self) -> int:
        """How many messages of all priorities are on the disk only."""
        return sum(level.paged_count() for level in self._levels if level is not None)

    def persistent_count(self) -> int:
        """How many messages of all priorities would survive a restart."""
        return sum(level.persistent_count() for level in self._levels if level is not None)

    def persistent_octets(self) -> int:
        """The octets of the bodies of these."""
        return sum(level.persistent_octets() for level in self._levels if level is not None)

    def shrink(self) -> None:
        """Page out what is more than the queue may have in memory now."""
        for level in self._levels:
            if level is not None:
                level.shrink()

    def _level(self, message: Message) -> MessageBacklog:
        """The level that `message` waits on: its priority, or the highest that the queue has."""
        priority = min(message.priority, self._priority_max)
        self._highest = max(self._highest, priority)
        level = self._levels[priority]
        if level is None:
            level = self._levels[priority] = self._make_level(priority)
        return level

    def _rank(self, message: Message) -> int:
        """How many levels go out before that of `message`."""
        return self._priority_max - min(message.priority, self._priority_max)

    def _top(self) -> MessageBacklog:
        while True:
            level = self._levels[self._highest]
            if level is not None and level.count:
                return level
            self._highest -= 1

    def _count(self, message: Message, difference: int) -> None:
        self.count += difference
        self.octets += difference * body_size_of(message)
