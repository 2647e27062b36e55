"""The base of all queues on this node.

The coroutines of the contract end at once here: each is the call of a method that does not wait.
"""

from collections.abc import Callable

from warren.errors import PreconditionFailed
from warren.limits import QUEUE_CONSUMERS_MAX
from warren.model.message import Message
from warren.queues.queue import Consumer, Delivery, PeekedMessage
from warren.queues.queue_counts import QueueCounts
from warren.queues.vhost_queue import VhostQueue


class LocalQueue(VhostQueue):
    """A queue of any kind on this node."""

    __slots__ = ()

    def check_consumer(self, consumer: Consumer) -> None:
        """Raise an AmqpError if `consumer` cannot be added."""
        raise NotImplementedError

    def get(self, no_ack: bool = False) -> Delivery | None:
        """Take the first ready message for basic.get; None if none is ready.

        With `no_ack` it is settled.
        """
        raise NotImplementedError

    def stop_delivering(self, ended: Callable[[], None]) -> None:
        """Deliver no more if that has to be agreed on, and call `ended` when it is: the node stops.

        `ended` may not be called if another node leads before.
        """
        ended()

    def clear(self) -> int:
        """Drop the ready messages; returns their number."""
        raise NotImplementedError

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` ready messages from place `first` on, with their bodies; nothing is changed.

        Raises ConnectionForced if a message cannot be read from disk.
        """
        raise NotImplementedError

    def extent(self) -> list[range]:
        """The places of all messages that are ready now, as increasing ranges that exclude later messages."""
        raise NotImplementedError

    def whole(self, delivery: Delivery) -> Message:
        """The message of `delivery` with its body. ConnectionForced if it cannot be read."""
        return delivery.message

    def quarantined(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages that exceeded the delivery limit and are kept, from place `first` on."""
        return []

    def quarantined_places(self) -> list[int]:
        """The places of all of them, in order."""
        return []

    def release_quarantined(self, place: int) -> bool:
        """Make the quarantined message at `place` ready; False if there is none."""
        return False

    def remove_quarantined(self, place: int) -> bool:
        """Settle the quarantined message at `place`; False if there is none."""
        return False

    @property
    def is_local(self) -> bool:
        """True: its coroutines never wait."""
        return True

    async def inspect(self) -> QueueCounts:
        """The numbers of its ready messages and of its consumers."""
        return self.counts()

    async def fetch(self, no_ack: bool) -> tuple[Delivery, int] | None:
        """Take the first ready message for basic.get, with the number of those behind it; None if there is
        none.

        With `no_ack` it is settled.
        """
        delivery = self.get(no_ack)
        return None if delivery is None else (delivery, self.message_count)

    async def purge(self) -> int:
        """Drop the ready messages; returns their number."""
        return self.clear()

    async def admit(self, consumer: Consumer) -> None:
        """Raise an AmqpError if `consumer` cannot be added; nothing else happens before it is added."""
        self.check_consumer(consumer)
        if self.consumer_count >= QUEUE_CONSUMERS_MAX:
            raise PreconditionFailed(
                f"queue '{self.name}' in vhost '{self.vhost_name}' has reached the maximum"
                f" ({QUEUE_CONSUMERS_MAX}) of consumers"
            )
