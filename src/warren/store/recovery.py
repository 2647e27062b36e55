"""Opens a store: reads its segments and determines the live messages and any damage.

Each segment is read once, in order, to collect its records; message bodies stay on disk. The log may end in
the middle of a record: a write torn by a power cut was never confirmed. Nothing is torn before a BATCH
record, nor before the end that the catalog has, since all of that was synced. There, a failed checksum is
damage, which is reported with its place; every readable record behind it and around unreadable sectors is
kept. A segment that the catalog has and that is missing or too short is reported as lost. A damaged file is
never written to or reused.

A torn end is not overwritten: the last segment is sealed behind its last whole record, and a new one is
started. A segment that cannot be sealed is damaged. A segment without records is reused. What the catalog
does not know as synced is synced now, so that everything that was found is durable. What no BATCH record
follows is written again before: if a sync has failed and the process was killed, it was read from the page
cache, and no sync would write it any more.

The messages of a Raft group that no entry of it has are released: their batch was torn. Damage anywhere, or
records of a group that are missing, makes its replica untrusted: it may lack an entry that it promised to
keep, and serving what is left, as is done for other queues, would lose messages that were confirmed.
"""

from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from warren.limits import SEGMENT_SIZE
from warren.store.accepted_damage import not_accepted
from warren.store.catalog import Catalog
from warren.store.cursor import QueueCursor
from warren.store.delivered import Delivered
from warren.store.disk import DeleteFile, Disk, DiskStep, RenameFile, SyncDirectory, SyncFile, WriteFile
from warren.store.group_log import GroupLog
from warren.store.group_record import PayloadVersions
from warren.store.group_state import NO_REPLICA, GroupState
from warren.store.markers import CommitMarker
from warren.store.message_store import MessageStore
from warren.store.reach import StoreReach
from warren.store.record import BATCH, KIND_AT, SEAL, encode, is_intact
from warren.store.record import HEAD_SIZE as _RECORD_HEAD_SIZE
from warren.store.recovered_queue import RecoveredQueue
from warren.store.salvage import (
    damaged_record,
    distribute_losses,
    is_damage,
    messages_between,
    next_intact_record,
    read_around_damage,
)
from warren.store.scan import LiveMessages, SegmentScan, recovered_cursor
from warren.store.segment import (
    HEAD_SIZE,
    SUFFIX,
    NewerFormatError,
    Segment,
    StoreFileError,
    is_spare,
    knows_deaths,
    number_of,
    seed_of,
    segment_name,
    was_begun,
)
from warren.store.segment_log import SegmentLog, catalog_entry_of, spare_name
from warren.store.store_port import StorePort
from warren.store.stores import TRANSIENT_SEGMENTS_FROM

_SEGMENT_SHIFT = 32
# The file with the list of segments.
CATALOG = "catalog"


class StoreEnd(Enum):
    """In which condition a store was found."""

    CLEAN = "clean"
    # The last batch may not be there as a whole; if so, nothing of it was confirmed.
    TORN = "torn"
    DAMAGED = "damaged"


class RecoveredStore(Struct, frozen=True, kw_only=True):
    """The opened store, the messages of its queues, and the damage that was found."""

    store: MessageStore
    # Number of a queue -> priority level -> recovered messages.
    queues: dict[int, dict[int, RecoveredQueue]]
    damage: list[StoreFileError]
    end: StoreEnd
    # Number of a Raft group -> the log of its replica, which may be untrusted.
    groups: dict[int, GroupLog]


class RecoveryDependencies(Struct, frozen=True, kw_only=True):
    """What opening a store needs from above the waterline."""

    random_bytes: Callable[[int], bytes]
    # True if a queue with this number exists; messages of other queues are dead.
    has_queue: Callable[[int], bool]
    # Called with the bytes read so far and the bytes to be read.
    progress: Callable[[int, int], None]
    # Number of a Raft group -> number of its replica, for those that the metadata has here.
    replicas: dict[int, int] = {}
    # Files that are known to be missing as a whole, of which the store itself cannot know.
    missing: list[StoreFileError] = []
    # How far the store had come, as far as others know; None if nobody does.
    reach: StoreReach | None = None
    # The newest versions of what others store in the records of a Raft group; None if that does not matter.
    payload_versions: PayloadVersions | None = None


