"""A queue that an error of the broker has ended on this node, until the virtual host starts again.

It stands in the place of the broken one: publishes are refused, and whoever wants to use it is told that it
is down. Nothing that is stored is read or released, so that the next start finds the messages as they are.
"""

from collections.abc import Iterator

from warren.errors import NotFound
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.queues.local import LocalQueue
from warren.queues.queue import NACKED, REFUSED, Consumer, Delivery, PeekedMessage
from warren.queues.queue_counts import QueueCounts


class FailedQueue(LocalQueue):
    """What is left of a failed queue."""

    __slots__ = ()

    # --- what clients want ------------------------------------------------------------------------

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        """Refuse `message`."""
        return REFUSED

    def refuses(self, message: Message) -> bool:
        """True: it takes nothing."""
        return True

    def check_consumer(self, consumer: Consumer) -> None:
        """NotFound: it is down."""
        raise self._refusal()

    def check_positioned(self) -> None:
        """NotFound: it is down."""
        raise self._refusal()

    async def inspect(self) -> QueueCounts:
        """NotFound: it is down."""
        raise self._refusal()

    def get(self, no_ack: bool = False) -> Delivery | None:
        """NotFound: it is down."""
        raise self._refusal()

    def clear(self) -> int:
        """NotFound: it is down."""
        raise self._refusal()

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """NotFound: it is down."""
        raise self._refusal()

    def extent(self) -> list[range]:
        """Nothing can be read."""
        return []

    # --- what was delivered before ----------------------------------------------------------------

    def acknowledge(self, delivery: Delivery) -> None:
        """Do nothing: the message is delivered again after the next start."""

    def requeue(self, delivery: Delivery, reason: int = NACKED) -> None:
        """Do nothing: the message is in the store."""

    def reject(self, delivery: Delivery) -> None:
        """Do nothing: the message is delivered again after the next start."""

    def add_consumer(self, consumer: Consumer) -> None:
        """Never called, since none is admitted."""
        raise self._refusal()

    def remove_consumer(self, consumer: Consumer) -> None:
        """Do nothing: it has none."""

    def consumer_ready(self, consumer: Consumer) -> None:
        """Do nothing: it has none."""

    def unpark(self, consumer: Consumer) -> None:
        """Do nothing: it has none."""

    # --- what it says of itself -------------------------------------------------------------------

    @property
    def is_down(self) -> bool:
        """True until the virtual host starts again."""
        return True

    @property
    def message_count(self) -> int:
        """0: what is stored is not read."""
        return 0

    @property
    def is_paused(self) -> bool:
        """False."""
        return False

    @property
    def consumer_count(self) -> int:
        """0: all were cancelled."""
        return 0

    def consumers(self) -> Iterator[Consumer]:
        """None: all were cancelled."""
        return iter(())

    # --- what the metadata say --------------------------------------------------------------------

    def pause(self) -> None:
        """Do nothing: it delivers nothing."""

    def resume(self) -> None:
        """Do nothing: it delivers nothing."""

    def delete(self) -> int:
        """Note that it was deleted; what it has stored is dropped at the next start."""
        self.abandon()
        return 0

    def _refusal(self) -> NotFound:
        return NotFound(
            f"queue '{self.name}' in vhost '{self.vhost_name}' is down, as an error of the broker has ended"
            " it (see its log): restart the node, or delete the queue"
        )
