"""One stream on the disk: messages are appended, read from any offset on, and given up from the beginning.

    append ─▶ builders ─ take_batch ─▶ one write, one sync ─ written ─▶ committed, readable

Invariants: what is readable is synced, and stays the same octet by octet for as long as it is there; offsets
have no gaps but where a chunk was damaged, and are never used twice. The last segment is never given up, so
that a stream always knows its next offset.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from warren.limits import STREAM_CHUNK_SIZE, STREAM_PREALLOCATION_SIZE, STREAM_SEGMENT_SIZE
from warren.model.message import Message
from warren.store.catalog import Catalog, CatalogEntry
from warren.store.disk import CreateFile, DeleteFile, Disk, DiskStep, SyncDirectory, SyncFile, WriteFile
from warren.store.segment import StoreFileError
from warren.store.streams.bloom_filter import BloomFilterCache, FilterMatcher, bloom_filter_of
from warren.store.streams.cache import ChunkCache
from warren.store.streams.chunk import (
    FOLLOWS_SYNC,
    KNOWS_ALL,
    Chunk,
    ChunkBuilder,
    MessageRun,
    is_whole,
    read_head,
)
from warren.store.streams.cursor import Cursor
from warren.store.streams.scan import ScannedChunk, scan_chunks
from warren.store.streams.segment import EPOCH_SIZE, HEAD_SIZE, SALT_SIZE, StreamSegment
from warren.store.streams.tracking import Tracking


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much of a stream is kept, at least; None is for ever."""

    octets_max: int | None = None
    age_ms_max: int | None = None
    segment_size: int = STREAM_SEGMENT_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLogDependencies:
    """Where streams lie, and what they need to write there and to say so."""

    disk: Disk
    random_octets: Callable[[int], bytes]
    # Told of what cannot be read; everything else can.
    report: Callable[[OSError | StoreFileError], None]
    # What knows how far each stream was synced, once they are open.
    catalog: Catalog | None = None
    cache: ChunkCache = field(default_factory=ChunkCache)
    bloom_filters: BloomFilterCache = field(default_factory=BloomFilterCache)


