"""Opens the streams of a virtual host: finds their files and the end of each log.

A stream may end in a batch that was torn by a power cut and never confirmed: it is overwritten with zeros.
Nothing is torn before a chunk that follows a sync; unreadable parts there are damage, which is reported with
its place, and everything else is kept. A damaged file is not written to any more.

If the process was killed, the last batch may not have been synced: it is synced before it can be read.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from warren.store.catalog import Catalog, CatalogEntry
from warren.store.disk import DeleteFile, Disk, DiskStep, SyncDirectory, SyncFile, WriteFile
from warren.store.segment import NewerFormatError, StoreFileError
from warren.store.store_port import StorePort
from warren.store.streams.chunk import FOLLOWS_SYNC, HAS_TAIL, KNOWS_ALL, is_whole
from warren.store.streams.scan import ScannedChunk, scan_chunks
from warren.store.streams.segment import (
    HEAD_SIZE,
    SUFFIX,
    StreamSegment,
    is_stream_file,
    open_segment,
    segment_name,
    stream_of,
)
from warren.store.streams.stream_log import StreamLog, StreamLogDependencies
from warren.store.streams.stream_store import StreamStore
from warren.store.streams.tracking import END_SIZE, Tracking, entries_size, is_whole_tail

# The file with the synced end of each stream; older versions take it for a file of a stream that does not
# exist.
CATALOG = "00000000-00000000000000000000.catalog"
_ZEROS = bytes(1 << 20)
# The minimum size of a message in a chunk; limits the number of messages in an unreadable file.
_MESSAGE_SIZE_MIN = 4


class RecoveredStreams(Struct, frozen=True, kw_only=True):
    """The opened streams, and the damage that was found."""

    store: StreamStore
    damage: list[StoreFileError]


def open_streams(
    files: StreamLogDependencies, port: StorePort, has_stream: Callable[[int], bool]
) -> RecoveredStreams:
    """Open the streams in `files`. NewerFormatError for a newer format, OSError from the disk.

    Files of streams for which `has_stream` is False are deleted.
    """
    disk = files.disk
    sizes = disk.names()
    catalog = Catalog(disk, CATALOG)
    files = replace(files, catalog=catalog)
    by_stream: dict[int, list[str]] = {}
    gone: list[DiskStep] = []
    for name in sorted(sizes):
        if not is_stream_file(name):
            continue
        number, _ = stream_of(name)
        if not has_stream(number):
            gone.append(DeleteFile(name))
        elif name.endswith(SUFFIX):
            by_stream.setdefault(number, []).append(name)
    unexpected = catalog.remove([number for number in catalog.entries if not has_stream(number)])
    if gone or unexpected:
        disk.perform([*unexpected, *gone, SyncDirectory()])
    damage: list[StoreFileError] = [*catalog.damage]
    by_stream |= {number: [] for number in catalog.entries if has_stream(number) and number not in by_stream}
    logs: dict[int, StreamLog] = {}
    unsynced: list[DiskStep] = []
    complete: list[StreamLog] = []
    for number, names in by_stream.items():
        entry = catalog.entries.get(number, CatalogEntry())
        opening = _StreamReader(disk, sizes, damage, entry)
        for name in names:
            opening.take(name, is_last=name == names[-1])
        opening.compare(number)
        log = StreamLog(number, files, opening.segments, opening.tracking())
        log.skip_to(opening.next)
        logs[number] = log
        if opening.segments and opening.is_complete:
            complete.append(log)
        unsynced += map(SyncFile, opening.unsynced)
    if unsynced:
        disk.perform([*unsynced, SyncDirectory()])
    for log in complete:
        catalog.note(log.number, CatalogEntry(log.first, log.committed))
    return RecoveredStreams(store=StreamStore(files, port, logs), damage=damage)


class _Tail:
    """The tracking entries at the end of one chunk; with `is_all` they are complete, otherwise changes."""

    __slots__ = ("entries", "is_all")

    def __init__(self, entries: bytes, *, is_all: bool) -> None:
        self.entries = entries
        self.is_all = is_all


class _StreamReader:
    """Reads one stream, file by file."""

    def __init__(
        self, disk: Disk, sizes: Mapping[str, int], damage: list[StoreFileError], known: CatalogEntry
    ) -> None:
        self._known = known
        # False if something that the catalog has is missing; then the catalog entry stays as it is.
        self.is_complete = True
        self._disk = disk
        self._sizes = sizes
        self._damage = damage
        self.segments: list[StreamSegment] = []
        # Files that may not have been synced.
        self.unsynced: list[str] = []
        # The first offset that was certainly not used yet.
        self.next = 0
        # The tracking entries of chunks, by file, for the files whose chunks were read.
        self._tails: dict[str, list[_Tail]] = {}

    def take(self, name: str, *, is_last: bool) -> None:
        """Read the file `name`."""
        size = self._sizes[name]
        try:
            segment = open_segment(name, self._disk.read(name, 0, HEAD_SIZE))
        except NewerFormatError:
            raise
        except StoreFileError as error:
            if size <= HEAD_SIZE and stream_of(name)[1] >= self._known.end:
                # The file was created but never written.
                self._disk.perform([DeleteFile(name), SyncDirectory()])
            else:
                self._damage.append(error)
                self.next = stream_of(name)[1] + size // _MESSAGE_SIZE_MIN
            return
        if self.segments and segment.first != self.segments[-1].end:
            before = self.segments[-1]
            self._lose(before.end, segment.first, before.name, before.size)
        index_size = self._sizes.get(segment.index_name, 0)
        if index_size and segment.load_index(self._disk.read(segment.index_name, 0, index_size)):
            segment.is_sealed = True
            if size < segment.size:
                self._lose(self._end_within(segment, size), segment.end, name, size)
        else:
            self._scan(segment, size, is_last=is_last)
            if not is_last and not segment.is_sealed:
                self._disk.perform([*segment.seal(), SyncDirectory()])
        self.segments.append(segment)
        self.next = max(self.next, segment.end)

    def compare(self, number: int) -> None:
        """Report the messages of stream `number` that the catalog has and that are not in its files."""
        known = self._known
        first = self.segments[0].first if self.segments else known.end
        # Of a stream with a first offset of its own nothing is known before its first write.
        if known.begin < first and known.end:
            name = segment_name(number, known.begin)
            self._lose(known.begin, first, name, 0)
        if self.segments and self.segments[-1].end < known.end:
            last = self.segments[-1]
            # The rest is not overwritten, so that the file can be repaired.
            last.is_sealed = True
            self._lose(last.end, known.end, last.name, last.size)
        self.next = max(self.next, known.end)

    def _lose(self, first: int, end: int, name: str, place: int) -> None:
        """Report the loss of the messages from offset `first` to `end`, at `place` of the file `name`."""
        self.is_complete = False
        text = f"the messages from offset {first} to {end - 1} are lost"
        self._damage.append(
            StoreFileError(name, place, text, messages=end - first, queues=(stream_of(name)[0],))
        )

    def _end_within(self, segment: StreamSegment, size: int) -> int:
        """The offset behind the last message of `segment` within the first `size` bytes."""
        whole = [
            chunk.head.end
            for chunk in scan_chunks(self._disk.read, segment, HEAD_SIZE, size)
            if chunk.place + chunk.size <= size
        ]
        return max(whole, default=segment.first)

    def tracking(self) -> Tracking:
        """The tracking data of producers and consumers: the last complete state with later changes."""
        tails: list[_Tail] = []
        for segment in reversed(self.segments):
            if segment.name not in self._tails:
                self._take_tails(segment, scan_chunks(self._disk.read, segment, HEAD_SIZE, segment.size))
            tails = self._tails[segment.name] + tails
            if tails and tails[0].is_all:
                break
        tracking = Tracking()
        for tail in tails:
            tracking.apply(tail.entries)
        return tracking

    def _take_tails(self, segment: StreamSegment, found: Iterable[ScannedChunk]) -> None:
        """Collect the tracking entries of the chunks in `found`, which are in `segment`."""
        tails = self._tails[segment.name] = []
        for chunk in found:
            flags = chunk.head.flags
            if flags & (HAS_TAIL | KNOWS_ALL):
                entries = self._entries(segment, chunk) if flags & HAS_TAIL else b""
                if entries is None:
                    text = "the tracking data of producers and consumers is damaged"
                    self._damage.append(StoreFileError(segment.name, chunk.place, text))
                else:
                    tails.append(_Tail(entries, is_all=bool(flags & KNOWS_ALL)))

    def _entries(self, segment: StreamSegment, chunk: ScannedChunk) -> bytes | None:
        """The tracking entries of `chunk`; None if they are damaged."""
        place = chunk.place + chunk.size - END_SIZE
        size = entries_size(self._disk.read(segment.name, place, END_SIZE))
        if size > chunk.head.size - END_SIZE:
            return None
        tail = self._disk.read(segment.name, place - size, size + END_SIZE)
        return tail[:size] if is_whole_tail(tail, segment.seed) else None

    def _scan(self, segment: StreamSegment, size: int, *, is_last: bool) -> None:
        """Find the chunks of `segment`, which has no index, and the end of its data."""
        found = [chunk.alone() for chunk in scan_chunks(self._disk.read, segment, HEAD_SIZE, size)]
        # Everything before the last of these was synced; it, and what follows, may be torn.
        synced = max((n for n, chunk in enumerate(found) if chunk.head.flags & FOLLOWS_SYNC), default=-1)
        good: list[ScannedChunk] = []
        for number, chunk in enumerate(found):
            if chunk.place != segment.size or chunk.head.first != segment.end:
                if number > synced and chunk.head.first > self._known.end:
                    break
                self._lose(segment.end, chunk.head.first, segment.name, segment.size)
                segment.is_sealed = True
            if number >= synced and not self._is_whole(segment, chunk):
                if chunk.head.end > self._known.end:
                    break
                # It was synced and is damaged; its place is kept, and nothing is written behind it.
                self._lose(chunk.head.first, chunk.head.end, segment.name, chunk.place)
                segment.is_sealed = True
            segment.note(chunk.head, chunk.place, chunk.size)
            good.append(chunk)
        self._take_tails(segment, good)
        if is_last:
            # The data behind the lost end is left as it is.
            segment.is_sealed = segment.is_sealed or segment.end < self._known.end
            unsynced = [c.place for c in good[max(synced, 0) :] if c.head.end > self._known.end]
            place = unsynced[0] if unsynced else segment.size
            # A file is begun, with its head, by the batch that writes its first chunk.
            self._clear(segment, size, place if place > HEAD_SIZE else 0)

    def _is_whole(self, segment: StreamSegment, chunk: ScannedChunk) -> bool:
        """True if `chunk` is intact."""
        return is_whole(chunk.read(self._disk.read, segment.name), 0, chunk.head, segment.seed)

    def _clear(self, segment: StreamSegment, size: int, synced: int) -> None:
        """Overwrite the torn data behind the end of `segment` with zeros, so that it is never taken for new
        data.

        What is behind the byte `synced` is written again: after a failed sync and a kill it may have been
        read from the page cache, and no sync would write it any more.
        """
        at = segment.size
        steps: list[DiskStep] = []
        if synced < at:
            data = self._disk.read(segment.name, synced, at - synced)
            steps.append(WriteFile(segment.name, synced, [data]))
        while at < size and not segment.is_sealed:
            zeros = _ZEROS[: size - at]
            if any(self._disk.read(segment.name, at, len(zeros))):
                steps.append(WriteFile(segment.name, at, [zeros]))
            at += len(zeros)
        if steps:
            self._disk.perform(steps)
        # The data before it is valid from here on.
        self.unsynced.append(segment.name)
        segment.zeroed_to = max(size, segment.size)
