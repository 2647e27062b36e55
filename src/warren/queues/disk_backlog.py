"""The ready messages of a queue on disk, and paging: only the first messages need be in memory.

The order of the messages is that of a `MessageBacklog`; here each is stored as it arrives and released as it
leaves. Delivered positions are recorded, so that messages are redelivered after a crash; settled messages are
released. A message that was delivered at once with automatic acknowledgement is never stored.

While all messages fit into the memory limit of the queue, they are in memory. Beyond it the queue pages:
messages are pushed to a `PagedTail`, which drops them from memory as soon as they are written. For this,
transient messages are written ("spilled") to a store that is erased at start.
"""

from warren.errors import ConnectionForced
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import (
    BODY_ON_DISK,
    PERSISTENT,
    SPILLED,
    Message,
    StoredMessage,
    body_size_of,
    stored_copy,
)
from warren.model.ring import Ring
from warren.queues.backlog import Backlog
from warren.queues.message_backlog import MessageBacklog
from warren.queues.paged_index import PagedIndex
from warren.queues.paged_tail import OVERHEAD_SHIFT, UNREADABLE, PagedTail
from warren.queues.queue import Delivery, PeekedMessage, Queue
from warren.queues.ttl_changes import LevelChange, TtlChanges
from warren.store.cursor import QueueCursor
from warren.store.recovered_queue import RecoveredQueue
from warren.store.stores import Stores

_PERSISTENT = PERSISTENT
_SPILLED = SPILLED
_BODY_ON_DISK = BODY_ON_DISK
_OVERHEAD_SHIFT = OVERHEAD_SHIFT


