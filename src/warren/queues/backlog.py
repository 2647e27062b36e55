"""The interface of a backlog: the ready messages of one classic queue, as the queue uses them.

A backlog has no code in common with another. `MessageBacklog` has the messages of one queue, or of one of its
priority levels, in memory. `DiskBacklog` has a `MessageBacklog`, and stores its messages on disk.
`PriorityBacklog` has a backlog for each priority.
"""

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.queues.queue import Delivery, PeekedMessage, Queue
from warren.queues.ttl_changes import LevelChange
from warren.store.recovered_queue import RecoveredQueue


class Backlog:
    """Ready messages in delivery order, with requeue, expiry, and removal from the middle."""

    __slots__ = ("byte_count", "count")

    def __init__(self) -> None:
        # The number of messages, and the size of their bodies in bytes.
        self.count = 0
        self.byte_count = 0

    # --- a message that arrives ----------------------------------------------------------------

    def push_delivered(self, message: Message, queue: Queue) -> Delivery:
        """Take `message` directly out of `queue` without enqueueing it; only while no message is ready."""
        raise NotImplementedError

    def push(self, message: Message) -> None:
        """Append `message`."""
        raise NotImplementedError

    def push_deadline(self, message: Message, ttl_ms: int) -> int:
        """The deadline (ms) of `message`, which was just pushed; `ttl_ms` is that of the queue.

        -1 means none.
        """
        raise NotImplementedError

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Confirm to `confirmation` when everything pushed or delivered so far is stored as durably as it
        will be.
        """
        raise NotImplementedError

    # --- the first message ---------------------------------------------------------------------

    def pop(self, queue: Queue) -> Delivery:
        """Take the first message out of `queue` for delivery. Only while `count` is not 0."""
        raise NotImplementedError

    def is_deliverable(self) -> bool:
        """True if the message that `pop` would take may be delivered now. Only while `count` is not 0."""
        return True

    def is_fresh(self) -> bool:
        """True if the message that `pop` would take was never delivered before."""
        raise NotImplementedError

    def pop_message(self) -> Message:
        """Take the first message out and settle it. Only while `count` is not 0, and `is_fresh`."""
        raise NotImplementedError

    def drop(self) -> Message:
        """Take the first message out and settle it, delivered before or not. Only while `count` is not 0."""
        raise NotImplementedError

    def first(self) -> Message:
        """The message that `pop` would take, perhaps without its content. Only while `count` is not 0."""
        raise NotImplementedError

    def oldest(self) -> int | None:
        """When the oldest message was published (Unix time, ms); None without messages."""
        raise NotImplementedError

    def counts_by_priority(self) -> dict[int, int] | None:
        """The number of messages of each priority that has any; None without priorities."""
        return None

    # --- a message that was delivered ----------------------------------------------------------

    def settled(self, delivery: Delivery) -> None:
        """Forget `delivery`, which was taken out before and is settled."""
        raise NotImplementedError

    def push_back(self, delivery: Delivery, ttl_ms: int) -> int:
        """Return `delivery` to its place; returns its deadline (ms), or -1."""
        raise NotImplementedError

    def place_of(self, delivery: Delivery) -> int:
        """The place that `delivery` was taken from."""
        raise NotImplementedError

    def whole(self, message: Message) -> Message:
        """`message`, which was delivered, with its content. ConnectionForced if it cannot be read."""
        raise NotImplementedError

    def body(self, message: Message) -> bytes:
        """The body of `message`, which was delivered. ConnectionForced if it cannot be read."""
        raise NotImplementedError

    # --- any message ---------------------------------------------------------------------------

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages from place `first` on, in delivery order."""
        raise NotImplementedError

    def take(self, peeked: PeekedMessage, queue: Queue) -> Delivery | None:
        """Take the `peeked` message out of `queue`, wherever it is; None if it is not ready any more.

        It does not count as delivered.
        """
        raise NotImplementedError

    def extent(self) -> list[range]:
        """The places of all messages that are ready now, as increasing ranges that exclude later messages."""
        raise NotImplementedError

    def last_place(self, message: Message) -> int:
        """The place of `message`, which was the last one pushed."""
        raise NotImplementedError

    def deadline_of(self, message: Message, position: int, ttl_ms: int) -> int:
        """The time (ms) when `message`, which was taken from `position`, expires with `ttl_ms` of the queue.

        -1 means never.
        """
        raise NotImplementedError

    def deadline(self, ttl_ms: int) -> int:
        """The time (ms) when the next message expires, with `ttl_ms` of the queue; -1 means none."""
        raise NotImplementedError

    def pop_expired(self, now: int, ttl_ms: int) -> Message | None:
        """Take out one message that has expired at `now` (ms), wherever it is; None if there is none."""
        raise NotImplementedError

    def expired_place(self, now: int, ttl_ms: int) -> int:
        """The place of one message that has expired at `now` (ms), which the caller removes; -1 if there is
        none.
        """
        raise NotImplementedError

    # --- all messages --------------------------------------------------------------------------

    def clear(self) -> None:
        """Drop all messages."""
        raise NotImplementedError

    def forget(self) -> None:
        """Release everything; called when the queue was deleted and is empty."""
        raise NotImplementedError

    def restore(self, level: int, found: RecoveredQueue, ttl_ms: int) -> None:
        """Restore the messages of priority `level` that were `found`; nothing may have been pushed before."""
        raise NotImplementedError

    def shrink(self) -> None:
        """Page out messages that exceed the memory limit of the queue."""
        raise NotImplementedError

    def paged_count(self) -> int:
        """The number of messages that are only on disk."""
        raise NotImplementedError

    def persistent_count(self) -> int:
        """The number of messages that would survive a restart, ready or unacknowledged."""
        raise NotImplementedError

    def persistent_bytes(self) -> int:
        """The size in bytes of the bodies that would survive a restart."""
        raise NotImplementedError

    def keep_ttl(self, ttl_ms: int) -> None:
        """Keep `ttl_ms` for all present and unacknowledged messages, whatever the queue's value becomes."""
        raise NotImplementedError

    def forget_ttls(self) -> None:
        """Forget earlier times to live, since no message has them any more."""
        raise NotImplementedError

    def kept_ttls(self) -> list[LevelChange]:
        """The changes recorded by `keep_ttl` that still matter."""
        raise NotImplementedError
