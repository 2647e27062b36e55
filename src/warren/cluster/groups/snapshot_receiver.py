"""Takes snapshots of groups, with their messages, from the nodes that lead them: see `snapshot_sender`.

While a snapshot is received the replica appends nothing: appends of the leader that sends it are dropped, and
it repeats them. Another leader, another term, or the end of the session make what was received void.
"""

from collections import deque
from collections.abc import Callable, Mapping

from warren.cluster.groups.group_payloads import COUNT, GroupPayload
from warren.cluster.groups.parted_channel import PartedChannel
from warren.cluster.groups.raft_message_reader import RaftMessageReader
from warren.cluster.groups.raft_message_writer import encode_ends
from warren.cluster.groups.replica_place import ReplicaPlace
from warren.cluster.node_link import PayloadError
from warren.limits_raft import (
    GROUP_CHUNKS_IN_FLIGHT,
    GROUP_POSITION_MAX,
    GROUP_READ_SIZE,
    GROUP_TRANSFERS_MAX,
)
from warren.model.coroutine_driver import Later
from warren.model.message import StoredMessage
from warren.queues.quorum.raft_storage import QuorumSnapshot
from warren.replication.raft.raft_messages import MessageKind, RaftMessage

_TRANSFER_SIZE = COUNT.size


class IncomingSnapshot:
    """One snapshot on its way to a replica of this node."""

    __slots__ = (
        "_behind", "chunks", "ends", "has_ended", "is_due", "left", "message", "node", "number", "place",
        "reader", "run",
    )  # fmt: skip

    def __init__(self, place: ReplicaPlace, node: int, number: int, message: RaftMessage) -> None:
        """`number` is that of the transfer, which the sender has given."""
        assert message.snapshot is not None
        payload = message.snapshot.payload
        assert isinstance(payload, QuorumSnapshot)
        self.place = place
        self.node = node
        self.number = number
        self.message = message
        self.ends = payload.ends
        # Chunks that the sender may still send.
        self.left = GROUP_CHUNKS_IN_FLIGHT
        # Chunks that were not handled, the one that is, and what is left of the run in it: level, first, end.
        self.chunks: deque[bytes] = deque()
        self.reader: RaftMessageReader | None = None
        self.run = (0, 0, 0)
        self.has_ended = False
        # True while the rest waits for another turn.
        self.is_due = False
        # Level -> the position behind the last one that was received.
        self._behind: dict[int, int] = {}

    @property
    def is_current(self) -> bool:
        """True while the sender leads as far as the replica knows, in the term of the snapshot."""
        replica = self.place.replica
        return (replica.term, replica.leader) == (self.message.term, self.message.sender)

    def check(self, level: int, first: int, end: int) -> None:
        """PayloadError unless the positions from `first` up to `end` may come next."""
        if not self._behind.get(level, 0) <= first < end <= min(self.ends.get(level, 0), GROUP_POSITION_MAX):
            raise PayloadError(f"the messages from {first} to {end} of level {level} in a snapshot")
        self._behind[level] = end


