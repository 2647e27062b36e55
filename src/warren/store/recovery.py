"""Opens a store: reads its segments, and says what is still there and what is damaged.

Each segment is read once for what happened in it, in order; messages stay on the disk until their queue needs
them. A log may end in the middle of a record: what a power cut has torn was never confirmed. Behind a BATCH
record nothing is torn, as all before it was synced; there, what fails its checksum is damage, which is
reported with its place, and everything that can be read is kept, sectors that the device does not give back
among the rest. A damaged file is never written to or used again.

What was torn is not written over: the last segment is sealed where its records end, and a new one is begun.
One that cannot be sealed is damaged.
"""

from collections.abc import Callable
from dataclasses import dataclass

from warren.limits import SEGMENT_SIZE
from warren.store.disk import Delete, Disk, Sync, Write
from warren.store.found import Found
from warren.store.lane import Lane
from warren.store.log import Log
from warren.store.marks import Mark
from warren.store.message_store import MessageStore, StorePort
from warren.store.record import BATCH, KIND_AT, SEAL, encode, is_intact
from warren.store.salvage import is_damage, salvaged
from warren.store.scan import Remaining, Scan, released
from warren.store.segment import (
    HEAD_SIZE,
    SPARE_PREFIX,
    SUFFIX,
    NewerFormatError,
    Segment,
    SegmentError,
    seed_of,
    was_begun,
)
from warren.store.stores import TRANSIENT_SEGMENTS_FROM


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What was found in a store."""

    store: MessageStore
    # Number of a queue -> priority level -> what was found.
    queues: dict[int, dict[int, Found]]
    damage: list[SegmentError]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningWorld:
    """What opening a store needs from above the waterline."""

    random_octets: Callable[[int], bytes]
    # Whether a queue with this number exists: what others left behind is dead.
    has_queue: Callable[[int], bool]
    # Called with octets read and octets to be read, as it goes.
    progress: Callable[[int, int], None]


def open_store(disk: Disk, port: StorePort, world: OpeningWorld) -> Recovered:
    """Open the store in `disk`, or make one. SegmentError for a newer format, OSError from the disk."""
    names = disk.names()
    reading = _Reading(disk, world, {name: size for name, size in names.items() if name.endswith(SUFFIX)})
    reading.read_all()
    spares = [name for name, size in names.items() if name.startswith(SPARE_PREFIX) and size == SEGMENT_SIZE]
    log = Log(reading.segments, spares, world.random_octets, reading.damaged_number)
    reading.seal()
    disk.perform(log.begin())
    reading.fill()
    store = MessageStore(disk, log, port, reading.lanes)
    store.marks.update(reading.marks)
    return Recovered(store=store, queues=reading.queues, damage=reading.damage)


def open_erased(disk: Disk, port: StorePort, random_octets: Callable[[int], bytes]) -> MessageStore:
    """Open a store in `disk` for what need not survive, and erase what is there. OSError from the disk."""
    disk.perform([Delete(name) for name in disk.names()])
    log = Log({}, [], random_octets, TRANSIENT_SEGMENTS_FROM, is_erased=True)
    return MessageStore(disk, log, port, {})


class _Reading:
    """One pass over the segments of a store."""

    def __init__(self, disk: Disk, world: OpeningWorld, sizes: dict[str, int]) -> None:
        self._disk = disk
        self._world = world
        self._sizes = sizes
        self._read = 0
        self._total = sum(sizes.values())
        self._scan = Scan()
        self.segments: dict[int, Segment] = {}
        self.damage: list[SegmentError] = []
        self.lanes: dict[tuple[int, int], Lane] = {}
        self.queues: dict[int, dict[int, Found]] = {}
        self.marks: dict[bytes, Mark] = {}
        # The last segment that has a damaged head, and is left as it is: its number is not used again.
        self.damaged_number = 0
        # Segments whose records end without a seal.
        self._unsealed: list[Segment] = []

    def read_all(self) -> None:
        """Read every segment, in order."""
        numbers = sorted(int(name.removesuffix(SUFFIX)) for name in self._sizes)
        for number in numbers:
            segment = Segment(number)
            octets, unreadable = salvaged(self._disk, segment.name, self._sizes[segment.name])
            self.damage += unreadable
            segment.capacity = len(octets)
            self._read += len(octets)
            self._world.progress(self._read, self._total)
            try:
                segment.seed = seed_of(octets[:HEAD_SIZE], number)
            except NewerFormatError:
                raise
            except SegmentError as error:
                # The last one may have been made, and never begun.
                if number != numbers[-1] or was_begun(octets, number):
                    self.damage += [] if unreadable else [error]
                    self.damaged_number = number
                continue
            self.segments[number] = segment
            self._read_segment(segment, octets, unreadable, is_last=number == numbers[-1])

    def seal(self) -> None:
        """End the last segment where its records end; one that is damaged stays as it is."""
        damaged = {error.name for error in self.damage}
        for segment in self._unsealed:
            if segment.number != max(self.segments):
                self.damage.append(SegmentError(segment.name, segment.size, "the records end without a seal"))
            elif segment.name not in damaged:
                record = encode(SEAL, b"", segment.seed)
                try:
                    self._disk.perform([Write(segment.name, segment.size, [record]), Sync(segment.name)])
                except OSError as error:
                    if not is_damage(error):
                        raise
                    reason = f"the segment cannot be sealed: {error.strerror}"
                    self.damage.append(SegmentError(segment.name, segment.size, reason))
                else:
                    segment.is_sealed = True

    def fill(self) -> None:
        """Lanes as they were, and what they still need."""
        for key, scan in self._scan.lanes.items():
            queue, level = key
            if not self._world.has_queue(queue):
                continue
            lane = self.lanes[key] = released(scan, queue, level)
            remaining = Remaining(scan, lane, self.segments)
            while remaining.take_some():
                pass
            self.queues.setdefault(queue, {})[level] = remaining.found()
            for number in scan.segments:
                self.segments[number].lanes.add(lane)
        self.marks = self._scan.marks
        self._scan = Scan()

    def _read_segment(
        self, segment: Segment, octets: bytes, unreadable: list[SegmentError], *, is_last: bool
    ) -> None:
        """Take note of every record of `segment`, of which some may be `unreadable`.

        All of it was synced, unless it `is_last`.
        """
        is_damaged = bool(unreadable)
        at = HEAD_SIZE
        batch = encode(BATCH, b"", segment.seed)
        while True:
            start = at
            at = self._scan.take_some(segment, octets, at)
            if at > start:
                continue
            size = is_intact(octets, at, segment.seed)
            if size and octets[at + KIND_AT] == SEAL:
                # A damaged one is kept as it is: it never counts as dead.
                segment.is_sealed = not is_damaged
                segment.size = at + size
                return
            # All before a BATCH was synced: if there is one behind, this is damage and not a torn end.
            synced = octets.find(batch, at + 1)
            if size and (synced >= 0 or not is_last):
                # A group that is damaged was whole: what can be read of it counts, and its mark.
                self._scan.take(segment, octets, at, size)
                at += size
                continue
            if synced < 0:
                break
            self.damage.append(SegmentError(segment.name, at, "a record is damaged"))
            is_damaged = True
            at = synced
        segment.size = at
        self._unsealed.append(segment)
