"""One stream on the disk: messages are appended, read from any offset on, and given up from the beginning.

    append ─▶ builders ─ take_batch ─▶ one write, one sync ─ written ─▶ committed, readable

Invariants: what is readable is synced, and stays the same octet by octet for as long as it is there; offsets
have no gaps but where a chunk was damaged, and are never used twice. The last segment is never given up, so
that a stream always knows its next offset.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from warren.limits import (
    STREAM_AHEAD_SIZE,
    STREAM_CACHE_SIZE,
    STREAM_CHUNK_SIZE,
    STREAM_SEGMENT_SIZE,
)
from warren.model.message import Message
from warren.store.disk import Create, Delete, Disk, Step, Sync, SyncDirectory, Write
from warren.store.segment import SegmentError
from warren.store.streams.chunk import FOLLOWS_SYNC, Chunk, ChunkBuilder, is_whole, read_head
from warren.store.streams.scan import FoundChunk, chunks
from warren.store.streams.segment import SALT_SIZE, StreamSegment


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much of a stream is kept, at least; None is for ever."""

    octets_max: int | None = None
    age_ms_max: int | None = None
    segment_size: int = STREAM_SEGMENT_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFiles:
    """Where streams lie, and what they need to write there and to say so."""

    disk: Disk
    random_octets: Callable[[int], bytes]
    # Told of what cannot be read; everything else can.
    report: Callable[[OSError | SegmentError], None]


