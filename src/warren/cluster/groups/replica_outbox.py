"""What is to be sent to the replicas on one other node, until its link takes it.

Votes, heartbeats and answers to them go over the control connection, and are dropped if that is full: what is
not answered is repeated. Appends and their answers go over the data connection, and wait for it. The messages
with their entries are read as they are encoded: those in memory at once, and those on the disk a piece in
each turn. A group of which something waits for the disk waits with all that follows, in order.
"""

from collections import deque
from collections.abc import Callable, Sequence

from warren.cluster.groups.group_payloads import VERSION, GroupPayload
from warren.cluster.groups.group_replica import GroupReplica
from warren.cluster.groups.parted_channel import PartedChannel
from warren.cluster.groups.raft_message_writer import EncodedEntry, encode_entry, encode_message
from warren.cluster.hello import LinkPurpose
from warren.cluster.node_link import NodeLink
from warren.limits_raft import GROUP_HELD_MESSAGES_MAX, GROUP_PAYLOAD_SIZE, GROUP_READ_SIZE
from warren.model.message import BODY_ON_DISK, StoredMessage
from warren.replication.raft.raft_messages import Entry, MessageKind, RaftMessage

# Group, index and term of an entry -> the entry as it is sent.
EncodedEntries = dict[tuple[int, int, int], EncodedEntry]
_OVER_DATA = frozenset({MessageKind.APPEND, MessageKind.APPEND_RESPONSE})
_VERSION = bytes((VERSION,))
_BODY_ON_DISK = BODY_ON_DISK
_Waiting = tuple[GroupReplica, RaftMessage]


