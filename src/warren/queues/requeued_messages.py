"""The requeued messages of a backlog, in order of position.

_deliveries   position → delivery
_order        a heap of positions: those of `_deliveries`, and some that were taken out before
"""

from collections.abc import Iterable
from heapq import heappop, heappush, nsmallest

from warren.queues.queue import Delivery, PeekedMessage


class RequeuedMessages:
    """Deliveries that were returned to their queue: by position, or the one with the lowest position."""

    __slots__ = ("_deliveries", "_order", "count")

    def __init__(self) -> None:
        self.count = 0
        self._deliveries: dict[int, Delivery] = {}
        self._order: list[int] = []

    def add(self, delivery: Delivery) -> None:
        """Add `delivery` at its position."""
        self._deliveries[delivery.position] = delivery
        heappush(self._order, delivery.position)
        self.count += 1

    def first_position(self) -> int:
        """The lowest position. Only while `count` is not 0."""
        order = self._order
        while order[0] not in self._deliveries:
            heappop(order)
        return order[0]

    def pop(self) -> Delivery:
        """Remove and return the delivery with the lowest position. Only while `count` is not 0."""
        return self.take(self.first_position())

    def take(self, position: int) -> Delivery:
        """Remove and return the delivery at `position`, which must be there."""
        delivery: Delivery = self._deliveries.pop(position)
        self.count -= 1
        if not self.count:
            self._order = []
        elif self._order[0] == position:
            heappop(self._order)
        return delivery

    def holds(self, position: int) -> bool:
        """True if there is a delivery at `position`."""
        return position in self._deliveries

    def get(self, position: int) -> Delivery:
        """The delivery at `position`, which must be there."""
        return self._deliveries[position]

    def deliveries(self) -> Iterable[Delivery]:
        """All deliveries, in no particular order."""
        return self._deliveries.values()

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages from position `first` on, in order."""
        held = self._deliveries
        positions = nsmallest(count, (position for position in held if position >= first))
        return [PeekedMessage(at, held[at].message, held[at].attempts) for at in positions]