def open_store(disk: Disk, port: StorePort, dependencies: RecoveryDependencies) -> RecoveredStore:
    """Open the store in `disk`, or create one.

    NewerFormatError for a newer format, OlderCopyError for an older copy; OSError from the disk.
    """
    names = disk.names()
    catalog = Catalog(disk, CATALOG)
    delivered = Delivered(disk)
    reading = _StoreReader(
        disk,
        dependencies,
        {name: size for name, size in names.items() if number_of(name) is not None},
        catalog,
    )
    reading.read_all()
    if dependencies.reach is not None:
        is_damaged = bool(dependencies.missing or reading.damage)
        reading.damage += dependencies.reach.begin(reading.end_location(), is_damaged=is_damaged)
    spares = [name for name, size in names.items() if is_spare(name) and size == SEGMENT_SIZE]
    # Numbers of lost segments are not reused either.
    number = max(reading.damaged_number, *reading.segments, *catalog.entries, 0)
    reading.seal()
    spares += reading.use_again(spares)
    reading.know_all()
    log = SegmentLog(reading.segments, spares, dependencies.random_bytes, number, catalog=catalog)
    disk.perform(log.begin())
    log.written()
    reading.judge_groups([*dependencies.missing, *reading.damage])
    reading.damage += delivered.damage
    reading.fill(delivered)
    store = MessageStore(disk, log, port, reading.cursors)
    store.note_in(delivered)
    store.markers.update(reading.markers)
    groups = reading.open_groups(store)
    return RecoveredStore(
        store=store, queues=reading.queues, damage=reading.damage, end=reading.end(), groups=groups
    )


def open_erased(disk: Disk, port: StorePort, random_bytes: Callable[[int], bytes]) -> MessageStore:
    """Open a store in `disk` for messages that need not survive, and erase its old files.

    OSError from the disk.

    Only the files of the store are deleted; other files in the directory stay.
    """
    own = [name for name in disk.names() if number_of(name) is not None or is_spare(name)]
    disk.perform([DeleteFile(name) for name in own])
    log = SegmentLog({}, [], random_bytes, TRANSIENT_SEGMENTS_FROM, is_erased=True)
    return MessageStore(disk, log, port, {})


