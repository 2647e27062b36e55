"""The messages of a replica before it leads: as its store has found them, or as a snapshot brings them.

    restore ─▶ found                              ─ take ─▶ the queue, when the replica leads
    receive ─▶ received ─ replace ─▶ STATE synced ─ synced ─▶ found
                             └─ all others are released when the STATE is synced, and not before

Until then the others belong to what the replica has promised: after a crash it has either all of them, or
the snapshot with all of its messages.
"""

from collections.abc import Iterator

from warren.model.column import Column
from warren.model.message import HAS_EXPIRATION, StoredMessage, body_size_of
from warren.store.group_log import GroupLog
from warren.store.group_record import GroupSnapshot
from warren.store.recovered_queue import RecoveredQueue


class ReplicaMessages:
    """What is in the store for one replica, by priority level."""

    __slots__ = ("_ends", "_found", "_log", "_received", "_unsynced", "_unsynced_index")

    def __init__(self, log: GroupLog) -> None:
        self._log = log
        self._found: dict[int, RecoveredQueue] = {}
        # Messages of a snapshot, by position in the group.
        self._received: dict[int, dict[int, StoredMessage]] = {}
        # Those of a snapshot that is being written, by position in the store.
        self._unsynced: dict[int, dict[int, StoredMessage]] = {}
        self._unsynced_index = 0
        # Level -> the position in the store from which on a message belongs to an entry of this run.
        self._ends: dict[int, int] = {}

    def restore(self, level: int, found: RecoveredQueue) -> None:
        """Take the messages of `level` that a store has `found`."""
        self._found[level] = found
        self._ends[level] = found.end

    def take(self, level: int) -> RecoveredQueue | None:
        """Give away the messages of `level`; None if there are none."""
        return self._found.pop(level, None)

    def receive(self, message: StoredMessage, level: int, position: int) -> None:
        """Store `message` of a snapshot, at `position` of `level` in the group; once for each position."""
        self._log.receive(message, level, position)
        self._received.setdefault(level, {})[position] = message

    def discard_received(self) -> None:
        """Make the messages void that were received for a snapshot that will not be installed."""
        self._received = {}
        self._log.discard_received()

    def replace(self, snapshot: GroupSnapshot, ends: dict[int, int]) -> None:
        """Write `snapshot`, whose messages were received, instead of all there is; `synced` follows.

        `ends` are the positions behind the last message of each level as of `snapshot`.
        """
        log = self._log
        log.install(snapshot, ends, self._held())
        received, self._received = self._received, {}
        self._found = {}
        self._unsynced = {
            level: {log.stored(level, position): message for position, message in sorted(messages.items())}
            for level, messages in received.items()
        }
        self._unsynced_index = snapshot.index
        self._ends = {level: log.stored(level, end) for level, end in ends.items()}

    def synced(self, index: int) -> None:
        """The snapshot of `index` is synced: its messages are what was found, unless there is a newer one."""
        if index != self._unsynced_index:
            return
        unsynced, self._unsynced = self._unsynced, {}
        for level, messages in unsynced.items():
            self._found[level] = _found(messages, self._ends[level])

    def _held(self) -> Iterator[tuple[int, int, StoredMessage | int]]:
        """All messages that are not settled in the store: level, position there, and message or location."""
        log = self._log
        for level, found in self._found.items():
            for place in range(found.count):
                position = found.positions.get(place)
                # Those of entries that were cut are released by the log.
                if log.has(level, position):
                    yield level, position, found.locations.get(place)
        for level, messages in self._unsynced.items():
            for position, message in messages.items():
                yield level, position, message
        for level, position, each in log.unsettled():
            if position >= self._ends.get(level, 0):
                yield level, position, each


def _found(messages: dict[int, StoredMessage], end: int) -> RecoveredQueue:
    """What a store would have found of `messages`, by position in it, in order; `end` is behind them."""
    positions, locations = Column(), Column()
    expiring = []
    for position, message in messages.items():
        positions.append(position)
        locations.append(message.location)
        if message.flags & HAS_EXPIRATION:
            expiring.append((position, message.location))
    return RecoveredQueue(
        positions=positions,
        locations=locations,
        byte_count=sum(map(body_size_of, messages.values())),
        expiring=expiring,
        delivered_up_to=0,
        end=end,
    )
