"""The undo log of a redrive: where its messages were put, so that undelivered ones can be taken back."""

from array import array

from warren.limits import UNDO_MESSAGES_MAX
from warren.store.position_set import PositionSet


class UndoLog:
    """The places of redriven messages by queue, as long as they were not delivered."""

    __slots__ = ("back", "count", "places", "undone_count")

    def __init__(self) -> None:
        # The number of places.
        self.count = 0
        # By the name of the queue; places survive a restart of the queue.
        self.places: dict[str, array[int]] = {}
        # The numbers of the messages taken back, and how many there are.
        self.back = PositionSet()
        self.undone_count = 0

    def add(self, queue: str, place: int) -> None:
        """Record a message at `place` of `queue`; beyond the bound messages are not recorded."""
        if self.count >= UNDO_MESSAGES_MAX:
            return
        if queue not in self.places:
            self.places[queue] = array("Q")
        self.places[queue].append(place)
        self.count += 1

    def mark_undone(self, number: int) -> None:
        """Record that message `number` was taken back."""
        self.back.add(number, number + 1)
        self.undone_count += 1

    def clear(self) -> None:
        """Forget all places: nothing can be taken back any more."""
        self.places.clear()
        self.count = 0
