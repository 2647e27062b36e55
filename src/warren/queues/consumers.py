"""The consumers of one queue: by priority, round-robin, with exclusive and single active consumers.

Invariant: each consumer is either in the circle of its priority, or `is_parked`. A consumer that is found not
to be ready is parked, and costs nothing until it reports that it can take messages again.

A single flag says whether consumers are chosen in the usual way, so that a pause costs nothing otherwise.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator

from warren.queues.demand_listener import DemandListener
from warren.queues.queue import Consumer

# Empty priorities are skipped while there are this few, which is cheaper than to list them again; if there
# are more, each is removed from the list when it is found empty.
_LISTED_EMPTY_MAX = 8


class ConsumerSet:
    """Chooses the consumer of the next message, in constant time."""

    __slots__ = (
        "_all", "_by_priority", "_is_special", "_listed", "active", "count", "demand_listener", "is_paused",
        "is_single_active",
    )  # fmt: skip

    def __init__(self, *, is_single_active: bool) -> None:
        self.is_single_active = is_single_active
        # True while deliveries are paused.
        self.is_paused = False
        # The kinds of consumers; exactly one is set.
        self._is_special = is_single_active
        # The consumer that a queue with single active consumer delivers to.
        self.active: Consumer | None = None
        self.count = 0
        # In order of arrival. An OrderedDict, since finding the first entry of a plain dictionary takes time
        # for each removed entry before it.
        self._all: OrderedDict[Consumer, None] = OrderedDict()
        self._by_priority: dict[int, _Turn] = {}
        # The priorities with consumers that may be ready, highest first.
        self._listed: list[_Turn] = []
        # Told when consumers come, go or become ready; None unless the queue is federated.
        self.demand_listener: DemandListener | None = None

    def __iter__(self) -> Iterator[Consumer]:
        return iter(list(self._all))

    def add(self, consumer: Consumer) -> None:
        """Add `consumer`, at the end of its priority."""
        self._all[consumer] = None
        self.count += 1
        consumer.is_parked = False
        turn = self._by_priority.get(consumer.priority)
        if turn is None:
            turn = self._by_priority[consumer.priority] = _Turn(consumer.priority)
        turn.members += 1
        self._append(turn, consumer)
        if self.is_single_active and self.active is None:
            self.active = consumer
        if self.demand_listener is not None:
            self.demand_listener.demand_changed()

    def remove(self, consumer: Consumer) -> bool:
        """Remove `consumer`; False if it is not in the set."""
        if consumer not in self._all:
            return False
        del self._all[consumer]
        self.count -= 1
        turn = self._turn_of(consumer)
        if not consumer.is_parked:
            turn.drop(consumer)
        turn.members -= 1
        if not turn.members:
            del self._by_priority[turn.priority]
            if turn.is_listed:
                del self._listed[self._place_of(turn)]
        if self.active is consumer:
            # The oldest of the highest priority (RabbitMQ 3.10.8, measured): only the active consumer is
            # parked.
            self.active = None
            if self._listed:
                turn = self._listed[0]
                self.active = turn.first
        if self.demand_listener is not None:
            self.demand_listener.demand_changed()
        return True

    def unpark(self, consumer: Consumer) -> bool:
        """Put a parked `consumer` back; False if there is nothing to do."""
        if not consumer.is_parked or consumer not in self._all:
            return False
        consumer.is_parked = False
        self._append(self._turn_of(consumer), consumer)
        if self.demand_listener is not None:
            self.demand_listener.demand_changed()
        return True

    def next(self) -> Consumer | None:
        """The ready consumer whose turn it is; None if none is ready."""
        if self._is_special:
            return None if self.is_paused else self._next_active()
        listed = self._listed
        at = 0
        while at < len(listed):
            turn = listed[at]
            consumer = turn.first
            while consumer is not None:
                if consumer.is_ready():
                    turn.first = consumer.after
                    return consumer
                consumer.is_parked = True
                turn.drop(consumer)
                consumer = turn.first
            if len(listed) > _LISTED_EMPTY_MAX:
                turn.is_listed = False
                del listed[at]
            else:
                at += 1
        return None

    def pause(self, is_paused: bool) -> None:
        """Pause or resume all consumers."""
        self.is_paused = is_paused
        self._is_special = is_paused or self.is_single_active
        if self.demand_listener is not None:
            self.demand_listener.demand_changed()

    def has_ready(self, priority_min: int) -> bool:
        """True if a consumer of at least `priority_min` could be given a message now.

        Those that could not are parked, so that they report when they can.
        """
        if self._is_special:
            active = None if self.is_paused else self._next_active()
            return active is not None and active.priority >= priority_min
        for turn in self._listed:
            if turn.priority < priority_min:
                break
            consumer = turn.first
            while consumer is not None:
                if consumer.is_ready():
                    return True
                consumer.is_parked = True
                turn.drop(consumer)
                consumer = turn.first
        return False

    def has_any(self, priority_min: int) -> bool:
        """True if there is a consumer of at least `priority_min`, ready or not."""
        return any(priority >= priority_min for priority in self._by_priority)

    def has_exclusive(self) -> bool:
        """True if its only consumer is exclusive."""
        return self.count == 1 and next(iter(self._all)).is_exclusive

    def _next_active(self) -> Consumer | None:
        active = self.active
        if active is None or active.is_parked:
            return None
        if active.is_ready():
            return active
        active.is_parked = True
        self._turn_of(active).drop(active)
        return None

    def _turn_of(self, consumer: Consumer) -> "_Turn":
        return self._by_priority[consumer.priority]

    def _append(self, turn: "_Turn", consumer: Consumer) -> None:
        """Append `consumer` to `turn`."""
        turn.append(consumer)
        if not turn.is_listed:
            turn.is_listed = True
            self._listed.insert(self._place_of(turn), turn)

    def _place_of(self, turn: "_Turn") -> int:
        """The index of `turn` in the list, or where it belongs."""
        return bisect_left(self._listed, -turn.priority, key=_order)


class _Turn:
    """The consumers of one priority that may be ready, as a circular linked list."""

    __slots__ = ("first", "is_listed", "members", "priority")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        # The number of consumers of this priority, ready or not.
        self.members = 0
        self.is_listed = False
        # The next consumer; None if none is ready.
        self.first: Consumer | None = None

    def append(self, consumer: Consumer) -> None:
        """Insert `consumer` so that it comes after all others."""
        first = self.first
        if first is None:
            consumer.after = consumer.before = self.first = consumer
            return
        last: Consumer = first.before  # type: ignore[assignment]
        last.after = first.before = consumer
        consumer.before = last
        consumer.after = first

    def drop(self, consumer: Consumer) -> None:
        """Remove `consumer` from the circle."""
        after: Consumer = consumer.after  # type: ignore[assignment]
        before: Consumer = consumer.before  # type: ignore[assignment]
        consumer.after = consumer.before = None
        if after is consumer:
            self.first = None
            return
        before.after = after
        after.before = before
        if self.first is consumer:
            self.first = after


def _order(turn: _Turn) -> int:
    return -turn.priority
