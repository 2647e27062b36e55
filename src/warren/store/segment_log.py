"""The log of a store: records are appended to the last segment, and a new segment follows when it is full.

A batch is everything appended between two calls of `finish`. It begins with a BATCH record, which states that
everything before it was synced: with it recovery distinguishes a torn end, which loses nothing, from damage.
If a batch does not fit into a segment, that segment is sealed and synced before the next one is created.
Unneeded files are reused, since overwriting needs no new space and syncs in half the time of growing.
"""

from collections.abc import Callable
from itertools import islice

from warren.limits import CATALOG_QUEUES_MAX, SEGMENT_SIZE, SPARE_SEGMENTS_MAX, STATE_RECORD_SIZE_MAX
from warren.model.message import StoredMessage
from warren.store.catalog import Catalog, CatalogEntry
from warren.store.disk import (
    CreateFile,
    DeleteFile,
    Disk,
    DiskStep,
    RenameFile,
    SyncDirectory,
    SyncFile,
    WriteFile,
)
from warren.store.markers import CommitMarker
from warren.store.record import (
    BATCH,
    GROUP,
    HEAD_SIZE,
    MESSAGE_OVERHEAD,
    SEAL,
    checksum_seed,
    encode,
    encode_group,
    encode_message,
    group_record_size,
    message_record_size,
)
from warren.store.segment import HEAD_SIZE as SEGMENT_HEAD_SIZE
from warren.store.segment import SALT_SIZE, SPARE_PREFIX, Segment, encode_head

_HEAD_SIZE = HEAD_SIZE
_MESSAGE_OVERHEAD = MESSAGE_OVERHEAD
# The space that a segment reserves for its SEAL, and the size of its head with a BATCH record.
_SEAL_SIZE = HEAD_SIZE
_BEGIN_SIZE = SEGMENT_HEAD_SIZE + HEAD_SIZE
_SEGMENT_SHIFT = 32


