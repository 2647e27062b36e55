"""What one node holds of a quorum queue, and what it has settled, until a leader has committed that.

    delivered ─▶ held ─ settled ─▶ a run of places under way ─ SETTLED ─▶ forgotten

A new leader gets all of this: what is held and what is under way is claimed first, so that nobody else gets
it, and what is under way is settled again.
"""

from collections import deque

from warren.queues.queue import Delivery

_REJECT = 1


class SettledPlaces:
    """A run of places that were settled in one way, which is one item of a payload."""

    __slots__ = ("count", "first", "how", "void")

    def __init__(self, how: int, first: int) -> None:
        self.how = how
        self.first = first
        self.count = 1
        # Those among them whose messages were delivered again: the leader has settled them. None for none.
        self.void: set[int] | None = None

    def places(self) -> list[int]:
        """The places that have to be settled again by another leader."""
        places = range(self.first, self.first + self.count)
        void = self.void
        return list(places) if void is None else [place for place in places if place not in void]


class UnsettledPlaces:
    """The places of one queue that this node holds, or has settled without being sure of that."""

    __slots__ = ("_returning", "_runs", "held")

    def __init__(self) -> None:
        # Place -> what a client of this node has, and may settle.
        self.held: dict[int, Delivery] = {}
        # What is under way, in order; and where a place is in it that may be delivered again.
        self._runs: deque[SettledPlaces] = deque()
        self._returning: dict[int, SettledPlaces] = {}

    @property
    def count(self) -> int:
        """How many runs are under way."""
        return len(self._runs)

    def deliver(self, place: int, delivery: Delivery) -> None:
        """A client of this node gets `delivery`."""
        self.held[place] = delivery
        if self._returning:
            run = self._returning.pop(place, None)
            if run is not None:
                if run.void is None:
                    run.void = set()
                run.void.add(place)

    def settle(self, how: int, place: int, *, is_new: bool) -> None:
        """Note that `place` is settled, in a run of its own if it `is_new`, or else in the last one."""
        if is_new:
            run = SettledPlaces(how, place)
            self._runs.append(run)
        else:
            run = self._runs[-1]
            run.count += 1
        if how > _REJECT:
            self._returning[place] = run

    def settled(self, count: int) -> bool:
        """The next `count` runs are committed; False if there are not so many."""
        if count > len(self._runs):
            return False
        for _ in range(count):
            run = self._runs.popleft()
            if run.how > _REJECT and self._returning:
                for place in range(run.first, run.first + run.count):
                    if self._returning.get(place) is run:
                        del self._returning[place]
        return True

    def take_under_way(self) -> list[tuple[int, int]]:
        """Forget what is under way, which is settled again: how, and the place."""
        runs, self._runs = self._runs, deque()
        self._returning.clear()
        return [(run.how, place) for run in runs for place in run.places()]

    def clear(self) -> None:
        """Forget everything, since the queue was deleted."""
        self.held.clear()
        self._runs.clear()
        self._returning.clear()
