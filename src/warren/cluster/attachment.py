"""A consumer of this node at a queue on another node, as this node sees it.

The home delivers up to the totals that were granted last. They are granted anew when half of the window is
used up, if the consumer can take more then. One that cannot is parked, as in a queue of this node, and
reports when it can.
"""

from warren.limits_cluster import REMOTE_WINDOW_MESSAGES, REMOTE_WINDOW_SIZE
from warren.queues.queue import Consumer, Queue

_WINDOW_MESSAGES = REMOTE_WINDOW_MESSAGES
_WINDOW_SIZE = REMOTE_WINDOW_SIZE


class Attachment:
    """One consumer: what it has received, and what it was granted."""

    __slots__ = (
        "byte_count", "bytes_to", "consumer", "count", "id", "is_detached", "is_ending", "is_kept",
        "is_returning", "is_started", "messages_to", "number", "queue", "siblings",
    )  # fmt: skip

    def __init__(self, id: int, consumer: Consumer, queue: Queue, number: int) -> None:
        """`id` is that of the request to admit it, and `number` that of the queue."""
        self.id = id
        self.consumer = consumer
        self.queue = queue
        self.number = number
        # All consumers of its queue, once it is one of them.
        self.siblings: dict[Consumer, Attachment] = {}
        # True once it is admitted, and while its client waits until it gets none any more.
        self.is_started = False
        self.is_ending = False
        # True if it is removed at the leader of a quorum queue, so that what is on its way returns.
        self.is_detached = False
        # True if it outlives a session, since another leader may come.
        self.is_kept = False
        # True from a return of what it could not take until nothing more is on its way: to keep their order,
        # all that follows returns as well.
        self.is_returning = False
        # Messages and bytes of their bodies that it has received, and the totals up to which it may.
        self.count = 0
        self.byte_count = 0
        self.messages_to = 0
        self.bytes_to = 0

    def is_due(self) -> bool:
        """True if half of what was granted is used up."""
        return (
            self.messages_to - self.count <= _WINDOW_MESSAGES >> 1
            or self.bytes_to - self.byte_count <= _WINDOW_SIZE >> 1
        )

    def grant(self) -> bool:
        """Grant what the consumer can take; False if nothing changes, and it is parked if that is nothing."""
        consumer = self.consumer
        if not consumer.is_ready():
            consumer.is_parked = True
            return False
        consumer.is_parked = False
        most = min(_WINDOW_MESSAGES, consumer.shared_capacity())
        messages_to = self.count + most
        bytes_to = self.byte_count + _WINDOW_SIZE
        left = self.messages_to - self.count
        # More than the consumer can take now is taken back, and a grant of little more waits.
        is_enough = most >> 1 < left <= most
        if is_enough and self.bytes_to - self.byte_count > _WINDOW_SIZE >> 1:
            return False
        self.messages_to = messages_to
        self.bytes_to = bytes_to
        return True

    def withdraw(self) -> None:
        """Grant nothing more than it has received, and return what is on its way."""
        self.is_returning = True
        self.messages_to = self.count