class SnapshotReceiver:
    """All snapshots that this node is sent."""

    def __init__(
        self,
        places: Mapping[int, ReplicaPlace],
        channel: Callable[[int], PartedChannel],
        later: Later,
        report: Callable[[str], None],
    ) -> None:
        """`channel` is the bulk connection to a node."""
        self._places = places
        self._channel = channel
        self._later = later
        self._report = report
        # By group.
        self._incoming: dict[int, IncomingSnapshot] = {}
        # Groups of which a message was missing that the replica should have: they get all of them.
        self._incomplete: set[int] = set()

    @property
    def count(self) -> int:
        """The number of snapshots that are received."""
        return len(self._incoming)

    def step(self, place: ReplicaPlace, message: RaftMessage) -> None:
        """Hand a message to a replica, unless that must not get it now."""
        incoming = self._incoming.get(place.number)
        if incoming is None:
            place.replica.step(message)
            return
        if message.kind is MessageKind.APPEND:
            if message.term <= incoming.message.term:
                return
            self._abort(incoming)
        place.replica.step(message)
        self._check(incoming)

    def tick(self) -> None:
        """Make void what was received for a leader that leads no more, as far as a replica knows."""
        for incoming in list(self._incoming.values()):
            self._check(incoming)

    def received(self, node: int, kind: int, body: bytes) -> None:
        """Take a payload of a sender. PayloadError."""
        reader = RaftMessageReader(body, is_versioned=False)
        transfer = reader.number(_TRANSFER_SIZE)
        if kind == GroupPayload.BEGIN:
            self._begin(node, transfer, reader)
            return
        if kind not in (GroupPayload.CHUNK, GroupPayload.END):
            raise PayloadError(f"payload of the unknown kind {kind}")
        incoming = self._find(node, transfer)
        if incoming is None:
            return
        if kind == GroupPayload.END:
            incoming.has_ended = True
        else:
            incoming.left -= 1
            if incoming.left < 0 or incoming.has_ended:
                raise PayloadError("a chunk of a snapshot that was not asked for")
            incoming.chunks.append(reader.octets(reader.left))
        if not incoming.is_due:
            self._work(incoming)

    def session_lost(self, node: int) -> None:
        """What `node` has begun to send will not come."""
        for incoming in [each for each in self._incoming.values() if each.node == node]:
            self._abort(incoming, is_told=False)

    def forget(self, number: int) -> None:
        """The replica of a group has ended here."""
        self._incoming.pop(number, None)
        self._incomplete.discard(number)

    # --- private --------------------------------------------------------------------------------------

    def _find(self, node: int, transfer: int) -> IncomingSnapshot | None:
        for incoming in self._incoming.values():
            if (incoming.node, incoming.number) == (node, transfer):
                return incoming
        return None

    def _begin(self, node: int, transfer: int, reader: RaftMessageReader) -> None:
        reader.check_version()
        number, message = reader.message()
        if message.snapshot is None:
            raise PayloadError(f"a {message.kind.name} in place of a snapshot")
        place = self._places.get(number)
        if place is None or message.to != place.replica.replica or place.nodes.get(message.sender) != node:
            self._answer(node, transfer, is_taken=False)
            return
        if message.term < place.replica.term:
            # Its sender leads no more, and hears that with its next heartbeat.
            self._answer(node, transfer, is_taken=False)
            return
        before = self._incoming.get(number)
        if before is not None:
            self._abort(before)
        if not place.replica.is_behind(message):
            self._answer(node, transfer, is_taken=self._install(place, message))
            return
        incoming = IncomingSnapshot(place, node, transfer, message)
        if not incoming.is_current:
            # Who sends a snapshot leads its term.
            place.replica.step(RaftMessage(MessageKind.HEARTBEAT, message.to, message.sender, message.term))
        if not incoming.is_current or self._count_of(node) >= GROUP_TRANSFERS_MAX:
            self._answer(node, transfer, is_taken=False)
            return
        self._incoming[number] = incoming
        known = {} if number in self._incomplete else place.replica.ends()
        self._pull(incoming, GROUP_CHUNKS_IN_FLIGHT, known)

    def _count_of(self, node: int) -> int:
        return sum(incoming.node == node for incoming in self._incoming.values())

    def _work(self, incoming: IncomingSnapshot) -> None:
        """Store what has arrived, as much as one turn reads from the disk."""
        budget = GROUP_READ_SIZE
        while budget > 0 and self._incoming.get(incoming.place.number) is incoming:
            if incoming.run[1] < incoming.run[2]:
                size = self._receive_known(incoming)
                if not size:
                    return
                budget -= size
            elif incoming.reader is not None:
                self._next_item(incoming, incoming.reader)
            elif incoming.chunks:
                incoming.reader = RaftMessageReader(incoming.chunks.popleft(), is_versioned=False)
            else:
                if incoming.has_ended:
                    self._end(incoming)
                return
        if budget <= 0:
            incoming.is_due = True
            self._later(lambda _: self._continue(incoming))

    def _continue(self, incoming: IncomingSnapshot) -> None:
        incoming.is_due = False
        self._work(incoming)

    def _next_item(self, incoming: IncomingSnapshot, reader: RaftMessageReader) -> None:
        """Store the next message of a chunk, or begin a run of known ones; ask for more behind the last."""
        if reader.is_at_end:
            incoming.reader = None
            incoming.place.replica.when_received(lambda: self._synced(incoming))
            return
        level, first = reader.place()
        count = reader.number(COUNT.size)
        incoming.check(level, first, first + (count or 1))
        if count:
            incoming.run = level, first, first + count
            return
        message = reader.content()
        if message is None:
            raise PayloadError("a snapshot with a message that was settled")
        incoming.place.replica.receive(message, level, first)

    def _receive_known(self, incoming: IncomingSnapshot) -> int:
        """Store the next message of a run that the replica has; returns its size, 0 if it is missing."""
        replica = incoming.place.replica
        level, position, end = incoming.run
        location = replica.location(level, position)
        message = replica.read(location) if location else None
        if message is None:
            self._incomplete.add(incoming.place.number)
            self._abort(incoming)
            return 0
        copy = message.anew(message.published_at)
        assert isinstance(copy, StoredMessage), "what is in a store is persistent"
        replica.receive(copy, level, position)
        incoming.run = level, position + 1, end
        return len(message.content)

    def _synced(self, incoming: IncomingSnapshot) -> None:
        """A chunk is synced: another one may come."""
        if self._incoming.get(incoming.place.number) is incoming and not incoming.has_ended:
            incoming.left += 1
            self._pull(incoming, 1, {})

    def _end(self, incoming: IncomingSnapshot) -> None:
        del self._incoming[incoming.place.number]
        is_taken = self._install(incoming.place, incoming.message)
        self._incomplete.discard(incoming.place.number)
        self._answer(incoming.node, incoming.number, is_taken=is_taken)

    def _install(self, place: ReplicaPlace, message: RaftMessage) -> bool:
        """Hand a snapshot to its replica; False if this version cannot read it."""
        try:
            place.replica.step(message)
        except ValueError as error:
            self._report(f"the snapshot of group {place.number} cannot be used: {error}")
            place.replica.discard_received()
            return False
        return True

    def _check(self, incoming: IncomingSnapshot) -> None:
        if self._incoming.get(incoming.place.number) is incoming and not incoming.is_current:
            self._abort(incoming)

    def _abort(self, incoming: IncomingSnapshot, *, is_told: bool = True) -> None:
        """Make void what was received."""
        del self._incoming[incoming.place.number]
        incoming.place.replica.discard_received()
        if is_told:
            self._answer(incoming.node, incoming.number, is_taken=False)

    def _pull(self, incoming: IncomingSnapshot, count: int, known: dict[int, int]) -> None:
        body = COUNT.pack(incoming.number) + COUNT.pack(count) + encode_ends(known)
        self._send(incoming.node, GroupPayload.PULL, body)

    def _answer(self, node: int, transfer: int, *, is_taken: bool) -> None:
        self._send(node, GroupPayload.RESULT, COUNT.pack(transfer) + bytes((is_taken,)))

    def _send(self, node: int, kind: GroupPayload, body: bytes) -> None:
        """Send an answer; the sender gives up if it gets none."""
        channel = self._channel(node)
        if channel.is_writable:
            channel.send(kind, body)
