"""Encodes what passes between a node and the home of its remote queues: see `cluster/remote_codec`."""

from struct import Struct as Layout

from warren.cluster.remote_codec import (
    ANSWER,
    ASK,
    ASK_REPLY,
    ATTACH,
    ATTACH_AT,
    CANCELLED,
    CLAIM,
    CLAIMED,
    CONFIRM,
    CREDIT,
    DELIVER,
    DELIVER_AT,
    DETACH,
    ENQUEUER,
    FAILED,
    FORGET,
    GET,
    GOT,
    LEADING,
    LOST,
    NAME,
    NOT_LEADER,
    PUBLISH,
    REFUSE,
    REPLY,
    RESUME,
    SAME_ADDRESS,
    SAME_PROPERTIES,
    SAME_QUEUES,
    SETTLE,
    SETTLE_AT,
    SETTLED,
    START,
    TOUCH,
    encode_string,
)
from warren.limits_cluster import (
    REMOTE_BATCH_PIECES,
    REMOTE_BATCH_SIZE,
    REMOTE_PLACES_MAX,
    REMOTE_TARGETS_MAX,
    REMOTE_TEXT_SIZE_MAX,
)
from warren.model.message import Message
from warren.store.packing import copied, put
from warren.wire.strings import encode_text

_SAME_ADDRESS = SAME_ADDRESS
_SAME_PROPERTIES = SAME_PROPERTIES
_SAME_QUEUES = SAME_QUEUES
_PUBLISH = PUBLISH
_SETTLE = SETTLE
_DELIVER = DELIVER
_DELIVER_AT = DELIVER_AT
_SETTLE_AT = SETTLE_AT
_PLACES_MAX = REMOTE_PLACES_MAX
_TARGETS_MAX = REMOTE_TARGETS_MAX
_BATCH_SIZE = REMOTE_BATCH_SIZE
_BATCH_PIECES = REMOTE_BATCH_PIECES
_NONE = -1
# Heads of items are written here and copied.
_HEAD_BYTES = bytearray(64)
_LAYOUTS = {
    NAME: Layout(">BQ"),
    ATTACH: Layout(">BIQBq"),
    START: Layout(">BIIQQ"),
    CREDIT: Layout(">BIQQ"),
    DETACH: Layout(">BII"),
    GET: Layout(">BIQB"),
    ASK: Layout(">BIQB"),
    ASK_REPLY: Layout(">BI"),
    TOUCH: Layout(">BQ"),
    FORGET: Layout(">BQ"),
    CONFIRM: Layout(">BQI"),
    REFUSE: Layout(">BQI"),
    GOT: Layout(">BIIBIB"),
    ANSWER: Layout(">BIQQQ"),
    FAILED: Layout(">BIHH"),
    CANCELLED: Layout(">BI"),
    LOST: Layout(">B"),
    ENQUEUER: Layout(">BQQQ"),
    RESUME: Layout(">BQ"),
    ATTACH_AT: Layout(">BQIBqQ"),
    CLAIM: Layout(">BQIQI"),
    CLAIMED: Layout(">BQ"),
    SETTLE_AT: Layout(">BQBQI"),
    SETTLED: Layout(">BQI"),
    NOT_LEADER: Layout(">BQ"),
    LEADING: Layout(">BQ"),
}


