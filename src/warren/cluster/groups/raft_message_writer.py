"""Encodes messages of the Raft core with the messages of their queues: see `cluster/groups/group_payloads`.

What belongs to an entry is encoded once for all members that it is sent to, and copied for each of them.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from warren.cluster.groups.group_payloads import (
    ABSENT,
    COUNT,
    ENTRY_HEAD,
    HAS_COMMIT,
    HAS_CONTEXT,
    HAS_DIED,
    HAS_ENTRIES,
    HAS_HINT,
    HAS_INDEX,
    HAS_SNAPSHOT,
    IS_FORCED,
    IS_REJECTED,
    LEVEL_SHIFT,
    NUMBER,
    RUN,
    SAME_ADDRESS,
    SAME_PRIORITY,
    SAME_PROPERTIES,
    SAME_TIME,
    SHORT_COUNT,
    TWO_NUMBERS,
)
from warren.limits_raft import READ_CONTEXT_SIZE_MAX
from warren.model.message import BODY_ON_DISK, StoredMessage, has_died, published_at_of
from warren.queues.quorum.raft_storage import QuorumPayload, QuorumSnapshot, encode_configuration
from warren.replication.raft.raft_messages import Entry, RaftMessage, Snapshot
from warren.store.group_record import message_count_of
from warren.store.packing import copied, put

_ABSENT = bytes((ABSENT,))
_BODY_ON_DISK = BODY_ON_DISK
_SAME_ADDRESS = SAME_ADDRESS
_SAME_PROPERTIES = SAME_PROPERTIES
_SAME_PRIORITY = SAME_PRIORITY
_SAME_TIME = SAME_TIME
_HAS_DIED = HAS_DIED
_IS_REJECTED = IS_REJECTED
_IS_FORCED = IS_FORCED
_HAS_INDEX = HAS_INDEX
_HAS_COMMIT = HAS_COMMIT
_HAS_HINT = HAS_HINT
_HAS_CONTEXT = HAS_CONTEXT
_HAS_ENTRIES = HAS_ENTRIES
_HAS_SNAPSHOT = HAS_SNAPSHOT
# Filled with the head of a message of the Raft core, and copied: 26 bytes of each, up to 37 of some, and the
# context.
_MESSAGE_BYTES = bytearray(26 + 37 + READ_CONTEXT_SIZE_MAX)
# Filled with what stands before a message, and copied: flags, time, priority, and two sizes.
_HEAD_BYTES = bytearray(14)


class EncodedEntry(Struct, frozen=True):
    """An entry as it is sent, in pieces that are joined with those of others."""

    parts: Sequence[bytes]
    size: int


class ContentWriter:
    """Encodes messages of a queue, one after the other."""

    __slots__ = ("_address", "_priority", "_properties", "_published_at", "parts", "size")

    def __init__(self) -> None:
        # What was encoded, and its size in bytes.
        self.parts: list[bytes] = []
        self.size = 0
        # Those of the message before.
        self._address: bytes | None = None
        self._properties: bytes | None = None
        self._priority = 0
        self._published_at = -1

    def add(self, part: bytes) -> None:
        """Add what is no message."""
        self.parts.append(part)
        self.size += len(part)

    def write(self, message: StoredMessage | None) -> None:
        """Add a message; None is one that is settled."""
        if message is None:
            self.add(_ABSENT)
            return
        assert not message.flags & _BODY_ON_DISK, "the body of a message is read before"
        content = message.content
        self._add_head(message, len(content))
        self.add(content)

    def _add_head(self, message: StoredMessage, size: int) -> None:
        """Add what stands before the body of `message`, which has `size` bytes with its end."""
        head = _HEAD_BYTES
        at = 1
        flags = _HAS_DIED if has_died(message) else 0
        published_at = published_at_of(message)
        if published_at == self._published_at:
            flags |= _SAME_TIME
        else:
            self._published_at = published_at
            put(head, at, 6, published_at)
            at += 6
        priority = message.priority
        if priority == self._priority:
            flags |= _SAME_PRIORITY
        else:
            self._priority = priority
            put(head, at, 1, priority)
            at += 1
        put(head, at, 4, size)
        at += 4
        address = message.address
        has_address = address is not self._address and address != self._address
        properties = message.property_list
        has_properties = properties is not self._properties and properties != self._properties
        if has_address:
            self._address = address
            put(head, at, 2, len(address))
            at += 2
        else:
            flags |= _SAME_ADDRESS
        if has_properties:
            self._properties = properties
        else:
            flags |= _SAME_PROPERTIES
        put(head, 0, 1, flags)
        self.add(copied(head, at))
        if has_address:
            self.add(address)
        if has_properties:
            put(head, 0, 4, len(properties))
            self.add(copied(head, 4))
            self.add(properties)


def encode_entry(entry: Entry, contents: Iterable[StoredMessage | None]) -> EncodedEntry:
    """Encode an entry with the messages at the positions of its runs, in order."""
    writer, payload = ContentWriter(), entry.payload
    if isinstance(payload, QuorumPayload):
        runs, commands = payload.runs, payload.commands
    else:
        assert isinstance(payload, bytes), f"the payload of {entry} is one of another group"
        runs, commands = (), payload
    head = ENTRY_HEAD.pack(entry.term, entry.kind, entry.size, len(commands), len(runs))
    for run in runs:
        head += RUN.pack(run.level << LEVEL_SHIFT | run.first, run.count)
    writer.add(head + commands)
    count = 0
    for message in contents:
        writer.write(message)
        count += 1
    assert count == message_count_of(runs), f"{count} messages of {entry}"
    return EncodedEntry(writer.parts, writer.size)


def encode_message(group: int, message: RaftMessage, entries: Sequence[EncodedEntry] = ()) -> list[bytes]:
    """Encode a message of `group`, in pieces to be joined; `entries` are its own, encoded."""
    assert len(entries) == len(message.entries)
    head, at = _MESSAGE_BYTES, 26
    context = message.context
    assert len(context) <= READ_CONTEXT_SIZE_MAX
    flags = _IS_REJECTED if message.is_rejected else 0
    if message.is_forced:
        flags |= _IS_FORCED
    if message.index or message.log_term:
        flags |= _HAS_INDEX
        put(head, at, 8, message.index)
        put(head, at + 8, 8, message.log_term)
        at += 16
    if message.commit:
        flags |= _HAS_COMMIT
        put(head, at, 8, message.commit)
        at += 8
    if message.hint:
        flags |= _HAS_HINT
        put(head, at, 8, message.hint)
        at += 8
    if context:
        flags |= _HAS_CONTEXT
        put(head, at, 1, len(context))
        head[at + 1 : at + 1 + len(context)] = context
        at += 1 + len(context)
    if entries:
        flags |= _HAS_ENTRIES
        put(head, at, 4, len(entries))
        at += 4
    if message.snapshot is not None:
        flags |= _HAS_SNAPSHOT
    put(head, 0, 8, group)
    put(head, 8, 1, message.kind)
    put(head, 9, 1, flags)
    put(head, 10, 4, message.to)
    put(head, 14, 4, message.sender)
    put(head, 18, 8, message.term)
    parts = [copied(head, at)]
    for entry in entries:
        parts += entry.parts
    if message.snapshot is not None:
        parts.append(_encoded_snapshot(message.snapshot))
    return parts


def encode_ends(ends: dict[int, int]) -> bytes:
    """Encode the positions behind the last messages, by priority level."""
    rows = [NUMBER.pack(level << LEVEL_SHIFT | end) for level, end in sorted(ends.items())]
    return SHORT_COUNT.pack(len(rows)) + b"".join(rows)


def _encoded_snapshot(snapshot: Snapshot) -> bytes:
    payload = snapshot.payload
    assert isinstance(payload, QuorumSnapshot), f"the payload of {snapshot} is one of another group"
    configuration = encode_configuration(snapshot.configuration)
    return b"".join((
        TWO_NUMBERS.pack(snapshot.index, snapshot.term), COUNT.pack(len(configuration)), configuration,
        COUNT.pack(len(payload.machine)), payload.machine, encode_ends(payload.ends),
    ))  # fmt: skip
