"""The messages of a quorum queue that exceeded the delivery limit and have no dead-letter exchange.

They are neither ready nor unacknowledged, do not expire, and count towards the limits of the queue. An
operator looks at them, and releases or removes them. In memory they have no body if that is on disk.
"""

from bisect import bisect_left

from warren.model.message import BODY_ON_DISK, PERSISTENT, StoredMessage, without_body
from warren.queues.queue import Delivery


class QuarantinedMessages:
    """The quarantined messages of one queue, by place, which is that of the ready messages."""

    __slots__ = ("_by_place", "byte_count")

    def __init__(self) -> None:
        # In the order in which they came, after a start in the order of the queue.
        self._by_place: dict[int, Delivery] = {}
        # The size of their bodies.
        self.byte_count = 0

    @property
    def count(self) -> int:
        """The number of messages."""
        return len(self._by_place)

    def add(self, place: int, delivery: Delivery) -> None:
        """Keep `delivery`, without its body if that is on disk."""
        drop_stored_body(delivery)
        self._by_place[place] = delivery
        self.byte_count += delivery.byte_count

    def places(self) -> list[int]:
        """The places of all messages, in order."""
        return sorted(self._by_place)

    def listed(self, first: int, count: int) -> list[tuple[int, Delivery]]:
        """Up to `count` messages from place `first` on, in order of place."""
        places = self.places()
        begin = bisect_left(places, first)
        return [(place, self._by_place[place]) for place in places[begin : begin + count]]

    def get(self, place: int) -> Delivery | None:
        """The message at `place`; None if there is none."""
        return self._by_place.get(place)

    def take(self, place: int) -> Delivery | None:
        """Take out the message at `place`; None if there is none."""
        delivery = self._by_place.pop(place, None)
        if delivery is not None:
            self.byte_count -= delivery.byte_count
        return delivery

    def take_oldest(self) -> Delivery:
        """Take out the message that came first. Only while there is one."""
        delivery = self._by_place.pop(next(iter(self._by_place)))
        self.byte_count -= delivery.byte_count
        return delivery


def drop_stored_body(delivery: Delivery) -> None:
    """Drop the body of the message of `delivery` from memory if it is on disk."""
    message = delivery.message
    is_on_disk = isinstance(message, StoredMessage) and message.location and message.flags & PERSISTENT
    if is_on_disk and not message.flags & BODY_ON_DISK:
        stored: StoredMessage = message  # type: ignore[assignment]
        delivery.message = without_body(stored, stored)
