"""Sends snapshots of groups that this node leads, with their messages, over the bulk connections.

    SNAPSHOT of the Raft core ─▶ BEGIN ─▶ PULL: chunks that may be sent, and what the receiver has
                                      CHUNK … ─▶ PULL, as they are synced there
                                      END ─▶ RESULT ─▶ snapshot_sent

Messages are read as they are sent, one chunk of each transfer in a turn, from where the last one has ended:
nothing of the queue is copied before. What was settled meanwhile is not sent, and the entries behind the
snapshot settle it again. Of what the receiver has, only the positions are sent.
"""

from collections import deque
from collections.abc import Callable, Mapping

from warren.cluster.groups.group_payloads import (
    COUNT,
    LEVEL_SHIFT,
    RUN,
    VERSION,
    GroupPayload,
)
from warren.cluster.groups.parted_channel import PartedChannel
from warren.cluster.groups.raft_message_reader import RaftMessageReader
from warren.cluster.groups.raft_message_writer import ContentWriter, encode_message
from warren.cluster.groups.replica_place import ReplicaPlace
from warren.cluster.node_link import PayloadError
from warren.limits_raft import (
    GROUP_CHUNK_ROWS_MAX,
    GROUP_CHUNK_SIZE,
    GROUP_CHUNKS_IN_FLIGHT,
    GROUP_TRANSFER_IDLE_TICKS,
    GROUP_TRANSFER_SIZE_PER_TICK,
    GROUP_TRANSFERS_MAX,
)
from warren.model.coroutine_driver import Later
from warren.queues.quorum.raft_storage import QuorumSnapshot
from warren.replication.raft.raft_messages import RaftMessage

_TRANSFER_SIZE = COUNT.size
# Rows that are looked at together: those with messages to be read, and those of which the positions do.
_ROWS_READ = 64
_ROWS_KNOWN = 1_024
_TRANSFER_MASK = 0xFFFF_FFFF


class OutgoingSnapshot:
    """One snapshot on its way to one replica."""

    __slots__ = (
        "_level", "_levels", "_position", "ends", "idle_ticks", "is_sent", "known", "message", "node",
        "place", "pulled",
    )  # fmt: skip

    def __init__(self, place: ReplicaPlace, node: int, message: RaftMessage) -> None:
        assert message.snapshot is not None
        payload = message.snapshot.payload
        assert isinstance(payload, QuorumSnapshot)
        self.place = place
        self.node = node
        self.message = message
        self.ends = payload.ends
        # Level -> the position before which the receiver has what it needs.
        self.known: dict[int, int] = {}
        # Chunks that may be sent, and ticks since anything was.
        self.pulled = 0
        self.idle_ticks = 0
        # True behind its end.
        self.is_sent = False
        # Where the next chunk begins.
        self._levels = deque(sorted(payload.ends))
        self._level = self._levels.popleft() if self._levels else -1
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        """True if all messages were sent."""
        return self._level < 0

    @property
    def is_current(self) -> bool:
        """True while the replica leads the term in which the snapshot was made."""
        return self.place.leads and self.place.replica.term == self.message.term

    def chunk(self) -> bytes | None:
        """The next messages; None if one of them cannot be read."""
        writer, rows_left = ContentWriter(), GROUP_CHUNK_ROWS_MAX
        while not self.is_at_end and writer.size < GROUP_CHUNK_SIZE and rows_left > 0:
            is_known = self._position < self.known.get(self._level, 0)
            count = min(rows_left, _ROWS_KNOWN if is_known else _ROWS_READ)
            found = self.place.replica.live(self._level, self._position, count)
            if found is None:
                return None
            end = self.ends[self._level]
            rows = [row for row in found if row[0] < end]
            rows_left -= max(1, len(rows))
            if not rows:
                self._level = self._levels.popleft() if self._levels else -1
                self._position = 0
            elif is_known:
                self._add_known([position for position, _ in rows], writer)
            elif not self._add_messages(rows, writer):
                return None
        return b"".join(writer.parts)

    def _add_known(self, positions: list[int], writer: ContentWriter) -> None:
        """Add the positions of messages that the receiver has, as runs; it does not have all of them."""
        known = self.known[self._level]
        first = behind = positions[0]
        for position in positions:
            if position >= known:
                break
            if position != behind:
                writer.add(RUN.pack(self._level << LEVEL_SHIFT | first, behind - first))
                first = position
            behind = position + 1
        if behind > first:
            writer.add(RUN.pack(self._level << LEVEL_SHIFT | first, behind - first))
        self._position = known if positions[-1] >= known else behind

    def _add_messages(self, rows: list[tuple[int, int]], writer: ContentWriter) -> bool:
        for position, location in rows:
            if writer.size >= GROUP_CHUNK_SIZE:
                break
            message = self.place.replica.read(location)
            if message is None:
                return False
            writer.add(RUN.pack(self._level << LEVEL_SHIFT | position, 0))
            writer.write(message)
            self._position = position + 1
        return True


