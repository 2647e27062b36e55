"""The messages of a replica that are in the queue, by priority level, whether it leads or follows.

    restore ─▶ what the store has found ┐
    keep, enter ─▶ those of an entry    ├─▶ rows of 8 bytes ─ found ─▶ the queue, when the replica leads
    receive ─ replace ─ synced ─▶       ┘      │ forget, settle

Rows follow the entries that are applied. Messages of entries that are not applied yet are in the log only.

A snapshot replaces all rows when its STATE is synced, and not before: until then the others belong to what
the replica has promised, so that after a crash it has either all of them, or the snapshot with all of its
messages.
"""

from collections.abc import Iterator, Mapping, Sequence

from warren.model.column import Column
from warren.model.message import HAS_EXPIRATION, StoredMessage, body_size_of
from warren.queues.paged_index import PagedIndex
from warren.queues.quorum.batch_codec import SettledRun, SettleReason
from warren.store.group_log import GroupLog
from warren.store.group_record import GroupSnapshot, PositionRun
from warren.store.message_store import MessageStore
from warren.store.recovered_queue import RecoveredQueue

_HAS_EXPIRATION = HAS_EXPIRATION
_PURGED = SettleReason.PURGED


class LevelMessages:
    """The messages of one priority level."""

    __slots__ = ("byte_count", "end", "expiring", "index")

    def __init__(self, end: int) -> None:
        """`end` is the position in the group behind the last message that is applied."""
        self.end = end
        # Position in the store and location of each message, and the size of their bodies in bytes.
        self.index = PagedIndex()
        self.byte_count = 0
        # The positions of messages with an expiration, some of which are not there any more, or not yet.
        self.expiring = Column()


