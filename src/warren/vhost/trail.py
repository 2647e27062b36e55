"""Where a redrive has put its messages, so that those can be taken back that nobody has had since."""

from array import array

from warren.limits import PLACES_REMEMBERED_MAX
from warren.store.positions import Positions


class Trail:
    """Where messages were put that may be taken back: queue -> places, as long as nobody had them there."""

    __slots__ = ("back", "back_count", "count", "places")

    def __init__(self) -> None:
        # How many places it knows.
        self.count = 0
        # By the name of the queue: a queue that is opened anew has its messages where they were.
        self.places: dict[str, array[int]] = {}
        # The numbers of those that were taken back, and how many these are.
        self.back = Positions()
        self.back_count = 0

    def add(self, queue: str, place: int) -> None:
        """A message is at `place` of `queue`; of too many, the last are not remembered."""
        if self.count >= PLACES_REMEMBERED_MAX:
            return
        if queue not in self.places:
            self.places[queue] = array("Q")
        self.places[queue].append(place)
        self.count += 1

    def took_back(self, number: int) -> None:
        """Message `number` is where it was before."""
        self.back.add(number, number + 1)
        self.back_count += 1

    def clear(self) -> None:
        """Nothing is to be taken back any more."""
        self.places.clear()
        self.count = 0
