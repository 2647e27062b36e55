"""Unacknowledged deliveries of a queue beyond its memory limit: their bodies are dropped once on disk.

A queue keeps as many bytes of unacknowledged deliveries in memory as of ready messages. Each delivery beyond
that loses its body as soon as it is written: a message with everything but the content, and the content's
location (`message.BODY_ON_DISK`), takes its place. The body is read again when the message is redelivered or
dead-lettered.
"""

from warren.model.message import BODY_ON_DISK, PERSISTENT, StoredMessage, without_body
from warren.model.ring import Ring
from warren.queues.queue import Delivery
from warren.store.stores import Stores

_PERSISTENT = PERSISTENT
_BODY_ON_DISK = BODY_ON_DISK


class UnackedPager:
    """The unacknowledged deliveries of one durable queue that are to be paged out when they are on disk."""

    __slots__ = ("_last", "_unwritten", "stores")

    def __init__(self, stores: Stores) -> None:
        self.stores = stores
        self._unwritten = Ring()
        # The last one made: the next has the same address and properties most often.
        self._last: StoredMessage | None = None

    def add(self, delivery: Delivery) -> None:
        """Page out `delivery` at the next `shrink` that finds it on disk."""
        if not delivery.message.flags & _PERSISTENT:
            return
        if not self._unwritten.count:
            self.stores.paging.add(self)
        self._unwritten.append(delivery)

    def shrink(self) -> None:
        """Drop the bodies of the deliveries that are on disk."""
        unwritten = self._unwritten
        while unwritten.count:
            delivery: Delivery = unwritten.get(0)  # type: ignore[assignment]
            message: StoredMessage = delivery.message  # type: ignore[assignment]
            if self.stores.has_written(message.location):
                if not message.flags & _BODY_ON_DISK:
                    self._last = without_body(message, self._last or message)
                    delivery.message = self._last
            elif message.references:
                return
            # Messages settled before that are never written.
            unwritten.popleft()
        self.stores.paging.discard(self)