class DiskBacklog(Backlog):
    """The backlog of a queue, or of one of its priority levels, on a node with a data directory.

    `cursor` is None for a queue that is not durable: its messages may be paged out, but do not survive.
    """

    __slots__ = (
        "_cursor", "_messages", "_out", "_persistent_bytes", "_persistent_count", "_persistent_flag",
        "_redelivered_below", "_spilled_bytes", "_spilled_count", "_stores",
    )  # fmt: skip

    def __init__(
        self, stores: Stores, cursor: QueueCursor | None, ttl_changes: TtlChanges | None = None
    ) -> None:
        super().__init__()
        self._messages = MessageBacklog()
        self._messages.ttl_changes = ttl_changes
        self._stores = stores
        self._cursor = stores.no_cursor if cursor is None else cursor
        # The flag of messages that are stored durably; 0 if none are.
        self._persistent_flag = _PERSISTENT if cursor is not None else 0
        # The number and bytes of durable messages, and of transient ones that are on disk.
        self._persistent_count = 0
        self._persistent_bytes = 0
        self._spilled_count = 0
        self._spilled_bytes = 0
        # Positions taken from the middle that are neither settled nor returned; None if there never were any.
        self._out: set[int] | None = None
        # All positions before this one were delivered before the last start.
        self._redelivered_below = 0

    # --- a message that arrives ----------------------------------------------------------------

    def push_delivered(self, message: Message, queue: Queue) -> Delivery:
        """Take `message` directly out of `queue` without enqueueing it; only while no message is ready."""
        delivery = self._messages.push_delivered(message, queue)
        if message.flags & self._persistent_flag:
            self.keep_message(message, delivery.position)
            self.note_delivered(delivery.position + 1)
        return delivery

    def push(self, message: Message) -> None:
        """Append `message`."""
        messages = self._messages
        tail = messages.tail
        if tail is None:
            if message.flags & self._persistent_flag:
                self.keep_message(message, messages.base + messages.places.count)
            messages.push(message)
        else:
            if message.flags & self._persistent_flag:
                self.keep_message(message, tail.end())
            else:
                message = self._spill(message)
            messages.push_to_tail(message)
            tail.shrink()
        self.count = messages.count
        self.byte_count = messages.byte_count
        if tail is None and self._exceeds_memory():
            messages.tail = PagedTail(self._stores, messages.end())

    def push_deadline(self, message: Message, ttl_ms: int) -> int:
        """The deadline (ms) of `message`, which was just pushed; -1 means none."""
        return self._messages.push_deadline(message, ttl_ms)

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Confirm to `confirmation` when everything pushed or delivered so far is on disk."""
        if self._persistent_flag:
            self._stores.persistent.confirm(confirmation, sequence)

    # --- the first message ---------------------------------------------------------------------

    def pop(self, queue: Queue) -> Delivery:
        """Take the first message out of `queue` for delivery. Only while `count` is not 0."""
        messages = self._messages
        if messages.requeued is not None:
            self._read_first_requeued()
        delivery = messages.pop(queue)
        self.count = messages.count
        self.byte_count = messages.byte_count
        flags = delivery.message.flags
        if flags & self._persistent_flag:
            if delivery.position < self._redelivered_below and not delivery.attempts:
                delivery.attempts = 1
            self.note_delivered(delivery.position + 1)
        elif flags & _SPILLED:
            self._unspill(delivery.message)
        return delivery

    def is_fresh(self) -> bool:
        """True if the message that `pop` would take was never delivered before."""
        messages = self._messages
        requeued = messages.requeued
        return (requeued is None or not requeued.count) and messages.base >= self._redelivered_below

    def pop_message(self) -> Message:
        """Take the first message out and settle it. Only while `count` is not 0, and `is_fresh`."""
        messages = self._messages
        position = messages.base
        message = messages.pop_message()
        self.count = messages.count
        self.byte_count = messages.byte_count
        self.release_message(message, position)
        if message.flags & self._persistent_flag:
            # It may reappear after a crash until the release is written.
            self.note_delivered(position + 1)
        return message

    def drop(self) -> Message:
        """Take the first message out and settle it, delivered before or not. Only while `count` is not 0."""
        messages = self._messages
        if messages.requeued is not None:
            self._read_first_requeued()
        position = messages.first_position()
        message = messages.drop()
        self.count = messages.count
        self.byte_count = messages.byte_count
        self.release_message(message, position)
        return message

    def first(self) -> Message:
        """The message that `pop` would take, perhaps without its content. Only while `count` is not 0."""
        return self._messages.first()

    def oldest(self) -> int | None:
        """When the oldest message was published (Unix time, ms); None without messages."""
        return self._messages.oldest()

    # --- a message that was delivered ----------------------------------------------------------

    def settled(self, delivery: Delivery) -> None:
        """Forget `delivery`, which was taken out before and is settled."""
        if self._out:
            self._out.discard(delivery.position)
        self.release_message(delivery.message, delivery.position)
        if delivery.message.flags & _BODY_ON_DISK:
            self._persistent_bytes -= delivery.byte_count

    def push_back(self, delivery: Delivery, ttl_ms: int) -> int:
        """Return `delivery` to its place; returns its deadline (ms), or -1."""
        if self._out:
            self._out.discard(delivery.position)
        messages = self._messages
        deadline = messages.push_back(delivery, ttl_ms)
        self.count = messages.count
        self.byte_count = messages.byte_count
        return deadline

    def place_of(self, delivery: Delivery) -> int:
        """The place that `delivery` was taken from."""
        return delivery.position

    def whole(self, message: Message) -> Message:
        """`message`, which was delivered, with its content. ConnectionForced if it cannot be read."""
        if not message.flags & _BODY_ON_DISK:
            return message
        stored: StoredMessage = message  # type: ignore[assignment]
        read = self._stores.read(stored.location)
        if read is None:
            # The error was reported, and the virtual host will be restarted.
            raise ConnectionForced(UNREADABLE)
        return read

    def body(self, message: Message) -> bytes:
        """The body of `message`, which was delivered. ConnectionForced if it cannot be read."""
        if not message.flags & _BODY_ON_DISK:
            return message.content[:-1]
        stored: StoredMessage = message  # type: ignore[assignment]
        read = self._stores.read_body(stored.location)
        if read is None:
            raise ConnectionForced(UNREADABLE)
        return read

    # --- any message ---------------------------------------------------------------------------

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        """Up to `count` messages from place `first` on, in delivery order."""
        found = self._messages.peek(first, count)
        for peeked in found:
            peeked.message = self.whole(peeked.message)
            if peeked.place < self._redelivered_below and not peeked.attempts:
                peeked.attempts = 1
        return found

    def take(self, peeked: PeekedMessage, queue: Queue) -> Delivery | None:
        """Take the `peeked` message out of `queue`, wherever it is; None if it is not ready any more.

        It does not count as delivered.
        """
        messages = self._messages
        delivery = messages.take(peeked, queue)
        if delivery is None:
            return None
        self.count = messages.count
        self.byte_count = messages.byte_count
        if delivery.message.flags & _SPILLED:
            self._unspill(delivery.message)
        if self._out is None:
            self._out = set()
        self._out.add(delivery.position)
        return delivery

    def extent(self) -> list[range]:
        """The places of all messages that are ready now, as increasing ranges that exclude later messages."""
        return self._messages.extent()

    def last_place(self, message: Message) -> int:
        """The place of `message`, which was the last one pushed."""
        return self._messages.last_place(message)

    def deadline_of(self, message: Message, position: int, ttl_ms: int) -> int:
        """The time (ms) when `message`, which was taken from `position`, expires; -1 means never."""
        return self._messages.deadline_of(message, position, ttl_ms)

    def deadline(self, ttl_ms: int) -> int:
        """The time (ms) when the next message expires, with `ttl_ms` of the queue; -1 means none."""
        return self._messages.deadline(ttl_ms)

    def pop_expired(self, now: int, ttl_ms: int) -> Message | None:
        """Take out one message that has expired at `now` (ms), wherever it is.

        None if there is none, or if it cannot be read any more.
        """
        messages = self._messages
        position = messages.expired_place(now, ttl_ms)
        if position < 0:
            return None
        delivery = messages.requeued_at(position)
        if delivery is not None:
            delivery.message = self.whole(delivery.message)
        message = messages.remove(position, None)
        self.count = messages.count
        self.byte_count = messages.byte_count
        if message is not None:
            self.release_message(message, position)
        return message

    def expired_place(self, now: int, ttl_ms: int) -> int:
        """The place of one message that has expired at `now` (ms), which the caller removes; -1 if there is
        none.
        """
        return self._messages.expired_place(now, ttl_ms)

    # --- all messages --------------------------------------------------------------------------

    def clear(self) -> None:
        """Drop all messages."""
        messages = self._messages
        tail = messages.tail
        byte_count = messages.byte_count
        if messages.requeued is not None:
            for delivery in messages.requeued.deliveries():
                byte_count -= delivery.byte_count
                self.settled(delivery)
        byte_count -= self._release_all(messages.places, messages.base)
        if tail is not None:
            index = tail.index
            byte_count -= self._release_all(tail.recent, tail.recent_base)
            if index.count:
                self._finish(index.first_position(), index.end(), byte_count)
                self.discard_index(index)
            self._uncount(index.count, byte_count)
        messages.clear()
        self.count = 0
        self.byte_count = 0

    def forget(self) -> None:
        """Release everything; called when the queue was deleted and is empty."""
        if self._persistent_flag:
            self._stores.persistent.drop(self._cursor)

    def restore(self, level: int, found: RecoveredQueue, ttl_ms: int) -> None:
        """Restore the messages that were `found`; delivered ones are redelivered. The backlog must be new."""
        messages = self._messages
        self._redelivered_below = found.delivered_up_to
        messages.start_at(found.end)
        if not found.count:
            return
        tail = PagedTail(self._stores, found.end)
        positions, locations = found.positions, found.locations
        for place in range(positions.count):
            tail.index.append(positions.get(place), locations.get(place))
        self._persistent_count = found.count
        self._persistent_bytes = found.byte_count
        messages.restore_tail(tail, found.byte_count)
        self.count = messages.count
        self.byte_count = messages.byte_count
        self._restore_deadlines(found, ttl_ms)

    def shrink(self) -> None:
        """Page out messages that exceed the memory limit of the queue and have been written."""
        messages = self._messages
        if messages.tail is None:
            if not self._exceeds_memory() or not messages.places.count:
                return
            messages.tail = self._tail_of(messages.cut(self._stores.queue_memory_max))
        messages.tail.shrink()

    def paged_count(self) -> int:
        """The number of messages that are only on disk."""
        return self._messages.paged_count()

    def persistent_count(self) -> int:
        """The number of messages that would survive a restart, ready or unacknowledged."""
        return self._persistent_count

    def persistent_bytes(self) -> int:
        """The size in bytes of the bodies that would survive a restart."""
        return self._persistent_bytes

    def keep_ttl(self, ttl_ms: int) -> None:
        """Keep `ttl_ms` for all present and unacknowledged messages, whatever the queue's value becomes."""
        self._messages.keep_ttl(ttl_ms)

    def forget_ttls(self) -> None:
        """Forget earlier times to live, since no message has them any more."""
        self._messages.forget_ttls()

    def kept_ttls(self) -> list[LevelChange]:
        """The changes recorded by `keep_ttl` that still matter."""
        return self._messages.kept_ttls()

    # --- private -------------------------------------------------------------------------------

    def _read_first_requeued(self) -> None:
        """Read the content of the first message, if it was requeued."""
        delivery = self._messages.first_requeued()
        if delivery is not None:
            delivery.message = self.whole(delivery.message)

    def _exceeds_memory(self) -> bool:
        """True if the messages, which are all in memory, exceed the memory limit."""
        return self.byte_count + (self.count << _OVERHEAD_SHIFT) > self._stores.queue_memory_max

    def _tail_of(self, rest: Ring) -> PagedTail:
        """A tail with the messages of `rest`, which were cut off; those not on disk yet will be written."""
        tail = PagedTail(self._stores, self._messages.end())
        for place in range(rest.count):
            message: Message | None = rest.get(place)  # type: ignore[assignment]
            # It may be stored already: when a queue stops paging, its recent messages become the ring.
            if message is not None and not message.flags & (self._persistent_flag | _SPILLED):
                message = self._spill(message)
            tail.append(message)
        return tail

    def keep_message(self, message: Message, position: int) -> None:
        stored: StoredMessage = message  # type: ignore[assignment]
        stores = self._stores
        self._persistent_count += 1
        self._persistent_bytes += body_size_of(message)
        stores.write_count += 1
        stores.persistent.append(stored, self._cursor, position)

    def release_message(self, message: Message, position: int) -> None:
        if message.flags & self._persistent_flag:
            stored: StoredMessage = message  # type: ignore[assignment]
            self._persistent_count -= 1
            # The place of a message without content is released by `settled`.
            self._persistent_bytes -= body_size_of(message)
            if message.flags & _BODY_ON_DISK:
                self._stores.persistent.release_at(stored.location, self._cursor, position)
            else:
                self._stores.persistent.release(stored, self._cursor, position)
        elif message.flags & _SPILLED:
            self._unspill(message)

    def note_delivered(self, end: int) -> None:
        """Record that everything before position `end` was delivered."""
        self._stores.persistent.delivered_up_to(self._cursor, end)

    def discard_index(self, index: PagedIndex) -> None:
        """Release the references of the messages in `index`, whose positions are settled."""
        self._stores.discard(index)

    def _spill(self, message: Message) -> StoredMessage:
        """A copy of the transient `message` that is to be written to disk."""
        stored = stored_copy(message, _SPILLED)
        self._spilled_count += 1
        self._spilled_bytes += body_size_of(message)
        self._stores.write_count += 1
        self._stores.transient.append(stored, self._stores.no_cursor, 0)
        return stored

    def _unspill(self, message: Message) -> None:
        """Release the place of the transient `message` on disk, which leaves the queue."""
        stored: StoredMessage = message  # type: ignore[assignment]
        self._stores.transient.release(stored, self._stores.no_cursor, 0)
        stored.flags &= ~_SPILLED
        self._spilled_count -= 1
        self._spilled_bytes -= body_size_of(message)

    def _finish(self, first: int, end: int, byte_count: int) -> None:
        """Settle the positions from `first` up to `end` in the store, except those taken out before.

        `byte_count` is the size of the bodies of their messages.
        """
        for position in sorted(self._out or ()):
            if first <= position < end:
                if first < position:
                    self.finish_range(first, position, byte_count)
                    byte_count = 0
                first = position + 1
        if first < end:
            self.finish_range(first, end, byte_count)

    def finish_range(self, first: int, end: int, byte_count: int) -> None:
        """Settle the positions from `first` up to `end` in the store; with others they have `byte_count`."""
        self._stores.persistent.finish(self._cursor, first, end)

    def _uncount(self, count: int, byte_count: int) -> None:
        """Subtract the messages of a dropped index, which contained all transient messages on disk."""
        self._persistent_count -= count - self._spilled_count
        self._persistent_bytes -= byte_count - self._spilled_bytes
        self._spilled_count = 0
        self._spilled_bytes = 0

    def _release_all(self, ring: Ring, base: int) -> int:
        """Release the messages in `ring`, from position `base` on; returns the size of their bodies."""
        byte_count = 0
        for place in range(ring.count):
            message: Message | None = ring.get(place)  # type: ignore[assignment]
            if message is not None:
                byte_count += body_size_of(message)
                self.release_message(message, base + place)
        return byte_count

    def _restore_deadlines(self, found: RecoveredQueue, ttl_ms: int) -> None:
        """Note the deadlines of the messages that were `found` with an expiration of their own."""
        reader = self._stores.persistent.reader()
        for position, location in found.expiring:
            message = reader.read(location)
            if message is not None:
                self._messages.add_deadline(message, position, ttl_ms)
