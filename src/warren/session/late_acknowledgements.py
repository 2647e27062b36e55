"""What the consumers of a channel held when they timed out, for clients that acknowledge it late.

Such a message is ready again. If nobody has got it since, a late acknowledgement settles it, so that work
that took too long is not done twice. In a cluster that is known of queues whose messages are on this node.
"""

from warren import limits
from warren.queues.capabilities import taking_queue
from warren.queues.queue import Delivery
from warren.queues.taking_queue import TakingQueue


class LateAcknowledgements:
    """Where the messages of timed out deliveries are, by delivery tag, oldest first."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: dict[int, tuple[TakingQueue, int]] = {}

    def expect(self, tag: int, delivery: Delivery) -> None:
        """Remember `delivery`, which is about to return to its queue, and forget the oldest if many are."""
        queue = taking_queue(delivery.queue)
        # A queue in front of another one has places of its own.
        if queue is None or queue is not delivery.queue:
            return
        if len(self._places) >= 2 * limits.LATE_ACKNOWLEDGEMENTS_MAX:
            self._places = dict(list(self._places.items())[limits.LATE_ACKNOWLEDGEMENTS_MAX :])
        self._places[tag] = queue, queue.place_of(delivery)

    def acknowledge(self, tag: int, multiple: bool) -> int:
        """Settle what is ready of the message `tag`, or of all up to it (0: all); returns their number."""
        tags = [tag] if tag in self._places else []
        if multiple:
            tags = [late for late in self._places if tag in (0, late) or late < tag]
        return sum(_settled(*self._places.pop(late)) for late in tags)


def _settled(queue: TakingQueue, place: int) -> bool:
    """Whether the message at `place` of `queue` was ready, and is settled now."""
    found = queue.peek(place, 1)
    if queue.is_deleted or not found or found[0].place != place:
        return False
    delivery = queue.take_unacked(found[0])
    if delivery is not None:
        queue.acknowledge(delivery)
    return delivery is not None