class StreamLog:
    """The messages of one stream."""

    __slots__ = (
        "_builders",
        "_cache",
        "_cached_octets",
        "_disk",
        "_flying",
        "_random_octets",
        "_report",
        "_steps",
        "committed",
        "is_dirty",
        "listener",
        "next",
        "number",
        "retention",
        "segments",
    )  # fmt: skip

    def __init__(self, number: int, files: StreamFiles, segments: list[StreamSegment]) -> None:
        """The stream whose files are `segments`, in order; the last one is written to unless it is sealed."""
        self.number = number
        self.segments = segments
        self.retention = Retention()
        self._disk = files.disk
        self._random_octets = files.random_octets
        self._report = files.report
        # The offset of the next message, and the one before which all can be read.
        self.next = segments[-1].end if segments else 0
        self.committed = self.next
        # Whether the store knows that there is something to write, and who is told when it was.
        self.is_dirty = False
        self.listener: Callable[[], None] = _nobody
        self._builders: list[ChunkBuilder] = []
        # Chunks that are being written: they are readable when that has ended.
        self._flying: list[tuple[int, bytes]] = []
        # Steps that are due besides: files to be deleted.
        self._steps: list[Step] = []
        # First offset -> octets of a chunk that was read or written of late, the eldest use first.
        self._cache: OrderedDict[int, bytes] = OrderedDict()
        self._cached_octets = 0

    def skip_to(self, offset: int) -> None:
        """Use no offset before `offset` any more, as some may have been lost."""
        if offset > self.next:
            self.next = self.committed = offset

    @property
    def first(self) -> int:
        """The offset of the first message that is kept."""
        return self.segments[0].first if self.segments else 0

    @property
    def octets(self) -> int:
        """What it takes on the disk."""
        return sum(segment.size for segment in self.segments)

    def append(self, message: Message) -> int:
        """Keep `message` when the next batch is written; answers its offset."""
        builders = self._builders
        if not builders or builders[-1].size >= STREAM_CHUNK_SIZE:
            builders.append(ChunkBuilder(self.next))
        builders[-1].add(message)
        offset = self.next
        self.next += 1
        return offset

    def take_batch(self) -> list[Step]:
        """The steps that write what was appended; `written` is due when they are done.

        They write to one segment: what does not fit there is left for the next batch. One that failed is
        written again from its first step, and must not make anew what it has filled before.
        """
        steps, self._steps = self._steps, []
        if not self._builders:
            return steps
        if not self.segments or self._is_full(self._builders[0].size):
            steps += self._roll(self._builders[0].first)
        segment = self.segments[-1]
        begin = segment.size
        flags = FOLLOWS_SYNC
        taken = 0
        for builder in self._builders:
            if taken and self._is_full(builder.size):
                break
            octets = builder.encode(segment.mark, segment.seed, flags)
            head = read_head(octets, 0, segment.mark, segment.seed)
            assert head is not None
            segment.note(head, segment.size, len(octets))
            self._flying.append((builder.first, octets))
            flags = 0
            taken += 1
        del self._builders[:taken]
        parts = [octets for _, octets in self._flying]
        if segment.size > segment.ahead and segment.size - begin < STREAM_AHEAD_SIZE:
            # Only small batches gain by it: to zero as much again would cost large ones more than growing.
            parts.append(bytes(STREAM_AHEAD_SIZE))
            segment.ahead = segment.size + STREAM_AHEAD_SIZE
        return [*steps, Write(segment.name, begin, parts), Sync(segment.name)]

    def written(self) -> None:
        """What the last batch had is safe, and readable."""
        flying, self._flying = self._flying, []
        for first, octets in flying:
            self._remember(first, octets)
        if flying:
            self.committed = self.segments[-1].end
            self.listener()

    def read(self, offset: int) -> Chunk | None:
        """The chunk with the message at `offset`, or behind it if that is damaged; None at the end.

        What cannot be read is reported, each time that somebody comes by.
        """
        offset = max(offset, self.first)
        while offset < self.committed:
            chunk = self._cached(offset)
            if chunk is None:
                try:
                    chunk = self._fetched(offset)
                except OSError as error:
                    self._report(error)
            if chunk is not None:
                return chunk
            offset = self._behind_damage(offset)
        return None

    def offset_at(self, time: int) -> int:
        """The offset of the first chunk that was begun at `time` (ms) or later; the next one if none was."""
        for segment in self.segments:
            if segment.last_time < time or segment.first >= self.committed:
                continue
            try:
                for found in self._chunks(segment, segment.place_at(time)):
                    if found.head.first >= self.committed:
                        break
                    if found.head.time >= time:
                        return found.head.first
            except OSError as error:
                self._report(error)
        return self.committed

    def trim(self, now: int) -> None:
        """Give up the eldest segments, as far as `retention` wants it; the next batch deletes them."""
        kept = self.retention
        octets = self.octets
        while len(self.segments) > 1:
            eldest = self.segments[0]
            is_too_much = kept.octets_max is not None and octets - eldest.size >= kept.octets_max
            is_too_old = kept.age_ms_max is not None and eldest.last_time + kept.age_ms_max < now
            if not eldest.is_sealed or not (is_too_much or is_too_old):
                return
            octets -= eldest.size
            self._give_up(self.segments.pop(0))

    def give_up(self) -> None:
        """The stream is gone: the next batch deletes all of it."""
        self._builders = []
        for segment in self.segments:
            self._give_up(segment)
        self.segments = []

    @property
    def has_work(self) -> bool:
        """Whether `take_batch` has anything to write."""
        return bool(self._builders or self._steps)

    # --- private -------------------------------------------------------------------------------

    def _give_up(self, segment: StreamSegment) -> None:
        self._steps += [Delete(segment.index_name), Delete(segment.name), SyncDirectory()]

    def _is_full(self, size: int) -> bool:
        segment = self.segments[-1]
        if segment.is_sealed:
            return True
        return segment.end > segment.first and segment.size + size > self.retention.segment_size

    def _roll(self, first: int) -> list[Step]:
        """Seal the last segment and begin the next, at `first`."""
        steps: list[Step] = []
        if self.segments and not self.segments[-1].is_sealed:
            steps += self.segments[-1].seal()
        segment = StreamSegment(self.number, first, self._random_octets(SALT_SIZE))
        self.segments.append(segment)
        head = segment.encode_head(self.number)
        # What an index says must not outlive its file.
        steps += [Delete(segment.index_name), Create(segment.name, 0)]
        # Whole before anything is written behind it: one that is torn has nothing in it.
        return [*steps, Write(segment.name, 0, [head]), Sync(segment.name), SyncDirectory()]

    def _remember(self, first: int, octets: bytes) -> None:
        cache = self._cache
        if first not in cache:
            self._cached_octets += len(octets)
        cache[first] = octets
        cache.move_to_end(first)
        while self._cached_octets > STREAM_CACHE_SIZE and len(cache) > 1:
            _, eldest = cache.popitem(last=False)
            self._cached_octets -= len(eldest)

    def _cached(self, offset: int) -> Chunk | None:
        """The chunk that begins with `offset`, if it was read or written of late."""
        octets = self._cache.get(offset)
        if octets is None:
            return None
        self._cache.move_to_end(offset)
        segment = self._segment_of(offset)
        head = read_head(octets, 0, segment.mark, segment.seed)
        assert head is not None
        return Chunk(octets, 0, head)

    def _fetched(self, offset: int) -> Chunk | None:
        """The chunk with `offset`, from the disk, keeping what was read along; None if it is damaged."""
        segment = self._segment_of(offset)
        wanted: Chunk | None = None
        for found in self._chunks(segment, segment.place_before(offset)):
            head = found.head
            if head.end <= offset:
                continue
            if head.first >= self.committed or (wanted is None and head.first > offset):
                break
            if wanted is not None and not found.is_read:
                break
            octets = found.octets(self._disk.read, segment.name)
            if not is_whole(octets, 0, head, segment.seed):
                break
            self._remember(head.first, octets)
            if wanted is None:
                wanted = Chunk(octets, 0, head)
        if wanted is None:
            self._report(SegmentError(segment.name, 0, f"the message at offset {offset} is damaged"))
        return wanted

    def _behind_damage(self, offset: int) -> int:
        """The first offset behind the damaged chunk that `offset` was in."""
        segment = self._segment_of(offset)
        try:
            for found in self._chunks(segment, segment.place_before(offset)):
                if found.head.first > offset:
                    return found.head.first
                if found.head.end > offset:
                    return found.head.end
        except OSError:
            return segment.offset_behind(offset)
        if segment.end > offset:
            return segment.end
        return min((later.first for later in self.segments if later.first > offset), default=self.committed)

    def _segment_of(self, offset: int) -> StreamSegment:
        """The segment with `offset`, which is one that is kept."""
        low, high = 0, len(self.segments)
        while high - low > 1:
            middle = (low + high) // 2
            if self.segments[middle].first <= offset:
                low = middle
            else:
                high = middle
        return self.segments[low]

    def _chunks(self, segment: StreamSegment, place: int) -> Iterator[FoundChunk]:
        return chunks(self._disk.read, segment, place, segment.size)


def _nobody() -> None:
    """Nobody waits for what is written."""