class StreamLog:
    """The messages of one stream."""

    __slots__ = (
        "_bloom_filters", "_builders", "_cache", "_catalog", "_disk", "_in_flight", "_last", "_pending",
        "_random_octets", "_report", "_steps", "_time", "_tracking", "_written", "committed", "epoch",
        "is_dirty", "listener", "next", "number", "retention", "segments",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        files: StreamLogDependencies,
        segments: list[StreamSegment],
        tracking: Tracking | None = None,
    ) -> None:
        """The stream whose files are `segments`, in order; the last one is written to unless it is sealed."""
        self.number = number
        self.segments = segments
        self.retention = Retention()
        self._disk = files.disk
        self._catalog = files.catalog
        self._random_octets = files.random_octets
        self._report = files.report
        # The offset of the next message, and the one before which all can be read.
        self.next = segments[-1].end if segments else 0
        self.committed = self.next
        # Where the last chunk begins that can be read; -1 if that is not known.
        self._last = -1
        # Whether the store knows that there is something to write, and who is told when it was.
        self.is_dirty = False
        # Of this stream, and of none that has its name before or after.
        self.epoch = segments[-1].epoch if segments else files.random_octets(EPOCH_SIZE)
        self.listener: Callable[[], None] = _nobody
        self._builders: list[ChunkBuilder] = []
        # Chunks that are being written: they are readable when that has ended.
        self._in_flight: list[Chunk] = []
        # Steps that are due besides: files to be deleted.
        self._steps: list[DiskStep] = []
        self._cache = files.cache
        self._bloom_filters = files.bloom_filters
        # Of the last chunk: times never go back, so that a time is a place, also where the clock was set back
        # while the broker was down.
        self._time = max((segment.last_time for segment in segments), default=0)
        # Of producers and consumers: what is known, what of it stands in chunks that were made, and what is
        # to stand in the next.
        self._tracking = tracking or Tracking()
        self._written = Tracking()
        self._written.update(self._tracking)
        self._pending = Tracking()

    def begin(self) -> None:
        """Have a file with the next batch, so that the epoch is known before there is a message."""
        if not self.segments:
            self._steps += self._roll(self.next)

    def skip_to(self, offset: int) -> None:
        """Use no offset before `offset` any more, as some may have been lost."""
        if offset > self.next:
            self.next = self.committed = offset

    @property
    def first(self) -> int:
        """The offset of the first message that is kept."""
        return self.segments[0].first if self.segments else self.committed

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

    def append_as(self, message: Message, producer: str, sequence: int) -> int | None:
        """Keep `message` unless `producer` has sent it, or a later one; answers its offset, or None."""
        last = self._tracking.sequences.get(producer)
        if last is not None and sequence <= last:
            return None
        offset = self.append(message)
        self._builders[-1].tracking.set_sequence(producer, sequence)
        self._tracking.set_sequence(producer, sequence)
        return offset

    def append_run_as(self, run: MessageRun, producer: str, sequence: int) -> int:
        """The same for many, of which the first has the number `sequence`; answers how many are kept."""
        last = self._tracking.sequences.get(producer)
        known = 0 if last is None else max(0, last - sequence + 1)
        if known >= run.count:
            return 0
        left = run.without(known)
        sequence += known
        builders = self._builders
        while True:
            if not builders or builders[-1].size >= STREAM_CHUNK_SIZE:
                builders.append(ChunkBuilder(self.next))
            part = left.within(STREAM_CHUNK_SIZE - builders[-1].size, left.count)
            builders[-1].add_run(part)
            self.next += part.count
            sequence += part.count
            builders[-1].tracking.set_sequence(producer, sequence - 1)
            if part.count == left.count:
                break
            left = left.without(part.count)
        self._tracking.set_sequence(producer, sequence - 1)
        return run.count - known

    def sequence_of(self, producer: str) -> int | None:
        """The sequence of the last message from `producer`; None if nothing is known of it."""
        return self._tracking.sequences.get(producer)

    def store_offset(self, reference: str, offset: int) -> None:
        """Know that the consumer `reference` has come to `offset`; it is written with the next batch."""
        if self._tracking.offsets.get(reference) != offset:
            self._tracking.set_offset(reference, offset)
            self._pending.set_offset(reference, offset)

    def stored_offset(self, reference: str) -> int | None:
        """How far the consumer `reference` has come; None if nothing is known of it."""
        return self._tracking.offsets.get(reference)

    def stored_offsets(self) -> dict[str, int]:
        """How far consumers have come, as far as that is known."""
        return dict(self._tracking.offsets)

    def sequences(self) -> dict[str, int]:
        """The sequence of the last message from each producer, as far as that is known."""
        return dict(self._tracking.sequences)

    def take_batch(self) -> list[DiskStep]:
        """The steps that write what was appended; `written` is due when they are done.

        They write to one segment: what does not fit there is left for the next batch. One that failed is
        written again from its first step, and must not make anew what it has filled before.
        """
        steps, self._steps = self._steps, []
        self._take_pending()
        if not self._builders:
            return steps
        if not self.segments or self._is_full(self._builders[0].size):
            steps += self._roll(self._builders[0].first)
        segment = self.segments[-1]
        begin = segment.size
        parts: list[bytes] = []
        flags = FOLLOWS_SYNC
        taken = 0
        for builder in self._builders:
            if taken and self._is_full(builder.size):
                break
            is_first = segment.size == HEAD_SIZE
            self._time = builder.time = max(builder.time, self._time)
            tail = self._tail(builder.tracking, segment.seed, is_whole=is_first)
            octets = builder.encode(segment.sync_marker, segment.seed, flags | KNOWS_ALL * is_first, tail)
            head = read_head(octets, 0, segment.sync_marker, segment.seed)
            assert head is not None
            segment.note(head, segment.size, len(octets))
            self._in_flight.append(Chunk(octets, 0, head))
            parts.append(octets)
            flags = 0
            taken += 1
        del self._builders[:taken]
        if segment.size > segment.zeroed_to and segment.size - begin < STREAM_PREALLOCATION_SIZE:
            # Only small batches gain by it: to zero as much again would cost large ones more than growing.
            parts.append(bytes(STREAM_PREALLOCATION_SIZE))
            segment.zeroed_to = segment.size + STREAM_PREALLOCATION_SIZE
        return [*steps, WriteFile(segment.name, begin, parts), SyncFile(segment.name)]

    def written(self) -> None:
        """What the last batch had is safe, and readable."""
        in_flight, self._in_flight = self._in_flight, []
        for chunk in in_flight:
            if chunk.count:
                self._cache.put(self.number, chunk)
                self._last = chunk.first
        if in_flight:
            self.committed = self.segments[-1].end
            if self._catalog is not None:
                self._catalog.note(self.number, CatalogEntry(self.first, self.committed))
            self.listener()

    def read(self, offset: int, begin: int = -1) -> Chunk | None:
        """The chunk with the message at `offset`, or behind it if that is damaged; None at the end.

        Whoever was there before says with which offset it begins. What cannot be read is reported, each time
        that somebody comes by.
        """
        chunk = self._cache.get(self.number, offset if begin < 0 else begin)
        if chunk is not None and self.first <= offset < chunk.end:
            return chunk
        offset = max(offset, self.first)
        while offset < self.committed:
            chunk = self._cache.get(self.number, offset)
            if chunk is None:
                try:
                    chunk = self._fetched(offset)
                except OSError as error:
                    self._report(error)
            if chunk is not None:
                return chunk
            offset = self._behind_damage(offset)
        return None

    def cursor(self) -> Cursor:
        """What goes through many chunks by large reads; for what it cannot read, `read` is asked."""
        return Cursor(self._disk.read, self._segment_of)

    def last_chunk(self) -> int:
        """Where the last chunk that can be read begins; -1 if there is none."""
        if not self.first <= self._last:
            chunk = self.read(self.committed - 1) if self.committed > self.first else None
            self._last = -1 if chunk is None else chunk.first
        return self._last

    def end_of_nonmatching(self, first: int, wanted: FilterMatcher) -> int | None:
        """Up to where chunks from `first` on are known to have nothing that is `wanted`."""
        known = self._bloom_filters.of(self.number, first)
        return None if known is None or wanted.may_match(known[1]) else known[0]

    def may_contain(self, chunk: Chunk, wanted: FilterMatcher) -> bool:
        """False if `chunk` has nothing that is `wanted`; that stays known when the chunk itself does not."""
        bloom_filter = bloom_filter_of(chunk)
        if wanted.may_match(bloom_filter):
            return True
        self._bloom_filters.note(self.number, chunk, bloom_filter)
        return False

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
        unwanted: list[StreamSegment] = []
        while len(self.segments) > 1:
            eldest = self.segments[0]
            is_too_much = kept.octets_max is not None and octets - eldest.size >= kept.octets_max
            is_too_old = kept.age_ms_max is not None and eldest.last_time + kept.age_ms_max < now
            if not eldest.is_sealed or not (is_too_much or is_too_old):
                break
            octets -= eldest.size
            unwanted.append(self.segments.pop(0))
        if unwanted and self._catalog is not None:
            # Before the files go, nobody expects them.
            self._steps += self._catalog.put(self.number, CatalogEntry(self.first, self.committed))
        for segment in unwanted:
            self._delete_segment(segment)

    def delete_segments(self) -> None:
        """The stream is gone: the next batch deletes all of it."""
        self._builders = []
        self._pending = Tracking()
        if self._catalog is not None:
            self._steps += self._catalog.remove([self.number])
        for segment in self.segments:
            self._delete_segment(segment)
        self.segments = []

    @property
    def has_work(self) -> bool:
        """Whether `take_batch` has anything to write."""
        return bool(self._builders or self._steps or (self._pending and self._has_room_for_pending))

    # --- private -------------------------------------------------------------------------------

    @property
    def _has_room_for_pending(self) -> bool:
        """Whether a chunk may be made for what is pending alone.

        A file has a message, so that the next has another name: if it is full, what is pending waits for one.
        """
        if not self.segments:
            return True
        segment = self.segments[-1]
        return not segment.is_sealed and segment.size < self.retention.segment_size

    def _take_pending(self) -> None:
        """Have what is pending in the first chunk of the next batch."""
        if not self._pending or not (self._builders or self._has_room_for_pending):
            return
        if not self._builders:
            self._builders.append(ChunkBuilder(self.next))
            self._builders[0].time = self.segments[-1].last_time if self.segments else 0
        self._builders[0].tracking.update(self._pending)
        self._pending = Tracking()

    def _tail(self, changes: Tracking, seed: int, *, is_whole: bool) -> bytes:
        """What the next chunk says of `changes`; or of everything up to it, and of nothing behind."""
        self._written.update(changes)
        return (self._written if is_whole else changes).encode(seed)

    def _delete_segment(self, segment: StreamSegment) -> None:
        self._steps += [DeleteFile(segment.index_name), DeleteFile(segment.name), SyncDirectory()]

    def _is_full(self, size: int) -> bool:
        segment = self.segments[-1]
        if segment.is_sealed:
            return True
        return segment.end > segment.first and segment.size + size > self.retention.segment_size

    def _roll(self, first: int) -> list[DiskStep]:
        """Seal the last segment and begin the next, at `first`."""
        steps: list[DiskStep] = []
        if self.segments and not self.segments[-1].is_sealed:
            steps += self.segments[-1].seal()
        segment = StreamSegment(self.number, first, self._random_octets(SALT_SIZE), self.epoch)
        self.segments.append(segment)
        head = segment.encode_head(self.number)
        # What an index says must not outlive its file.
        steps += [DeleteFile(segment.index_name), CreateFile(segment.name, 0)]
        # Whole before anything is written behind it: one that is torn has nothing in it.
        return [*steps, WriteFile(segment.name, 0, [head]), SyncFile(segment.name), SyncDirectory()]

    def _fetched(self, offset: int) -> Chunk | None:
        """The chunk with `offset`, from the disk, keeping what was read along; None if it is damaged."""
        segment = self._segment_of(offset)
        wanted: Chunk | None = None
        for found in self._chunks(segment, segment.place_before(offset)):
            head = found.head
            if head.end <= offset or not head.count:
                continue
            if head.first >= self.committed or (wanted is None and head.first > offset):
                break
            if wanted is not None and not found.is_read:
                break
            octets = found.octets(self._disk.read, segment.name)
            if not is_whole(octets, 0, head, segment.seed):
                break
            chunk = Chunk(octets, 0, head)
            self._cache.put(self.number, chunk)
            if wanted is None:
                wanted = chunk
        if wanted is None:
            self._report(self._damage_at(segment, offset))
        return wanted

    def _damage_at(self, segment: StreamSegment, offset: int) -> StoreFileError:
        """What is lost where `segment` is damaged at `offset`: all of a chunk, as it has one checksum."""
        first, place = offset, segment.place_before(offset)
        end = self._behind_damage(offset)
        for found in self._chunks(segment, place):
            if found.head.first > offset:
                break
            # The damaged chunk itself, or the last before it.
            is_it = found.head.end > offset
            first, place = (
                (found.head.first, found.place) if is_it else (found.head.end, found.place + found.size)
            )
        text = f"the messages from offset {first} to {end - 1} are damaged"
        return StoreFileError(segment.name, place, text, messages=end - first, queues=(self.number,))

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

    def _chunks(self, segment: StreamSegment, place: int) -> Iterator[ScannedChunk]:
        return scan_chunks(self._disk.read, segment, place, segment.size)


def _nobody() -> None:
    """Nobody waits for what is written."""
