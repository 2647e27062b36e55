"""The consumers of one queue: by priority, in turn, one exclusive or active at a time where asked for.

Invariant: a consumer of the set is either in the turn of its priority, or `is_parked`. One that turns out
not to be ready is parked, and costs nothing until its subscriber says that it can take messages again.

That most sets are asked in turn, and some not, is one flag: a pause costs those nothing that know none.
"""

from collections.abc import Iterator

from warren.model.ring import Ring
from warren.queues.queue import Consumer


class ConsumerSet:
    """Chooses who gets the next message, in constant time."""

    __slots__ = ("_all", "_groups", "_is_special", "active", "count", "is_paused", "is_single_active")

    def __init__(self, *, is_single_active: bool) -> None:
        self.is_single_active = is_single_active
        # True while nobody gets anything.
        self.is_paused = False
        # One of these.
        self._is_special = is_single_active
        # The consumer that a queue with single active consumer delivers to.
        self.active: Consumer | None = None
        self.count = 0
        # In order of arrival: the next active one is the eldest.
        self._all: dict[Consumer, None] = {}
        # Highest priority first.
        self._groups: list[_Turn] = []

    def __iter__(self) -> Iterator[Consumer]:
        return iter(list(self._all))

    def add(self, consumer: Consumer) -> None:
        """Let `consumer` take its turn from now on."""
        self._all[consumer] = None
        self.count += 1
        consumer.is_parked = False
        self._turn(consumer.priority).ready.append(consumer)
        if self.is_single_active and self.active is None:
            self.active = consumer

    def remove(self, consumer: Consumer) -> bool:
        """Forget `consumer`; False if it is not there."""
        if consumer not in self._all:
            return False
        del self._all[consumer]
        self.count -= 1
        turn = self._turn_of(consumer)
        if not consumer.is_parked:
            turn.drop(consumer)
        turn.members -= 1
        if not turn.members:
            self._groups.remove(turn)
        if self.active is consumer:
            self.active = next(iter(self._all), None)
        return True

    def unpark(self, consumer: Consumer) -> bool:
        """Put a parked `consumer` back into its turn; False if there is nothing to do."""
        if not consumer.is_parked or consumer not in self._all:
            return False
        consumer.is_parked = False
        self._turn_of(consumer).ready.append(consumer)
        return True

    def next(self) -> Consumer | None:
        """Whose turn it is among those that are ready; None when nobody is."""
        if self._is_special:
            return None if self.is_paused else self._next_active()
        for turn in self._groups:
            ready = turn.ready
            while ready.count:
                consumer: Consumer = ready.get(0)  # type: ignore[assignment]
                if consumer.is_ready():
                    if ready.count > 1:
                        ready.append(ready.popleft())
                    return consumer
                consumer.is_parked = True
                ready.popleft()
        return None

    def pause(self, is_paused: bool) -> None:
        """Have nobody get anything from now on, or all again."""
        self.is_paused = is_paused
        self._is_special = is_paused or self.is_single_active

    def has_exclusive(self) -> bool:
        """True if its only consumer wants to stay the only one."""
        return any(consumer.is_exclusive for consumer in self._all)

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
        for turn in self._groups:
            if turn.priority == consumer.priority:
                return turn
        raise AssertionError(f"no turn of priority {consumer.priority}")

    def _turn(self, priority: int) -> "_Turn":
        """The turn of `priority`, made when it is the first of that priority."""
        at = 0
        for turn in self._groups:
            if turn.priority == priority:
                turn.members += 1
                return turn
            if turn.priority > priority:
                at += 1
        turn = _Turn(priority)
        self._groups.insert(at, turn)
        return turn


class _Turn:
    """Those of one priority that may be ready, the next one first."""

    __slots__ = ("members", "priority", "ready")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.members = 1
        self.ready = Ring()

    def drop(self, consumer: Consumer) -> None:
        """Take `consumer`, which may be ready, out of the turn."""
        for _ in range(self.ready.count):
            other = self.ready.popleft()
            if other is not consumer:
                self.ready.append(other)
