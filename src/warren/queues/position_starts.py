"""Which start of the broker has given each position of one queue, so that no position is given twice.

A position that was given to a message that was never synced, or is transient, is free again after a restart.
Whoever remembers positions, such as the destination of a shovel that delivers exactly once, must not take the
message that has it then for the earlier one. Therefore each start of the broker has a random number, and a
position is complete only together with that of the start in which its message was published. The numbers of
recovered messages are in a commit marker of the store: a list of ranges, which has one entry in most queues.

It exists from the first consumer that asks for positions on. Until that time no position was given away, so
all messages that are in the queue then count as published in this start.

    marker │ origin, 16 bytes │ number of this start u64 │ ( end of places u64 │ number of a start u64 ) …
"""

from collections.abc import Callable

from warren.limits_relay import POSITION_STARTS_MAX
from warren.model.message_position import ORIGIN_SIZE, RANK_SHIFT, START_SIZE
from warren.store.message_store import MessageStore

_PREFIX = b"position-starts "
_PLACE_SIZE = 8
_ENTRY_SIZE = _PLACE_SIZE + START_SIZE
# (end of places, number of the start that gave those below), in order, of one priority level.
_Ranges = list[tuple[int, int]]


class PositionStarts:
    """The numbers of starts for the positions of one queue."""

    __slots__ = ("_current", "_earlier", "_key", "_last", "_recovered", "_store", "origin")

    def __init__(self, store: MessageStore | None, number: int, random_bytes: Callable[[int], bytes]) -> None:
        """Begin with the present messages of a queue; `store` is None unless the queue is durable.

        `save` stores it.
        """
        self._store = store
        self._key = _key(number)
        self._current = int.from_bytes(random_bytes(START_SIZE), "big")
        # By rank, that is, the number of priority levels above: ranges of recovered messages.
        self._earlier: dict[int, _Ranges] = {}
        # What was recovered, from which `restore` picks: by rank, and the number of the last start.
        self._recovered: dict[int, _Ranges] = {}
        self._last = 0
        # Identifies the queue.
        self.origin = random_bytes(ORIGIN_SIZE)

    @classmethod
    def recover(
        cls, store: MessageStore, number: int, random_bytes: Callable[[int], bytes]
    ) -> "PositionStarts | None":
        """Return those of the queue with `number` after a restart; None if no consumer has ever asked.

        `restore` follows for each level with messages, then `save`, before anything is published.
        """
        marker = store.markers.get(_key(number))
        if marker is None:
            return None
        starts = cls(store, number, random_bytes)
        value = marker.value
        starts.origin = value[:ORIGIN_SIZE]
        starts._last = _number(value, ORIGIN_SIZE, START_SIZE)
        for at in range(ORIGIN_SIZE + START_SIZE, len(value), _ENTRY_SIZE):
            end = _number(value, at, _PLACE_SIZE)
            ranges = starts._recovered.setdefault((end - 1) >> RANK_SHIFT, [])
            ranges.append((end, _number(value, at + _PLACE_SIZE, START_SIZE)))
        return starts

    def restore(self, rank: int, first: int, end: int) -> None:
        """Keep the starts of the recovered positions of level `rank`, which are from `first` up to `end`.

        From `end` on this start gives them, also those that an earlier one has given.
        """
        first_place, end_place = (rank << RANK_SHIFT) + first, (rank << RANK_SHIFT) + end
        ranges: _Ranges = []
        for range_end, start in (*self._recovered.get(rank, ()), (end_place, self._last)):
            if range_end > first_place and (not ranges or ranges[-1][0] < end_place):
                ranges.append((min(range_end, end_place), start))
        if len(ranges) > POSITION_STARTS_MAX:
            # The later start has given no position in the range of the earlier one.
            del ranges[: len(ranges) - POSITION_STARTS_MAX]
        self._earlier[rank] = ranges

    def start_of(self, place: int) -> int:
        """Return the number of the start in which the message at `place` was published."""
        for end, start in self._earlier.get(place >> RANK_SHIFT, ()):
            if place < end:
                return start
        return self._current

    def save(self) -> None:
        """Store the ranges, before anything that is stored later."""
        if self._store is not None:
            entries = [entry for rank in sorted(self._earlier) for entry in self._earlier[rank]]
            parts = [self.origin, self._current.to_bytes(START_SIZE, "big")]
            for end, start in entries:
                parts += end.to_bytes(_PLACE_SIZE, "big"), start.to_bytes(START_SIZE, "big")
            self._store.begin_group()
            self._store.end_group(self._key, b"".join(parts))

    def forget(self) -> None:
        """Forget what is stored, since the queue was deleted."""
        if self._store is not None and self._key in self._store.markers:
            self._store.forget(self._key)


def forget_starts(store: MessageStore, number: int) -> None:
    """Forget what is stored for the queue with `number`, which was deleted before the last start."""
    if _key(number) in store.markers:
        store.forget(_key(number))


def _key(number: int) -> bytes:
    return _PREFIX + number.to_bytes(4, "big")


def _number(value: bytes, at: int, size: int) -> int:
    return int.from_bytes(value[at : at + size], "big")