class ReplicaMessages:
    """What is in the store for one replica."""

    __slots__ = ("_levels", "_log", "_received", "_settled", "_store", "_unsynced", "_unsynced_index")

    def __init__(self, log: GroupLog, store: MessageStore, settled: Sequence[SettledRun] = ()) -> None:
        """`settled` are messages that have left the queue, and that the store may not have released."""
        self._log = log
        self._store = store
        self._settled = settled
        ends = log.snapshot_ends
        self._levels = {level: LevelMessages(ends[level]) for level in sorted(ends)}
        # Messages of a snapshot, by position in the group.
        self._received: dict[int, dict[int, StoredMessage]] = {}
        # Those of a snapshot that is being written, by position in the store.
        self._unsynced: dict[int, dict[int, StoredMessage]] = {}
        self._unsynced_index = 0

    # --- what there is ----------------------------------------------------------------------------

    def levels(self) -> list[int]:
        """The priority levels that have had messages, in ascending order."""
        return sorted(self._levels)

    def end(self, level: int) -> int:
        """The position in the store of the message of `level` that follows the last one that is applied."""
        messages = self._levels.get(level)
        return self._log.stored(level, 0 if messages is None else messages.end)

    def ends(self) -> dict[int, int]:
        """Priority level -> the position in the group behind the last message that is applied."""
        return {level: messages.end for level, messages in sorted(self._levels.items()) if messages.end}

    @property
    def count(self) -> int:
        """The number of messages."""
        return sum(messages.index.count for messages in self._levels.values())

    @property
    def byte_count(self) -> int:
        """The size of their bodies."""
        return sum(messages.byte_count for messages in self._levels.values())

    def found(self, level: int, reach: int) -> RecoveredQueue:
        """The messages of `level`, of which those before `reach` may have been delivered."""
        messages, end = self._level(level), self.end(level)
        positions, locations = messages.index.columns()
        return RecoveredQueue(
            positions=positions,
            locations=locations,
            byte_count=messages.byte_count,
            expiring=self._expiring(level, messages),
            # The reach may be ahead of the last message; those that follow were never delivered.
            delivered_up_to=min(reach, end),
            end=end,
        )

    def rows(self, level: int) -> Iterator[tuple[int, int]]:
        """The position in the group and the location of each message of `level`, in order."""
        log = self._log
        positions, locations = self._level(level).index.columns()
        for place in range(positions.count):
            yield log.logical(level, positions.get(place)), locations.get(place)

    def peek(self, level: int, position: int, count: int) -> list[tuple[int, int]]:
        """Position in the store and location of up to `count` messages of `level` from `position` on."""
        messages = self._levels.get(level)
        return [] if messages is None else messages.index.peek(position, count)

    # --- entries ----------------------------------------------------------------------------------

    def restore(self, level: int, found: RecoveredQueue) -> None:
        """Take the messages of `level` that a store has `found`, before anything is applied."""
        messages, end = self._level(level), self.end(level)
        messages.byte_count = found.byte_count
        for place in range(found.count):
            position = found.positions.get(place)
            if position >= end:
                # It belongs to an entry.
                break
            messages.index.append(position, found.locations.get(place))
        for position, _ in found.expiring:
            messages.expiring.append(position)
        self.settle([run for run in self._settled if run.level == level])

    def keep(self, entered: list[StoredMessage], runs: Sequence[PositionRun]) -> None:
        """Add the messages of a committed entry of this replica; `runs` are their positions."""
        log = self._log
        place = 0
        for run in runs:
            messages = self._level(run.level)
            index, first = messages.index, log.stored(run.level, run.first)
            for position in range(first, first + run.count):
                message = entered[place]
                place += 1
                index.append(position, message.location)
                messages.byte_count += body_size_of(message)
                if message.flags & _HAS_EXPIRATION:
                    messages.expiring.append(position)
            messages.end = run.first + run.count

    def forget(self, settled: Sequence[SettledRun]) -> None:
        """Remove messages that a committed entry has settled, and that the leader's queue releases."""
        for run in settled:
            messages = self._level(run.level)
            index, first = messages.index, self._log.stored(run.level, run.first)
            # Positions between those of the group are void, and not in the index.
            end = self._log.stored(run.level, run.first + run.count - 1) + 1
            for position in range(first, end):
                index.take(position)
            messages.byte_count -= run.size

    def arrive(self, arrived: Sequence[StoredMessage | None], runs: Sequence[PositionRun]) -> tuple[int, ...]:
        """Note which messages of an entry of another replica have an expiration, as it is appended.

        Returns the size of their bodies by run. None is a message that was settled before it was sent.
        """
        sizes: list[int] = []
        place = 0
        for run in runs:
            first, size = self._log.stored(run.level, run.first), 0
            for position in range(first, first + run.count):
                message = arrived[place]
                place += 1
                if message is not None:
                    size += body_size_of(message)
                    if message.flags & _HAS_EXPIRATION:
                        self._level(run.level).expiring.append(position)
            sizes.append(size)
        return tuple(sizes)

    def enter(self, index: int, runs: Sequence[PositionRun], sizes: Sequence[int] | None) -> None:
        """Add the messages of the committed entry `index` of the log; `runs` are their positions.

        `sizes` are those of their bodies by run; None if the entry was read from the disk, where `restore`
        has counted them.
        """
        if not runs:
            return
        locations, at = self._log.locations(index), 0
        for place, run in enumerate(runs):
            messages = self._level(run.level)
            first = self._log.stored(run.level, run.first)
            for position in range(first, first + run.count):
                location = locations[at]
                at += 1
                if location:
                    messages.index.append(position, location)
            messages.end = run.first + run.count
            if sizes is not None:
                messages.byte_count += sizes[place]

    def settle(self, settled: Sequence[SettledRun]) -> None:
        """Remove messages that a committed entry has settled, and release them in the store.

        Some of them may not be there: a snapshot was without them, or the store has released them before a
        restart.
        """
        for run in settled:
            positions, locations = self._taken(run.level, run.first, run.count)
            # A purge has the positions in between as well, and the size of those that were there.
            is_known = locations.count == run.count or (locations.count > 0 and run.reason is _PURGED)
            size = run.size if is_known else self._size_of(locations)
            self._release(run.level, positions, locations, size)

    def drop(self, repeats: Sequence[PositionRun]) -> None:
        """Remove messages that were in the queue before, and release them."""
        for run in repeats:
            positions, locations = self._taken(run.level, run.first, run.count)
            self._release(run.level, positions, locations, self._size_of(locations))

    def uncount(self, index: int) -> None:
        """The entry `index`, which was read from the disk, is about to be replaced."""
        [entry] = self._log.entries(index, index, 0)
        found = iter(self._log.messages(index))
        for run in entry.runs:
            messages = self._level(run.level)
            for _ in range(run.count):
                message = next(found)
                if message is not None:
                    messages.byte_count -= body_size_of(message)

    # --- snapshots --------------------------------------------------------------------------------

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
        self._unsynced = {
            level: {log.stored(level, position): message for position, message in sorted(messages.items())}
            for level, messages in received.items()
        }
        self._unsynced_index = snapshot.index
        self._levels = {level: LevelMessages(end) for level, end in sorted(ends.items())}

    def synced(self, index: int) -> None:
        """The snapshot of `index` is synced: its messages are there, unless there is a newer one."""
        if index != self._unsynced_index:
            return
        unsynced, self._unsynced = self._unsynced, {}
        for level, found in unsynced.items():
            messages = self._level(level)
            for position, message in found.items():
                messages.index.append(position, message.location)
                messages.byte_count += body_size_of(message)
                if message.flags & _HAS_EXPIRATION:
                    messages.expiring.append(position)

    # --- the end of the replica ---------------------------------------------------------------------

    def begin_again(self, replica: int, configuration: bytes) -> None:
        """Release everything when it is durable that the log is that of a new replica: see the log."""
        self._log.begin_again(replica, configuration, self._held())

    def release_all(self) -> None:
        """Release everything, since the queue was deleted, and no queue has these messages."""
        self.discard_received()
        number, store = self._log.number, self._store
        for level, position, message in list(self._held()):
            cursor = store.cursor(number, level)
            if isinstance(message, StoredMessage):
                store.release(message, cursor, position)
            else:
                store.release_at(message, cursor, position)

    # --- private ----------------------------------------------------------------------------------

    def _taken(self, level: int, first: int, count: int) -> tuple[Column, Column]:
        """Take those of `count` messages from position `first` of `level` on in the group that are there.

        Returns their positions in the store and their locations.
        """
        index, log = self._level(level).index, self._log
        positions, locations = Column(), Column()
        positions.reserve(count)
        locations.reserve(count)
        # Positions in the store between those of the group are void, and not in the index.
        for position in range(log.stored(level, first), log.stored(level, first + count - 1) + 1):
            location = index.take(position)
            if location:
                positions.append(position)
                locations.append(location)
        return positions, locations

    def _release(self, level: int, positions: Column, locations: Column, size: int) -> None:
        """Release messages that were taken, whose bodies have `size` bytes."""
        messages = self._level(level)
        messages.byte_count -= size
        cursor = self._store.cursor(self._log.number, level)
        for place in range(positions.count):
            self._store.release_at(locations.get(place), cursor, positions.get(place))

    def _size_of(self, locations: Column) -> int:
        """The size of the bodies of the messages at `locations`."""
        return sum(map(self._size_at, locations.numbers()))

    def _size_at(self, location: int) -> int:
        """The size of the body of the message at `location`."""
        message = self._store.reader().read(location)
        return 0 if message is None else body_size_of(message)

    def _level(self, level: int) -> LevelMessages:
        messages = self._levels.get(level)
        if messages is None:
            messages = self._levels[level] = LevelMessages(0)
        return messages

    def _expiring(self, level: int, messages: LevelMessages) -> list[tuple[int, int]]:
        """Position and location of the messages that have an expiration; others are forgotten."""
        expiring, messages.expiring = messages.expiring, Column()
        found: list[tuple[int, int]] = []
        for position in expiring.numbers():
            there = messages.index.peek(position, 1)
            if there and there[0][0] == position:
                found += there
                messages.expiring.append(position)
            elif position >= self._log.stored(level, messages.end):
                messages.expiring.append(position)
        return found

    def _held(self) -> Iterator[tuple[int, int, StoredMessage | int]]:
        """All messages that are not settled in the store: level, position there, and message or location."""
        for level, messages in self._levels.items():
            positions, locations = messages.index.columns()
            for place in range(positions.count):
                yield level, positions.get(place), locations.get(place)
        for level, unsynced in self._unsynced.items():
            for position, message in unsynced.items():
                yield level, position, message
        for level, position, each in self._log.unsettled():
            if position >= self.end(level):
                yield level, position, each


def begin_again(
    log: GroupLog, found: Mapping[int, RecoveredQueue], replica: int, configuration: bytes
) -> None:
    """Make the log of a replica that is not running that of a new one: see `GroupLog.begin_again`.

    `found` are its messages, by priority level, as the store has recovered them. They are released when that
    is durable.
    """
    log.extend({level: each.end for level, each in found.items()})
    log.begin_again(
        replica,
        configuration,
        (
            (level, each.positions.get(place), each.locations.get(place))
            for level, each in found.items()
            for place in range(each.count)
        ),
    )