class SegmentLog:
    """The segments of one store, and the batch that is being assembled."""

    __slots__ = (
        "_catalog",
        "_chunks",
        "_is_erased",
        "_made_in",
        "_making",
        "_random_bytes",
        "_retired",
        "_rolled",
        "_sealed",
        "_spares",
        "_spares_made",
        "_start",
        "_steps",
        "last",
        "segments",
    )

    def __init__(
        self,
        segments: dict[int, Segment],
        spares: list[str],
        random_bytes: Callable[[int], bytes],
        number: int = 0,
        *,
        is_erased: bool = False,
        catalog: Catalog | None = None,
    ) -> None:
        """Continue behind `segments`, which are sealed, and behind `number`.

        `catalog` records synced segments.

        `begin` creates the first segment; without it, the first append does.
        """
        self._catalog = catalog
        self.segments = segments
        self._random_bytes = random_bytes
        self._is_erased = is_erased
        self.last = Segment(max(number, *segments, 0), 0)
        # Files that can be reused, and the highest number in their names.
        self._spares = spares
        self._spares_made = _highest(spares)
        # The spare file that is being created beside the jobs, and the segment in which one was last begun.
        self._making = ""
        self._made_in = 0
        # The steps of this batch, and the chunks of its last write, which starts at `_start`.
        self._steps: list[DiskStep] = []
        self._chunks: list[bytes] = []
        self._start = 0
        self._sealed: list[Segment] = []
        self._retired: list[Segment] = []
        # Segments sealed since the last call of `written`.
        self._rolled: list[Segment] = []

    def begin(self) -> list[DiskStep]:
        """The steps that create the first segment to be written to."""
        self._open_next(0)
        return self.finish()

    def append_message(self, message: StoredMessage, references: bytes) -> None:
        """Append `message`, and set its location."""
        size = message_record_size(message, references)
        self._make_room(size)
        last = self.last
        message.location = (last.number << _SEGMENT_SHIFT) | last.size
        last.count += 1
        last.add_references(message.references, len(message.content) + _MESSAGE_OVERHEAD)
        encode_message(message, references, last.seed, self._chunks)
        last.size += size

    def append_group(self, marker: CommitMarker, value: bytes, size: int) -> None:
        """Append a GROUP that sets `marker` to `value`; its records, `size` bytes, must follow.

        They are all in one segment: an incomplete batch is recognised by what is missing behind the GROUP.
        """
        self._make_room(group_record_size(marker.key, value) + size)
        self._add(encode(GROUP, encode_group(size, marker.key, value), self.last.seed))
        marker.segment = self.last.number

    def append_parts(self, kind: int, parts: list[bytes]) -> None:
        """Append `parts`, all of one size, in as few records of `kind` as possible."""
        if not parts:
            return
        step = STATE_RECORD_SIZE_MAX // len(parts[0])
        for at in range(0, len(parts), step):
            body = b"".join(parts[at : at + step])
            self._make_room(_HEAD_SIZE + len(body))
            self._add(encode(kind, body, self.last.seed))

    def append_record(self, kind: int, body: bytes) -> None:
        """Append one record of `kind` with `body`."""
        self._make_room(_HEAD_SIZE + len(body))
        self._add(encode(kind, body, self.last.seed))

    @property
    def location(self) -> int:
        """The location of the next record, unless it needs a new segment."""
        return (self.last.number << _SEGMENT_SHIFT) | self.last.size

    def sealed_dead(self) -> list[Segment]:
        """The segments that had no live messages when they were sealed, since the last call."""
        sealed, self._sealed = self._sealed, []
        return sealed

    def retire(self, segment: Segment) -> None:
        """Reuse or delete the file of `segment` when this batch is synced."""
        self._retired.append(segment)

    def finish(self) -> list[DiskStep]:
        """The steps of this batch; none if nothing was appended and no segment retired."""
        if self._chunks:
            self._write()
        if self._retired and self._catalog is not None:
            self._steps += self._catalog.remove([segment.number for segment in self._retired])
        for segment in self._retired:
            self._recycle(segment)
        if self._retired:
            self._steps.append(SyncDirectory())
            self._retired = []
        steps, self._steps = self._steps, []
        return steps

    def written(self) -> None:
        """Record in the catalog that all batches so far were synced."""
        catalog = self._catalog
        if catalog is None:
            return
        for segment in self._rolled:
            if not segment.is_retired:
                catalog.note(segment.number, catalog_entry_of(segment))
        self._rolled.clear()
        catalog.note(self.last.number, catalog_entry_of(self.last))

    def is_spare_due(self) -> bool:
        """True, until `make_spare`, if the last segment is half full and there is no file for the next."""
        last = self.last
        return (
            last.size * 2 >= last.capacity
            and not self._spares
            and self._made_in != last.number
            and not self._making
            and not self._is_erased
        )

    def make_spare(self, disk: Disk) -> None:
        """Create a spare file beside the jobs of `disk`, so that no batch has to wait for that.

        If that fails, the next segment is created when it is needed.
        """
        self._made_in = self.last.number
        self._making = self._next_spare()
        disk.create_beside(self._making, SEGMENT_SIZE, self._spare_made)

    def _spare_made(self, error: OSError | None) -> None:
        if error is None:
            self._spares.append(self._making)
        self._making = ""

    def _next_spare(self) -> str:
        self._spares_made += 1
        return f"{SPARE_PREFIX}{self._spares_made:08d}"

    def _make_room(self, size: int) -> None:
        """Make sure that the last segment has room for `size` bytes, behind the start of a batch."""
        last = self.last
        if not last.capacity:
            self._open_next(size)
        # What was promised room as one, such as the records of a GROUP, fits once the BATCH is there as well.
        elif last.size + size + (0 if self._chunks else _HEAD_SIZE) + _SEAL_SIZE > last.capacity:
            self._roll(size)
        elif not self._chunks:
            self._start = last.size
            self._add(encode(BATCH, b"", self.last.seed))

    def _roll(self, size: int) -> None:
        """Seal the last segment and create the next, with room for a record of `size` bytes."""
        sealed = self.last
        if not self._chunks:
            self._start = sealed.size
        self._add(encode(SEAL, b"", self.last.seed))
        self._write()
        sealed.is_sealed = True
        if self._catalog is not None:
            self._rolled.append(sealed)
        # A segment with live messages is found dead later, when the last of them is released.
        if sealed.is_dead:
            self._sealed.append(sealed)
        self._open_next(size)

    def _open_next(self, size: int) -> None:
        """Create the segment behind the last, with room for a record of `size` bytes."""
        number = self.last.number + 1
        capacity = max(SEGMENT_SIZE, _BEGIN_SIZE + size + _HEAD_SIZE + _SEAL_SIZE)
        last = self.last = Segment(number, capacity, is_erased=self._is_erased)
        self.segments[number] = last
        salt = self._random_bytes(SALT_SIZE)
        head = encode_head(number, salt)
        last.seed = checksum_seed(number, salt)
        if capacity == SEGMENT_SIZE and self._spares:
            # Over what the file had, a torn head could not be told from a damaged one.
            spare = self._spares.pop()
            self._steps += [WriteFile(spare, 0, [head]), SyncFile(spare)]
            self._steps.append(RenameFile(spare, last.name))
            self._start = SEGMENT_HEAD_SIZE
        else:
            self._steps.append(CreateFile(last.name, capacity))
            self._start = 0
            self._chunks.append(head)
        self._steps.append(SyncDirectory())
        self._add(encode(BATCH, b"", last.seed))

    def _add(self, record: bytes) -> None:
        self._chunks.append(record)
        self.last.size += len(record)

    def _write(self) -> None:
        """Write and sync what was appended to the last segment in this batch."""
        self._steps.append(WriteFile(self.last.name, self._start, self._chunks))
        self._steps.append(SyncFile(self.last.name))
        self._chunks = []

    def _recycle(self, segment: Segment) -> None:
        segment.is_retired = True
        if not segment.live:
            del self.segments[segment.number]
        spare_count = len(self._spares) + bool(self._making)
        if segment.capacity == SEGMENT_SIZE and spare_count < SPARE_SEGMENTS_MAX:
            spare = self._next_spare()
            self._steps.append(RenameFile(segment.name, spare))
            self._spares.append(spare)
        else:
            self._steps.append(DeleteFile(segment.name))


def catalog_entry_of(segment: Segment) -> CatalogEntry:
    """The catalog entry for `segment`, all of which was synced."""
    # At most as many as a slot has room for: this is called with each batch, and there may be many queues.
    queues = tuple(islice(segment.queues, CATALOG_QUEUES_MAX))
    return CatalogEntry(end=segment.size, count=segment.count, queues=queues)


def spare_name(spares: list[str]) -> str:
    """A name for one more spare file."""
    return f"{SPARE_PREFIX}{_highest(spares) + 1:08d}"


def _highest(spares: list[str]) -> int:
    return max((int(name.removeprefix(SPARE_PREFIX)) for name in spares), default=0)
