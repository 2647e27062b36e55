"""Ready messages of which the persistent ones are kept in a store.

What is handed out is marked as reached, so that it is redelivered after a crash; what is settled, or leaves
for good, is released. What was handed out at once to a consumer that settles nothing was never kept.
"""

from warren.model.confirmation import Confirmation
from warren.model.message import PERSISTENT, Message, StoredMessage
from warren.queues.queue import Delivery, Queue
from warren.queues.ready import Ready
from warren.store.lane import Lane
from warren.store.message_store import MessageStore

_PERSISTENT = PERSISTENT


class KeptReady(Ready):
    """What `Ready` is, for a durable queue, or one priority of it."""

    __slots__ = ("_lane", "_store")

    def __init__(self, store: MessageStore, lane: Lane) -> None:
        super().__init__()
        self._store = store
        self._lane = lane

    def pass_by(self, message: Message, queue: Queue) -> Delivery:
        """`message` goes out of `queue` without having waited; only while nothing is ready."""
        delivery = Ready.pass_by(self, message, queue)
        if message.flags & _PERSISTENT:
            self._keep(message, delivery.position)
            self._store.reached(self._lane, delivery.position + 1)
        return delivery

    def push(self, message: Message) -> None:
        """Add `message` behind all others."""
        if message.flags & _PERSISTENT:
            self._keep(message, self._base + self._places.count)
        Ready.push(self, message)

    def pop(self, queue: Queue) -> Delivery:
        """Take the first message out of `queue`. Only while `count` is not 0."""
        delivery = Ready.pop(self, queue)
        if delivery.message.flags & _PERSISTENT:
            self._store.reached(self._lane, delivery.position + 1)
        return delivery

    def pop_message(self) -> Message:
        """Take the first message out for good. Only while `count` is not 0, and `is_fresh`."""
        position = self._base
        message = self._pop_first()
        if message.flags & _PERSISTENT:
            self._release(message, position)
        return message

    def settled(self, delivery: Delivery) -> None:
        """`delivery`, taken out before, will not come back."""
        if delivery.message.flags & _PERSISTENT:
            self._release(delivery.message, delivery.position)

    def confirm(self, confirmation: Confirmation, sequence: int) -> None:
        """Have `confirmation` told when everything that was pushed, or passed by, is on the disk."""
        self._store.confirm(confirmation, sequence)

    def drop(self) -> Message:
        """Take the first message out for good, handed out before or not. Only while `count` is not 0."""
        if not self._returned:
            return self.pop_message()
        position = self._first_returned()
        message = Ready.drop(self)
        if message.flags & _PERSISTENT:
            self._release(message, position)
        return message

    def forget(self) -> None:
        """The queue is gone, and empty."""
        self._store.drop(self._lane)

    def clear(self) -> None:
        """Forget every message."""
        if self._returned:
            for delivery in self._returned.values():
                self.settled(delivery)
        for place in range(self._places.count):
            message: Message = self._places.get(place)  # type: ignore[assignment]
            if message is not None and message.flags & _PERSISTENT:
                self._release(message, self._base + place)
        Ready.clear(self)

    def _take(self, position: int) -> Message:
        message = Ready._take(self, position)
        if message.flags & _PERSISTENT:
            self._release(message, position)
        return message

    def _keep(self, message: Message, position: int) -> None:
        stored: StoredMessage = message  # type: ignore[assignment]
        self._store.append(stored, self._lane, position)

    def _release(self, message: Message, position: int) -> None:
        stored: StoredMessage = message  # type: ignore[assignment]
        self._store.release(stored, self._lane, position)