class SnapshotSender:
    """All snapshots that this node sends."""

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
        self._waiting: deque[OutgoingSnapshot] = deque()
        self._running: dict[int, OutgoingSnapshot] = {}
        self._last = 0
        # What may still be sent before the next tick, in bytes.
        self._budget = GROUP_TRANSFER_SIZE_PER_TICK
        self._is_due = False

    @property
    def count(self) -> int:
        """The number of snapshots that are sent or wait."""
        return len(self._waiting) + len(self._running)

    def send(self, place: ReplicaPlace, node: int, message: RaftMessage) -> None:
        """Send a snapshot to a replica on `node`, in place of another one."""
        self._end(lambda other: other.place is place and other.message.to == message.to)
        self._waiting.append(OutgoingSnapshot(place, node, message))
        self._continue_later()

    def tick(self) -> None:
        """Note that GROUP_TICK_MS have passed."""
        self._budget = GROUP_TRANSFER_SIZE_PER_TICK
        for transfer in list(self._running.values()):
            transfer.idle_ticks += 1
        self._fail(
            lambda transfer: transfer.idle_ticks > GROUP_TRANSFER_IDLE_TICKS or not transfer.is_current
        )
        if self.count:
            self._continue_later()

    def received(self, node: int, kind: int, body: bytes) -> bool:
        """Take an answer of a receiver; False if the payload is none. PayloadError."""
        if kind not in (GroupPayload.PULL, GroupPayload.RESULT):
            return False
        reader = RaftMessageReader(body, is_versioned=False)
        number = reader.number(_TRANSFER_SIZE)
        transfer = self._running.get(number)
        if transfer is None or transfer.node != node:
            return True
        if kind == GroupPayload.RESULT:
            del self._running[number]
            self._tell(transfer, is_done=reader.number(1) > 0)
        else:
            transfer.pulled += reader.number(COUNT.size)
            transfer.known = reader.ends() or transfer.known
            transfer.idle_ticks = 0
            if transfer.pulled > GROUP_CHUNKS_IN_FLIGHT:
                raise PayloadError(f"{transfer.pulled} chunks of a snapshot are asked for")
        self._continue_later()
        return True

    def writable(self, node: int) -> None:
        """The bulk connection to `node` takes more."""
        if self.count:
            self._continue_later()

    def session_lost(self, node: int) -> None:
        """What was sent to `node` has not arrived."""
        self._fail(lambda transfer: transfer.node == node)

    def forget(self, number: int) -> None:
        """The replica of a group has ended here."""
        self._end(lambda transfer: transfer.place.number == number)

    # --- private --------------------------------------------------------------------------------------

    def _continue_later(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._later(self._continue)

    def _continue(self, _: int) -> None:
        """Begin what may begin, and send a chunk of each transfer."""
        self._is_due = False
        while self._waiting and len(self._running) < GROUP_TRANSFERS_MAX:
            self._begin(self._waiting.popleft())
        is_more = False
        for number, transfer in list(self._running.items()):
            is_more = self._send_chunk(number, transfer) or is_more
        if is_more:
            self._continue_later()

    def _begin(self, transfer: OutgoingSnapshot) -> None:
        channel = self._channel(transfer.node)
        if not channel.is_writable or not transfer.is_current:
            # The Raft core sends another one when it hears of the replica.
            self._tell(transfer, is_done=False)
            return
        self._last = (self._last + 1) & _TRANSFER_MASK
        self._running[self._last] = transfer
        parts = encode_message(transfer.place.number, transfer.message)
        channel.send(GroupPayload.BEGIN, COUNT.pack(self._last) + bytes((VERSION,)) + b"".join(parts))

    def _send_chunk(self, number: int, transfer: OutgoingSnapshot) -> bool:
        """Send the next chunk, if it was asked for; True if another one may be sent."""
        channel = self._channel(transfer.node)
        if not transfer.pulled or transfer.is_sent or self._budget <= 0 or not channel.is_writable:
            return False
        transfer.pulled -= 1
        transfer.idle_ticks = 0
        chunk = transfer.chunk() if transfer.is_current else None
        if chunk is None:
            if transfer.is_current:
                self._report(f"a message of group {transfer.place.number} cannot be read for a snapshot")
            del self._running[number]
            self._tell(transfer, is_done=False)
            return False
        if chunk:
            self._budget -= len(chunk)
            channel.send(GroupPayload.CHUNK, COUNT.pack(number) + chunk)
        if transfer.is_at_end:
            if not channel.is_writable:
                # With the next turn in which it is.
                transfer.pulled += 1
                return False
            transfer.is_sent = True
            channel.send(GroupPayload.END, COUNT.pack(number))
        return transfer.pulled > 0 and not transfer.is_sent

    def _fail(self, is_it: Callable[[OutgoingSnapshot], bool]) -> None:
        for transfer in self._end(is_it):
            self._tell(transfer, is_done=False)

    def _end(self, is_it: Callable[[OutgoingSnapshot], bool]) -> list[OutgoingSnapshot]:
        """Forget some transfers; returns them."""
        ended = [transfer for transfer in (*self._waiting, *self._running.values()) if is_it(transfer)]
        self._waiting = deque(transfer for transfer in self._waiting if transfer not in ended)
        self._running = {number: each for number, each in self._running.items() if each not in ended}
        return ended

    def _tell(self, transfer: OutgoingSnapshot, *, is_done: bool) -> None:
        if self._places.get(transfer.place.number) is transfer.place:
            transfer.place.replica.snapshot_sent(transfer.message.to, is_done=is_done)
