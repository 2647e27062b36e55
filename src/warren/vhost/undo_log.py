"""Where a redrive has put its messages, so that those can be taken back that nobody has had since."""

from array import array

from warren.limits import UNDO_MESSAGES_MAX
from warren.store.position_set import PositionSet


class UndoLog:
    """Where messages were put that may be taken back: queue -> places, as long as nobody had them there."""

    __slots__ = ("back", "count", "places", "undone_count")

    def __init__(self) -> None:
        # How many places it knows.
        self.count = 0
        # By the name of the queue: a queue that is opened anew has its messages where they were.
        self.places: dict[str, array[int]] = {}
        # The numbers of those that were taken back, and how many these are.
        self.back = PositionSet()
        self.undone_count = 0

    def add(self, queue: str, place: int) -> None:
        """A message is at `place` of `queue`; of too many, the last are not remembered."""
        if self.count >= UNDO_MESSAGES_MAX:
            return
        if queue not in self.places:
            self.places[queue] = array("Q")
        self.places[queue].append(place)
        self.count += 1

    def mark_undone(self, number: int) -> None:
        """Message `number` is where it was before."""
        self.back.add(number, number + 1)
        self.undone_count += 1

    def clear(self) -> None:
        """Nothing is to be taken back any more."""
        self.places.clear()
        self.count = 0