class _StoreReader:
    """One pass over the segments of a store."""

    def __init__(
        self, disk: Disk, dependencies: RecoveryDependencies, sizes: dict[str, int], catalog: Catalog
    ) -> None:
        self._disk = disk
        self._catalog = catalog
        self._dependencies = dependencies
        self._sizes = sizes
        self._read = 0
        self._total = sum(sizes.values())
        self._scan = SegmentScan(dependencies.payload_versions)
        self.segments: dict[int, Segment] = {}
        self.damage: list[StoreFileError] = [*catalog.damage]
        self.cursors: dict[tuple[int, int], QueueCursor] = {}
        self.queues: dict[int, dict[int, RecoveredQueue]] = {}
        self.markers: dict[bytes, CommitMarker] = {}
        self.groups: dict[int, GroupState] = {}
        # Positions of messages without an entry, by (number of the group, priority level).
        self._void: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._is_torn = False
        # The last segment with a damaged head, which is left as it is: its number is not reused.
        self.damaged_number = 0
        # Numbers of segments without records.
        self._silent: set[int] = set()
        # Segments whose records end without a SEAL.
        self._unsealed: list[Segment] = []
        # The steps that write the end of the last segment again, by its number.
        self._last_batch: dict[int, WriteFile] = {}

    def read_all(self) -> None:
        """Read every segment, in order."""
        numbers = sorted(int(name.removesuffix(SUFFIX)) for name in self._sizes)
        known = self._catalog.entries
        for number in sorted({*known} - {*numbers}):
            entry = known[number]
            self._lose(number, 0, "the file is missing", entry.count)
        for number in numbers:
            segment = Segment(number)
            data, unreadable = read_around_damage(self._disk, segment.name, self._sizes[segment.name])
            self.damage += unreadable
            segment.capacity = len(data)
            self._read += len(data)
            self._dependencies.progress(self._read, self._total)
            try:
                segment.seed = seed_of(data[:HEAD_SIZE], number)
                segment.knows_deaths = knows_deaths(data)
            except NewerFormatError:
                raise
            except StoreFileError as error:
                # The last file may have been created but never written.
                if number != numbers[-1] or number in known or was_begun(data, number):
                    if not unreadable:
                        count = known[number].count if number in known else None
                        self._lose(number, error.at, error.reason, count)
                    self.damaged_number = number
                continue
            self.segments[number] = segment
            self._read_segment(segment, data, unreadable, is_last=number == numbers[-1])

    def end_location(self) -> int:
        """The location behind the last record that was found."""
        number = max(self.damaged_number, *self.segments, *self._catalog.entries, 0)
        segment = self.segments.get(number)
        return (number << _SEGMENT_SHIFT) | (0 if segment is None else segment.size)

    def seal(self) -> None:
        """Seal the last segment behind its last record; damaged segments stay as they are."""
        damaged = {error.name for error in self.damage}
        for segment in self._unsealed:
            if segment.name in damaged or segment.number in self._silent:
                continue
            if segment.number != max(self.segments):
                entry = self._catalog.entries.get(segment.number)
                missing = None if entry is None else max(entry.count - segment.count, 0)
                self._lose(segment.number, segment.size, "the records end without a seal", missing)
                continue
            record = encode(SEAL, b"", segment.seed)
            write = WriteFile(segment.name, segment.size, [record])
            try:
                self._disk.perform([*self._again(segment), write, SyncFile(segment.name)])
            except OSError as error:
                if not is_damage(error):
                    raise
                reason = f"the segment cannot be sealed: {error.strerror}"
                self.damage.append(StoreFileError(segment.name, segment.size, reason, messages=0))
            else:
                segment.size += len(record)
                segment.is_sealed = True

    def _again(self, segment: Segment) -> list[DiskStep]:
        """The step that writes again what may never have been synced in `segment`; only once."""
        write = self._last_batch.pop(segment.number, None)
        return [] if write is None or not any(write.chunks) else [write]

    def use_again(self, spares: list[str]) -> list[str]:
        """Rename the file of the last segment to a spare file, if the segment has no records."""
        segment = self.segments.get(max(self.segments, default=0))
        if segment is None or segment.number not in self._silent:
            return []
        del self.segments[segment.number]
        spare = spare_name(spares)
        steps = [*self._catalog.remove([segment.number]), RenameFile(segment.name, spare), SyncDirectory()]
        self._disk.perform(steps)
        return [spare]

    def know_all(self) -> None:
        """Sync all segments that the catalog does not know as synced, and record them there.

        The entries of damaged segments stay as they are.
        """
        damaged = {error.name for error in self.damage}
        for segment in self.segments.values():
            entry = self._catalog.entries.get(segment.number)
            segment.queues.update(() if entry is None else entry.queues)
            if segment.name in damaged or (entry is not None and entry.end == segment.size):
                continue
            # A process that was killed may have written, and even sealed, the segment without a sync.
            try:
                self._disk.perform([*self._again(segment), SyncFile(segment.name)])
            except OSError as error:
                if not is_damage(error):
                    raise
                reason = f"the segment cannot be synced: {error.strerror}"
                self.damage.append(StoreFileError(segment.name, segment.size, reason, messages=0))
            else:
                self._catalog.note(segment.number, catalog_entry_of(segment))

    def fill(self, delivered: Delivered) -> None:
        """Restore the cursors and live messages of each queue, with positions from the log and from
        `delivered`.
        """
        for key, scan in self._scan.cursors.items():
            queue, level = key
            if not self._dependencies.has_queue(queue):
                continue
            cursor = self.cursors[key] = recovered_cursor(scan, queue, level)
            remaining = LiveMessages(scan, cursor, self.segments)
            if queue in self.groups and not self.groups[queue].reason:
                self._void[key] = self.groups[queue].settle_void(cursor, scan.end)
            while remaining.take_some():
                pass
            found = remaining.found()
            found.delivered_up_to = delivered.restore(cursor, found.end)
            self.queues.setdefault(queue, {})[level] = found
            for number in scan.segments:
                self.segments[number].cursors.add(cursor)
        delivered.forget_rest()
        self.markers = self._scan.markers
        self._scan = SegmentScan()

    def judge_groups(self, damage: list[StoreFileError]) -> None:
        """Say which replicas are untrusted; `damage` is what was found in the segments and the catalog.

        A queue without any record has never been written, unless something is lost: whatever it confirmed
        stood behind its first record.
        """
        damage = not_accepted(damage, self._scan.markers)
        states, expected = self._scan.groups.states, self._dependencies.replicas
        used = {queue for queue, _ in self._scan.cursors}
        for number, replica in expected.items():
            state = states.get(number)
            if state is None and (damage or number in used):
                state = states[number] = GroupState(number, replica)
                cause = f": {damage[0]}" if damage else ""
                state.distrust(f"none of its records was found{cause}")
            elif state is not None and state.replica not in (replica, NO_REPLICA):
                state.distrust(f"the records are those of replica {state.replica}, not {replica}")
                state.replica = replica
            elif state is not None and state.reason:
                # What says the number may be lost as well; a replica that has ended has nothing to lose.
                state.replica = replica
        for number in sorted(states):
            if self._dependencies.has_queue(number):
                state = self.groups[number] = states[number]
                state.damage = [error for error in damage if _concerns(error, state.since)]
                cause = str(state.damage[0]) if state.damage else ""
                if cause not in state.reason:
                    # Where it began, before what followed from it.
                    state.reason = f"{cause}; {state.reason}" if state.reason else cause

    def open_groups(self, store: MessageStore) -> dict[int, GroupLog]:
        """Open the log of each group in `store`. Called when `fill` has restored the messages."""
        groups = {}
        for number, state in self.groups.items():
            groups[number] = GroupLog(store, state)
            for level in self.queues.get(number, {}):
                for first, end in self._void.get((number, level), ()):
                    store.finish_found(self.cursors[number, level], first, end)
            groups[number].restore(self.queues.get(number, {}))
        return groups

    def end(self) -> StoreEnd:
        """In which condition the store was found."""
        if self.damage:
            return StoreEnd.DAMAGED
        return StoreEnd.TORN if self._is_torn else StoreEnd.CLEAN

    def _read_segment(
        self, segment: Segment, data: bytes, unreadable: list[StoreFileError], *, is_last: bool
    ) -> None:
        """Collect all records of `segment`; `unreadable` are the parts that the device cannot read.

        All of a segment was synced, unless it is the last one.
        """
        damage = list(unreadable)
        at = HEAD_SIZE
        batch = encode(BATCH, b"", segment.seed)
        entry = self._catalog.entries.get(segment.number)
        known = 0 if entry is None else entry.end
        while True:
            start = at
            at = self._scan.take_some(segment, data, at)
            if at > start:
                continue
            size = is_intact(data, at, segment.seed)
            if size and data[at + KIND_AT] == SEAL:
                # A damaged segment is not sealed, so that it never counts as dead.
                segment.is_sealed = not damage
                at += size
                break
            # Everything before a BATCH record was synced: if there is one behind, this is damage and not a
            # torn end.
            synced = max(known, data.rfind(batch, at + 1)) if is_last else len(data)
            if at >= synced:
                break
            if size:
                # The group was complete before the damage: its readable messages count, and its marker.
                self._scan.take(segment, data, at, size)
                at += size
                continue
            whole = next_intact_record(data, at, segment.seed, synced)
            if not whole:
                break
            damage.append(damaged_record(segment.name, data, at, whole))
            at = whole
        segment.size = at
        if is_last:
            # A file is begun, with its head, by the batch that writes its first records.
            start = data.rfind(batch, HEAD_SIZE + 1, at)
            start = max(known, start if start > 0 else 0)
            self._last_batch[segment.number] = WriteFile(segment.name, start, [data[start:at]])
        # Behind the end of a reused file its former content follows, whose checksums have another seed.
        self._is_torn = is_last and at != known and any(data[at : at + _RECORD_HEAD_SIZE])
        if entry is not None and at < known:
            damage.append(
                StoreFileError(segment.name, at, f"{known - at} bytes are lost", queues=entry.queues)
            )
        if damage and entry is not None:
            found = segment.count - messages_between(data, known, at, segment.seed)
            distribute_losses(damage, max(entry.count - found, 0))
        self.damage += damage[len(unreadable) :]
        if not segment.is_sealed:
            self._unsealed.append(segment)
        # The comparison copies the segment twice: it is made for the last one only.
        if is_last and not damage and len(data) == SEGMENT_SIZE and _has_only(batch, data[HEAD_SIZE:at]):
            self._silent.add(segment.number)

    def _lose(self, number: int, at: int, reason: str, messages: int | None) -> None:
        """Report the loss of `messages` messages (None: unknown) of segment `number`, from byte `at` on."""
        entry = self._catalog.entries.get(number)
        queues = () if entry is None else entry.queues
        self.damage.append(StoreFileError(segment_name(number), at, reason, messages=messages, queues=queues))


def _has_only(record: bytes, data: bytes) -> bool:
    """True if `data` is `record` any number of times."""
    return data == record * (len(data) // len(record))


def _concerns(error: StoreFileError, since: int) -> bool:
    """True if the damage of `error` may be in what was written from segment number `since` on."""
    number = number_of(error.name)
    # A damaged head costs its whole segment.
    return number is None or number >= since
