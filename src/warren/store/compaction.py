"""Compaction: copies the live messages of a mostly dead segment to the end of the log, to free its file.

    most of it dead:  │ message │ ▒▒▒▒▒▒▒▒ │ message │ ▒▒▒▒ │   ─ a piece with each batch ─▶  end of the log

Queues keep the location that they have for a message. The segment stays in memory while any queue has a
location in it, and maps its records to their new locations. A copy that is moved again is found through its
original location, so that a lookup takes one step at most.

Invariants: a message counts as moved when its copy is synced. A reference that was released meanwhile is
released for the copy too. After a crash there may be two records of a message; the later one counts.
"""

from collections.abc import Iterable

from warren.limits import (
    COMPACTION_READ_SIZE,
    COMPACTION_READS_PER_BATCH,
    COMPACTION_SLACK_SEGMENTS,
    SEGMENT_SIZE,
)
from warren.model.message import presume_died
from warren.store.cursor import QueueCursor
from warren.store.disk import Disk
from warren.store.record import (
    HEAD_SIZE,
    MESSAGE,
    MESSAGE_OVERHEAD,
    REFERENCE_SIZE,
    SEAL,
    decode_message,
    first_reference,
    is_intact,
    reference_count,
    uint32,
    uint64,
)
from warren.store.relocation_map import RelocationMap
from warren.store.segment import HEAD_SIZE as SEGMENT_HEAD_SIZE
from warren.store.segment import Segment, StoreFileError, slot_of
from warren.store.segment_log import SegmentLog

_SEGMENT_SHIFT = 32
_LEVEL_SHIFT = 56


class Compaction:
    """The compaction of one segment, a piece with each batch."""

    __slots__ = ("_at", "_cursors", "_disk", "_moves", "_segments", "is_finished", "segment")

    def __init__(
        self,
        segment: Segment,
        disk: Disk,
        segments: dict[int, Segment],
        cursors: dict[tuple[int, int], QueueCursor],
    ) -> None:
        self.segment = segment
        # True when all live messages have been moved.
        self.is_finished = False
        self._disk = disk
        self._segments = segments
        self._cursors = cursors
        # The place up to which the segment has been copied.
        self._at = SEGMENT_HEAD_SIZE
        # Messages copied in this batch: (old place, new location, references, size in bytes).
        self._moves: list[tuple[int, int, list[bytes], int]] = []

    def copy(self, log: SegmentLog) -> None:
        """Append the live messages of the next piece to `log`; StoreFileError if a record is damaged."""
        for _ in range(COMPACTION_READS_PER_BATCH):
            if self._moves or self.is_finished:
                return
            self._copy_piece(log)

    def finish_moves(self) -> list[Segment]:
        """Record the moves of this batch, which was synced. Returns the segments without live messages."""
        moves, self._moves = self._moves, []
        dead = []
        for at, location, references, byte_count in moves:
            alive = len(self._alive(at, references))
            target = self._segments[location >> _SEGMENT_SHIFT]
            target.drop_references(len(references) - alive, byte_count)
            if alive:
                self._record_move(at, location, alive, byte_count)
            elif target.is_dead:
                dead.append(target)
        return dead

    def _copy_piece(self, log: SegmentLog) -> None:
        segment = self.segment
        data = self._disk.read(segment.name, self._at, COMPACTION_READ_SIZE)
        begin = 0
        while True:
            size = is_intact(data, begin, segment.seed)
            if not size and begin:
                break
            if not size:
                data = self._read_whole(data)
                size = len(data)
            kind = data[begin + 8]
            if kind == MESSAGE:
                self._copy_message(log, data, begin, size)
            begin += size
            if kind == SEAL:
                self.is_finished = True
                break
        self._at += begin

    def _read_whole(self, data: bytes) -> bytes:
        """The whole record of which `data` is the beginning. StoreFileError if it is damaged."""
        segment = self.segment
        size = HEAD_SIZE + uint32(data, 0) if len(data) >= HEAD_SIZE else 0
        if len(data) < size <= segment.size - self._at:
            data = self._disk.read(segment.name, self._at, size)
            if is_intact(data, 0, segment.seed) == size:
                return data
        raise StoreFileError(segment.name, self._at, "a record is damaged")

    def _copy_message(self, log: SegmentLog, data: bytes, begin: int, size: int) -> None:
        first = first_reference(begin)
        end = first + reference_count(data, begin) * REFERENCE_SIZE
        at = self._at + begin
        references = self._alive(
            at, [data[i : i + REFERENCE_SIZE] for i in range(first, end, REFERENCE_SIZE)]
        )
        if not references:
            return
        message = decode_message(data, begin, size)
        message.references = len(references)
        if not self.segment.knows_deaths:
            presume_died(message)
        log.append_message(message, b"".join(references))
        self._moves.append((at, message.location, references, len(message.content) + MESSAGE_OVERHEAD))

    def _alive(self, at: int, references: list[bytes]) -> list[bytes]:
        """The `references` of the message at `at` that are still live."""
        gone = self.segment.gone
        if gone is not None:
            return [] if gone.has(slot_of(at)) else references
        return [reference for reference in references if self._needs(reference)]

    def _needs(self, reference: bytes) -> bool:
        key = uint64(reference, 4)
        level = key >> _LEVEL_SHIFT
        cursor = self._cursors.get((uint32(reference, 0), level))
        return cursor is not None and not cursor.has(key - (level << _LEVEL_SHIFT))

    def _record_move(self, at: int, location: int, alive: int, byte_count: int) -> None:
        """Redirect `alive` references of `byte_count` bytes each from `at` to the copy at `location`."""
        segment = self.segment
        target = self._segments[location >> _SEGMENT_SHIFT]
        home = segment.home.find(at) if segment.home is not None else 0
        if home:
            first = self._segments[home >> _SEGMENT_SHIFT]
            first.moved.replace(home - (first.number << _SEGMENT_SHIFT), location)  # type: ignore[union-attr]
            segment.drop_references(alive, byte_count)
        else:
            home = (segment.number << _SEGMENT_SHIFT) | at
            if segment.moved is None:
                segment.moved = RelocationMap()
            segment.moved.append(at, location)
        if target.home is None:
            target.home = RelocationMap()
        target.home.append(location - (target.number << _SEGMENT_SHIFT), home)


def segment_to_compact(segments: Iterable[Segment]) -> Segment | None:
    """The segment with the smallest live share, if all together have much more dead than live bytes.

    Or None.
    """
    best: Segment | None = None
    total = alive = 0
    for segment in segments:
        if not segment.is_sealed or segment.is_retiring:
            continue
        total += segment.byte_count
        alive += segment.live_bytes
        if best is None or segment.live_bytes * best.byte_count < best.live_bytes * segment.byte_count:
            best = segment
    return best if total - alive > alive + COMPACTION_SLACK_SEGMENTS * SEGMENT_SIZE else None