class ReplicaOutbox:
    """Messages of the Raft core for the replicas on one node."""

    __slots__ = (
        "_behind", "_behind_count", "_budget", "_data", "_held", "_is_writable", "_lost", "_parts", "_size",
        "control", "data",
    )  # fmt: skip

    def __init__(self, find: Callable[[], NodeLink | None]) -> None:
        """`find` returns the link to the node; None if there is none."""
        self.data = PartedChannel(LinkPurpose.DATA, find)
        self.control = PartedChannel(LinkPurpose.CONTROL, find)
        # In order, for the control connection and for the data connection.
        self._held: list[_Waiting] = []
        self._data: deque[_Waiting] = deque()
        # By group, what has to be read from the disk, and what follows that.
        self._behind: dict[int, deque[_Waiting]] = {}
        self._behind_count = 0
        # What may still be read from the disk in this turn.
        self._budget = 0
        # What will not be sent: group and replica.
        self._lost: dict[tuple[int, int], GroupReplica] = {}
        # The payload that is being filled.
        self._parts: list[bytes] = [_VERSION]
        self._size = 0
        # True if the data connection took more when that was last looked at: only a payload changes that.
        self._is_writable = False

    @property
    def waiting_count(self) -> int:
        """The number of messages that wait."""
        return len(self._held) + len(self._data) + self._behind_count

    def add(self, replica: GroupReplica, message: RaftMessage) -> None:
        """Send a message of `replica` with the next call of `flush`."""
        if message.kind not in _OVER_DATA:
            self._held.append((replica, message))
        elif self.waiting_count < GROUP_HELD_MESSAGES_MAX:
            self._data.append((replica, message))
        else:
            self._lose(replica, message)

    def flush(self, encoded: EncodedEntries) -> bool:
        """Send what the link takes; True if there is more for another turn.

        `encoded` has entries that were encoded for other nodes in this turn, and gets those of this one.
        """
        self._flush_control()
        self._end_payload()
        self._budget = GROUP_READ_SIZE
        self._is_writable = self.data.is_writable
        while self._data and self._is_writable:
            replica, message = self._data.popleft()
            waiting = self._behind.get(replica.number)
            if waiting is None and self._write(replica, message, encoded, False):
                continue
            self._behind.setdefault(replica.number, deque()).append((replica, message))
            self._behind_count += 1
        self._flush_behind(encoded)
        self._end_payload()
        return bool(self._behind) and self._is_writable

    def take_lost(self) -> list[tuple[GroupReplica, int]]:
        """What was dropped since the last call: a replica here, and the one that it was for."""
        lost, self._lost = self._lost, {}
        return [(replica, to) for (_, to), replica in lost.items()]

    def drop(self) -> None:
        """Drop everything that waits, since the session has ended, or nothing is heard of the node."""
        waiting = [*self._held, *self._data, *(each for row in self._behind.values() for each in row)]
        for replica, message in waiting:
            self._lose(replica, message)
        self._held = []
        self._data.clear()
        self._behind.clear()
        self._behind_count = 0
        self._parts, self._size = [_VERSION], 0

    def forget(self, number: int) -> None:
        """Drop what waits of a group that has ended here."""
        self._held = [each for each in self._held if each[0].number != number]
        self._data = deque(each for each in self._data if each[0].number != number)
        self._behind_count -= len(self._behind.pop(number, ()))
        self._lost = {key: replica for key, replica in self._lost.items() if key[0] != number}

    # --- private --------------------------------------------------------------------------------------

    def _lose(self, replica: GroupReplica, message: RaftMessage) -> None:
        self._lost[replica.number, message.to] = replica

    def _flush_control(self) -> None:
        held, self._held = self._held, []
        parts, size = [_VERSION], 0
        for replica, message in held:
            if not self.control.is_writable:
                self._lose(replica, message)
                continue
            encoded = encode_message(replica.number, message)
            parts += encoded
            size += sum(map(len, encoded))
            if size >= GROUP_PAYLOAD_SIZE:
                self.control.send(GroupPayload.MESSAGES, b"".join(parts))
                parts, size = [_VERSION], 0
        if size:
            self.control.send(GroupPayload.MESSAGES, b"".join(parts))

    def _flush_behind(self, encoded: EncodedEntries) -> None:
        """Send a message of each group whose messages are on the disk, as many as one turn may read."""
        while self._behind and self._budget > 0 and self._is_writable:
            for number in list(self._behind):
                waiting = self._behind.pop(number)
                replica, message = waiting.popleft()
                self._behind_count -= 1
                self._write(replica, message, encoded, True)
                if waiting:
                    # Behind the other groups.
                    self._behind[number] = waiting
                if self._budget <= 0 or not self._is_writable:
                    return

    def _write(
        self, replica: GroupReplica, message: RaftMessage, encoded: EncodedEntries, may_read: bool
    ) -> bool:
        """Add a message to the payload; False if it has to be read from the disk and may not be."""
        entries: list[EncodedEntry] = []
        for entry in message.entries:
            key = replica.number, entry.index, entry.term
            known = encoded.get(key)
            if known is None:
                contents = replica.contents(entry)
                if contents is not None and not may_read and _is_any_on_disk(contents):
                    return False
                known = None if contents is None else self._encode(replica, entry, contents)
                if known is None:
                    # It is not there any more: a snapshot has replaced it.
                    self._lose(replica, message)
                    return True
                if not may_read:
                    # What is read is encoded for each node by itself: others may be elsewhere.
                    encoded[key] = known
            entries.append(known)
        parts = encode_message(replica.number, message, entries)
        size = len(parts[0]) + sum(entry.size for entry in entries)
        if self._size and self._size + size > GROUP_PAYLOAD_SIZE:
            self._end_payload()
        self._parts += parts
        self._size += size
        if self._size >= GROUP_PAYLOAD_SIZE:
            self._end_payload()
        return True

    def _encode(
        self, replica: GroupReplica, entry: Entry, contents: Sequence[StoredMessage | int | None]
    ) -> EncodedEntry | None:
        """Encode an entry; None if one of its messages cannot be read."""
        messages: list[StoredMessage | None] = []
        for each in contents:
            if not each or not _is_on_disk(each):
                messages.append(None if not each or isinstance(each, int) else each)
                continue
            message = replica.read(each if isinstance(each, int) else each.location)
            if message is None:
                return None
            self._budget -= len(message.content)
            messages.append(message)
        return encode_entry(entry, messages)

    def _end_payload(self) -> None:
        """Send what was collected, or keep it until the link takes it: then nothing is added."""
        if self._size and self.data.is_writable:
            parts, self._parts, self._size = self._parts, [_VERSION], 0
            self.data.send(GroupPayload.MESSAGES, b"".join(parts))
            self._is_writable = self.data.is_writable


def _is_on_disk(content: StoredMessage | int | None) -> bool:
    """True if a message has to be read."""
    if isinstance(content, int):
        return content > 0
    if content is None:
        return False
    message = content
    return message.flags & _BODY_ON_DISK != 0


def _is_any_on_disk(contents: Sequence[StoredMessage | int | None]) -> bool:
    """True if one of the messages has to be read."""
    found = False
    for content in contents:
        found = found or _is_on_disk(content)
    return found
