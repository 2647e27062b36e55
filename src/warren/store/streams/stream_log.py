"""The log of one stream on disk: messages are appended, read from any offset, and trimmed from the beginning.

    append ─▶ builders ─ take_batch ─▶ one write, one sync ─ written ─▶ committed, readable

Invariants: readable messages are synced and never change; offsets have no gaps except where a chunk was
damaged, and are never reused. The last segment is never trimmed, so that a stream always knows its next
offset.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct, field

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


class Retention(Struct, frozen=True, kw_only=True):
    """How much of a stream is kept at least; None means no limit."""

    bytes_max: int | None = None
    age_ms_max: int | None = None
    segment_size: int = STREAM_SEGMENT_SIZE


class StreamLogDependencies(Struct, frozen=True, kw_only=True):
    """Where streams are stored, and what they need for writing and reporting."""

    disk: Disk
    random_bytes: Callable[[int], bytes]
    # Called with each error of reading; other messages stay readable.
    report: Callable[[OSError | StoreFileError], None]
    # The catalog of synced offsets, once the streams are open.
    catalog: Catalog | None = None
    cache: ChunkCache = field(default_factory=ChunkCache)
    bloom_filters: BloomFilterCache = field(default_factory=BloomFilterCache)


class StreamLog:
    """The messages of one stream."""

    __slots__ = (
        "_bloom_filters", "_builders", "_cache", "_catalog", "_disk", "_in_flight", "_last", "_pending",
        "_random_bytes", "_report", "_steps", "_time", "_tracking", "_written", "committed", "epoch",
        "failed", "is_dirty", "listener", "next", "number", "retention", "segments",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        files: StreamLogDependencies,
        segments: list[StreamSegment],
        tracking: Tracking | None = None,
    ) -> None:
        """Open the stream with the files `segments`, in order.

        The last one is written to unless it is sealed.
        """
        self.number = number
        self.segments = segments
        self.retention = Retention()
        self._disk = files.disk
        self._catalog = files.catalog
        self._random_bytes = files.random_bytes
        self._report = files.report
        # The offset of the next message, and the offset before which all messages are readable.
        self.next = segments[-1].end if segments else 0
        self.committed = self.next
        # The first offset of the last readable chunk; -1 if it is not known.
        self._last = -1
        # True if the store has this log on its list; and the callback after each write.
        self.is_dirty = False
        # Identifies this stream; a deleted and recreated stream has another epoch.
        self.epoch = segments[-1].epoch if segments else files.random_bytes(EPOCH_SIZE)
        self.listener: Callable[[], None] = _nobody
        # Called with an exception that shows that this log is broken, which is not written any more then.
        self.failed: Callable[[Exception], None] = _raise
        self._builders: list[ChunkBuilder] = []
        # Chunks that are being written; readable after that.
        self._in_flight: list[Chunk] = []
        # Further steps for the next batch: files to be deleted.
        self._steps: list[DiskStep] = []
        self._cache = files.cache
        self._bloom_filters = files.bloom_filters
        # The time of the last chunk: times never decrease, even if the clock was set back, so that an offset
        # can be found by time.
        self._time = max((segment.last_time for segment in segments), default=0)
        # Tracking data: the current state, the part of it that is in encoded chunks, and changes for the next
        # chunk.
        self._tracking = tracking or Tracking()
        self._written = Tracking()
        self._written.update(self._tracking)
        self._pending = Tracking()

    def begin(self) -> None:
        """Create a file with the next batch, so that the epoch is durable before there is a message."""
        if not self.segments:
            self._steps += self._roll(self.next)

    def skip_to(self, offset: int) -> None:
        """Continue with `offset`, since messages before it may have been lost."""
        if offset > self.next:
            self.next = self.committed = offset

    @property
    def first(self) -> int:
        """The first offset that the stream still has."""
        return self.segments[0].first if self.segments else self.committed

    @property
    def byte_count(self) -> int:
        """The size of the stream on disk in bytes."""
        return sum(segment.size for segment in self.segments)

    def append(self, message: Message) -> int:
        """Append `message` to the next batch; returns its offset."""
        builders = self._builders
        if not builders or builders[-1].size >= STREAM_CHUNK_SIZE:
            builders.append(ChunkBuilder(self.next))
        builders[-1].add(message)
        offset = self.next
        self.next += 1
        return offset

    def append_as(self, message: Message, producer: str, sequence: int) -> int | None:
        """Append `message` unless `producer` has sent it or a later one before.

        Returns its offset, or None.
        """
        last = self._tracking.sequences.get(producer)
        if last is not None and sequence <= last:
            return None
        offset = self.append(message)
        self._builders[-1].tracking.set_sequence(producer, sequence)
        self._tracking.set_sequence(producer, sequence)
        return offset

    def append_run_as(self, run: MessageRun, producer: str, sequence: int) -> int:
        """Append those messages of `run` that `producer` has not sent before; returns their number.

        The first message of the run has the given `sequence`, the others follow.
        """
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
        """The sequence of the last message from `producer`; None if it is not known."""
        return self._tracking.sequences.get(producer)

    def store_offset(self, reference: str, offset: int) -> None:
        """Store `offset` for the consumer `reference`; it is written with the next batch."""
        if self._tracking.offsets.get(reference) != offset:
            self._tracking.set_offset(reference, offset)
            self._pending.set_offset(reference, offset)

    def stored_offset(self, reference: str) -> int | None:
        """The stored offset of the consumer `reference`; None if there is none."""
        return self._tracking.offsets.get(reference)

    def stored_offsets(self) -> dict[str, int]:
        """The stored offsets of all consumers."""
        return dict(self._tracking.offsets)

    def sequences(self) -> dict[str, int]:
        """The sequences of the last messages of all producers."""
        return dict(self._tracking.sequences)

    def take_batch(self) -> list[DiskStep]:
        """The steps that write what was appended; `written` must be called when they are done.

        A batch writes to one segment; what does not fit there is left for the next batch. If a batch fails,
        all of its steps are repeated, so a step must not create a file again that an earlier step has filled.
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
            data = builder.encode(segment.sync_marker, segment.seed, flags | KNOWS_ALL * is_first, tail)
            head = read_head(data, 0, segment.sync_marker, segment.seed)
            assert head is not None
            segment.note(head, segment.size, len(data))
            self._in_flight.append(Chunk(data, 0, head))
            parts.append(data)
            flags = 0
            taken += 1
        del self._builders[:taken]
        if segment.size > segment.zeroed_to and segment.size - begin < STREAM_PREALLOCATION_SIZE:
            # Only small batches profit: for large ones writing as many zeros again costs more than growing
            # the file.
            parts.append(bytes(STREAM_PREALLOCATION_SIZE))
            segment.zeroed_to = segment.size + STREAM_PREALLOCATION_SIZE
        return [*steps, WriteFile(segment.name, begin, parts), SyncFile(segment.name)]

    def written(self) -> None:
        """The last batch was synced: its messages become readable."""
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
        """The chunk with the message at `offset`, or the next readable one if it is damaged; None at the end.

        `begin` is the first offset of the chunk, if the caller knows it. Errors are reported at each attempt.
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
        """A cursor for reading many chunks in large blocks; what it cannot read, `read` can."""
        return Cursor(self._disk.read, self._segment_of)

    def last_chunk(self) -> int:
        """The first offset of the last readable chunk; -1 if there is none."""
        if not self.first <= self._last:
            chunk = self.read(self.committed - 1) if self.committed > self.first else None
            self._last = -1 if chunk is None else chunk.first
        return self._last

    def end_of_nonmatching(self, first: int, wanted: FilterMatcher) -> int | None:
        """The offset before which chunks from `first` on are known not to match `wanted`.

        None if that is not known.
        """
        known = self._bloom_filters.of(self.number, first)
        return None if known is None or wanted.may_match(known[1]) else known[0]

    def may_contain(self, chunk: Chunk, wanted: FilterMatcher) -> bool:
        """False if `chunk` has no message that is `wanted`.

        The result is remembered longer than the chunk.
        """
        bloom_filter = bloom_filter_of(chunk)
        if wanted.may_match(bloom_filter):
            return True
        self._bloom_filters.note(self.number, chunk, bloom_filter)
        return False

    def offset_at(self, time: int) -> int:
        """The first offset of the first chunk with `time` (ms) or later; the next offset if there is none."""
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
        """Remove the oldest segments that exceed `retention`; the next batch deletes their files."""
        kept = self.retention
        byte_count = self.byte_count
        unwanted: list[StreamSegment] = []
        while len(self.segments) > 1:
            eldest = self.segments[0]
            is_too_much = kept.bytes_max is not None and byte_count - eldest.size >= kept.bytes_max
            is_too_old = kept.age_ms_max is not None and eldest.last_time + kept.age_ms_max < now
            if not eldest.is_sealed or not (is_too_much or is_too_old):
                break
            byte_count -= eldest.size
            unwanted.append(self.segments.pop(0))
        if unwanted and self._catalog is not None:
            # The catalog is changed before the files are deleted, so that they are not reported as missing.
            self._steps += self._catalog.put(self.number, CatalogEntry(self.first, self.committed))
        for segment in unwanted:
            self._delete_segment(segment)

    def delete_segments(self) -> None:
        """Delete all files of the stream with the next batch; called when the stream was deleted.

        What the batch in progress writes is never readable, and its end is told to nobody.
        """
        self._builders = []
        self._in_flight = []
        self._pending = Tracking()
        if self._catalog is not None:
            self._steps += self._catalog.remove([self.number])
        for segment in self.segments:
            self._delete_segment(segment)
        self.segments = []
        self._cache.drop(self.number)

    @property
    def has_work(self) -> bool:
        """True if `take_batch` has anything to write."""
        return bool(self._builders or self._steps or (self._pending and self._has_room_for_pending))

    # --- private -------------------------------------------------------------------------------

    @property
    def _has_room_for_pending(self) -> bool:
        """True if a chunk may be written for pending tracking data alone.

        A file needs at least one message, so that the next file gets another name: if the segment is full,
        the data waits for a message.
        """
        if not self.segments:
            return True
        segment = self.segments[-1]
        return not segment.is_sealed and segment.size < self.retention.segment_size

    def _take_pending(self) -> None:
        """Move the pending tracking data to the first chunk of the next batch."""
        if not self._pending or not (self._builders or self._has_room_for_pending):
            return
        if not self._builders:
            self._builders.append(ChunkBuilder(self.next))
            self._builders[0].time = self.segments[-1].last_time if self.segments else 0
        self._builders[0].tracking.update(self._pending)
        self._pending = Tracking()

    def _tail(self, changes: Tracking, seed: int, *, is_whole: bool) -> bytes:
        """The encoded tail of the next chunk: `changes`, or with `is_whole` the whole state up to it."""
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
        """Seal the last segment and create the next one, which begins with offset `first`."""
        steps: list[DiskStep] = []
        if self.segments and not self.segments[-1].is_sealed:
            steps += self.segments[-1].seal()
        segment = StreamSegment(self.number, first, self._random_bytes(SALT_SIZE), self.epoch)
        self.segments.append(segment)
        head = segment.encode_head(self.number)
        # An old index must not survive its file.
        steps += [DeleteFile(segment.index_name), CreateFile(segment.name, 0)]
        # The head is synced before anything is written behind it: a torn file has no messages.
        return [*steps, WriteFile(segment.name, 0, [head]), SyncFile(segment.name), SyncDirectory()]

    def _fetched(self, offset: int) -> Chunk | None:
        """The chunk with `offset` from the disk; chunks read along are cached. None if it is damaged."""
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
            data = found.read(self._disk.read, segment.name)
            if not is_whole(data, 0, head, segment.seed):
                break
            chunk = Chunk(data, 0, head)
            self._cache.put(self.number, chunk)
            if wanted is None:
                wanted = chunk
        if wanted is None:
            self._report(self._damage_at(segment, offset))
        return wanted

    def _damage_at(self, segment: StreamSegment, offset: int) -> StoreFileError:
        """An error for the damage of `segment` at `offset`.

        A whole chunk is lost, since it has one checksum.
        """
        first, place = offset, segment.place_before(offset)
        end = self._behind_damage(offset)
        for found in self._chunks(segment, place):
            if found.head.first > offset:
                break
            # The damaged chunk itself, or the last one before it.
            is_it = found.head.end > offset
            first, place = (
                (found.head.first, found.place) if is_it else (found.head.end, found.place + found.size)
            )
        text = f"the messages from offset {first} to {end - 1} are damaged"
        return StoreFileError(segment.name, place, text, messages=end - first, queues=(self.number,))

    def _behind_damage(self, offset: int) -> int:
        """The first offset behind the damaged chunk with `offset`."""
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
        """The segment with `offset`, which must be in the stream."""
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
    """The default listener, which does nothing."""


def _raise(error: Exception) -> None:
    """Raise `error`, by default: it belongs to whoever owns the store."""
    raise error