class PayloadWriter:
    """Collects items until `take` returns them encoded.

    The bodies of messages are referred to until then, and copied once. Deliveries that are settled one after
    the other become one item, and so do publishes of one message to several queues.
    """

    __slots__ = (
        "_address", "_flags", "_message", "_more", "_parts", "_properties", "_queue", "_run_count",
        "_run_first", "_run_how", "_run_queue", "_sole_queue", "size",
    )  # fmt: skip

    def __init__(self) -> None:
        # The size of what was collected, without the head.
        self.size = 0
        self._parts: list[bytes] = []
        # The address and the properties of the message that was written last.
        self._address: bytes | None = None
        self._properties: bytes | None = None
        # The message that is being published, its flags, its first queue and others, since more may follow.
        self._message: Message | None = None
        self._flags = 0
        self._queue = 0
        self._more: list[int] | None = None
        # The only queue of the message before; 0 if it had several.
        self._sole_queue = 0
        # The latest run of settled deliveries, or of places of a quorum queue.
        self._run_queue = 0
        self._run_how = _NONE
        self._run_first = 0
        self._run_count = 0

    def publish(self, message: Message, queue: int, flags: int) -> None:
        """Add `message` for the `queue`, which has been named; `flags` are WANTS_CONFIRM and HAS_DIED."""
        if message is self._message and flags == self._flags:
            if self._more is None:
                self._more = []
            if len(self._more) < _TARGETS_MAX - 1:
                self._more.append(queue)
                self.size += 8
                return
        self._end()
        self._message = message
        self._flags = flags
        self._queue = queue
        self.size += 18 + len(message.content)

    def settle(self, how: int, number: int) -> None:
        """Add that delivery `number` is settled."""
        if self._run_how == how and number == self._run_first + self._run_count and not self._run_queue:
            self._run_count += 1
            return
        self._end()
        self._run_how = how
        self._run_first = number
        self._run_count = 1
        self.size += 14

    def settle_at(self, queue: int, how: int, place: int) -> bool:
        """Add that the message at `place` of a quorum queue is settled; False if that continues an item."""
        count = self._run_count
        if (
            self._run_queue == queue and self._run_how == how and place == self._run_first + count
            and count < _PLACES_MAX
        ):  # fmt: skip
            self._run_count = count + 1
            return False
        self._end()
        self._run_queue = queue
        self._run_how = how
        self._run_first = place
        self._run_count = 1
        self.size += 22
        return True

    def deliver(self, message: Message, consumer: int, attempts: int, flags: int) -> None:
        """Add a delivery of `message`; `flags` may be NO_ACK."""
        self._end()
        head = _HEAD_BYTES
        flags |= self._shared(message)
        put(head, 0, 1, _DELIVER)
        put(head, 1, 4, consumer)
        put(head, 5, 1, flags)
        put(head, 6, 4, attempts)
        put(head, 10, 1, message.flags & 0xFF)
        self._add_message(head, 11, message, flags)
        self.size += 15 + len(message.content)

    def deliver_at(self, message: Message, consumer: int, attempts: int, place: int) -> None:
        """Add a delivery of `message`, which has a `place` in the group of its queue."""
        self._end()
        head = _HEAD_BYTES
        flags = self._shared(message)
        put(head, 0, 1, _DELIVER_AT)
        put(head, 1, 4, consumer)
        put(head, 5, 1, flags)
        put(head, 6, 4, attempts)
        put(head, 10, 1, message.flags & 0xFF)
        put(head, 11, 8, place)
        self._add_message(head, 19, message, flags)
        self.size += 23 + len(message.content)

    def got(self, message: Message, request: int, attempts: int, left: int) -> None:
        """Add the answer to GET: `message`, with `left` behind it."""
        self._end()
        flags = self._shared(message)
        self._add(_LAYOUTS[GOT].pack(GOT, request, left, flags, attempts, message.flags & 0xFF))
        self._add_message(_HEAD_BYTES, 0, message, flags)
        self.size += len(message.content)

    def reply(self, message: Message) -> None:
        """Add a direct reply."""
        self._end()
        flags = self._shared(message)
        self._add(bytes((REPLY, flags)))
        self._add_message(_HEAD_BYTES, 0, message, flags)
        self.size += len(message.content)

    def add(self, kind: int, *numbers: int) -> None:
        """Add an item that consists of `numbers`."""
        self._end()
        self._add(_LAYOUTS[kind].pack(kind, *numbers))

    def add_named(self, kind: int, text: str, *numbers: int) -> None:
        """Add an item that consists of `numbers` and a string."""
        self.add(kind, *numbers)
        self._add(encode_string(text))

    def attach(self, tag: str, table: bytes, *numbers: int) -> None:
        """Add ATTACH of the consumer `tag` with its arguments as an encoded `table`."""
        self.add_named(ATTACH, tag, *numbers)
        self._add(table)

    def fail(self, request: int, code: int, text: str) -> None:
        """Add that `request` has failed with a reply code."""
        data = encode_text(text)[:REMOTE_TEXT_SIZE_MAX]
        self.add(FAILED, request, code, len(data))
        self._add(data)

    def is_empty(self) -> bool:
        """True if there is nothing to send."""
        return not self.size

    def is_full(self) -> bool:
        """True if it is so much that it should be sent now."""
        return self.size >= _BATCH_SIZE or len(self._parts) >= _BATCH_PIECES

    def take(self, head: bytes) -> bytes:
        """All items since the last call, behind `head`; empty if there is none."""
        if not self.size:
            return b""
        self._end()
        payload = b"".join((head, *self._parts))
        self.clear()
        return payload

    def clear(self) -> None:
        """Forget everything."""
        self._parts = []
        self.size = 0
        self._address = self._properties = self._message = None
        self._more = None
        self._sole_queue = 0
        self._run_how = _NONE
        self._run_queue = 0

    def _add(self, part: bytes) -> None:
        self._parts.append(part)
        self.size += len(part)

    def _end(self) -> None:
        """Write the item that could have been continued."""
        if self._message is not None:
            self._end_message(self._message)
        elif self._run_how != _NONE:
            self._end_run()

    def _end_run(self) -> None:
        """Write what was settled one after the other."""
        head = _HEAD_BYTES
        at = 1
        if self._run_queue:
            put(head, 0, 1, _SETTLE_AT)
            put(head, 1, 8, self._run_queue)
            at = 9
        else:
            put(head, 0, 1, _SETTLE)
        put(head, at, 1, self._run_how)
        put(head, at + 1, 8, self._run_first)
        put(head, at + 9, 4, self._run_count)
        self._parts.append(copied(head, at + 13))
        self._run_how = _NONE
        self._run_queue = 0

    def _end_message(self, message: Message) -> None:
        """Write the message that was published, with its queues."""
        head = _HEAD_BYTES
        more = self._more
        flags = self._flags | self._shared(message)
        is_same = more is None and self._queue == self._sole_queue
        if is_same:
            flags |= _SAME_QUEUES
        put(head, 0, 1, _PUBLISH)
        put(head, 1, 1, flags)
        self._message = None
        self._add_message(head, 2, message, flags)
        if is_same:
            return
        if more is None:
            self._sole_queue = self._queue
            put(head, 0, 2, 1)
            put(head, 2, 8, self._queue)
            self._parts.append(copied(head, 10))
            return
        self._sole_queue = 0
        self._more = None
        numbers = [self._queue, *more]
        self._parts.append(len(numbers).to_bytes(2, "big") + b"".join(n.to_bytes(8, "big") for n in numbers))

    def _shared(self, message: Message) -> int:
        """The flags that say what is the same as in the message before."""
        flags = 0
        address = message.address
        if address is self._address or address == self._address:
            flags |= _SAME_ADDRESS
        else:
            self._address = address
        properties = message.property_list
        if properties is self._properties or properties == self._properties:
            flags |= _SAME_PROPERTIES
        else:
            self._properties = properties
        return flags

    def _add_message(self, head: bytearray, at: int, message: Message, flags: int) -> None:
        """Write `head`, of which `at` bytes are filled in, and `message`."""
        content = message.content
        parts = self._parts
        put(head, at, 4, len(content))
        at += 4
        if flags & _SAME_ADDRESS == 0:
            address = message.address
            put(head, at, 2, len(address))
            parts.append(copied(head, at + 2))
            parts.append(address)
            self.size += len(address)
            at = 0
        if flags & _SAME_PROPERTIES == 0:
            properties = message.property_list
            put(head, at, 4, len(properties))
            parts.append(copied(head, at + 4))
            parts.append(properties)
            self.size += len(properties)
            at = 0
        if at:
            parts.append(copied(head, at))
        parts.append(content)
