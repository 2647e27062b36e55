"""Goes through a stream from offset to offset, by few large reads of its files, for readers of columns."""

from collections.abc import Callable

from warren.limits import STREAM_READ_AHEAD_SIZE
from warren.store.streams.chunk import HEAD_SIZE, Chunk, read_head
from warren.store.streams.scan import Read, scan_chunks
from warren.store.streams.segment import StreamSegment
from warren.store.streams.span import Block, Span


class Cursor:
    """One reader's place in a stream, and what was read behind it.

    It knows where the next chunk lies, so that nothing is looked up for it, and leaves the cache to others:
    what it has read, it hands out once.
    """

    __slots__ = ("_at", "_begin", "_block", "_next", "_read", "_segment", "_segment_of")

    def __init__(self, read: Read, segment_of: Callable[[int], StreamSegment]) -> None:
        """`segment_of` finds the segment of an offset that is kept."""
        self._read = read
        self._segment_of = segment_of
        self._segment: StreamSegment | None = None
        # What was read of it, from which octet on; where the next chunk is among these, with which offset.
        self._block: Block | None = None
        self._begin = 0
        self._at = 0
        self._next = -1

    def read(self, offset: int, end: int) -> Chunk | Span | None:
        """The chunk with the message at `offset`, or this and some behind it; all at `end` or behind is left.

        The stream keeps `offset`, and has committed what is before `end`. None if it cannot be read here:
        the log, which looks at all that may be damaged, is to be asked.
        """
        try:
            found = self._found(offset, end)
        except OSError:
            found = None
        self._next = -1 if found is None else found.end
        return found

    def _found(self, offset: int, end: int) -> Chunk | Span | None:
        if offset == self._next:
            found = self._taken(offset, end)
            # What was read ends here, or the file does.
            if found is None and self._fill():
                found = self._taken(offset, end)
            if found is not None:
                return found
        return self._taken(offset, end) if self._seek(offset) else None

    def _taken(self, offset: int, end: int) -> Chunk | Span | None:
        assert self._block is not None
        found = self._block.take(self._at, offset, end)
        if found is not None:
            self._at = self._block.end
        return found

    def _seek(self, offset: int) -> bool:
        """Find where the chunk with `offset` is; whether there is one."""
        segment = self._segment_of(offset)
        for found in scan_chunks(self._read, segment, segment.place_before(offset), segment.size):
            if found.head.end > offset:
                self._segment, self._begin, self._at = segment, found.place, 0
                return self._fill()
        return False

    def _fill(self) -> bool:
        """Read on from the next chunk; whether there is anything."""
        segment = self._segment
        assert segment is not None
        place = self._begin + self._at
        octets = self._read(segment.name, place, min(STREAM_READ_AHEAD_SIZE, segment.size - place))
        head = read_head(octets, 0, segment.sync_marker, segment.seed)
        if head is None:
            return False
        if HEAD_SIZE + head.size > len(octets):
            octets = self._read(segment.name, place, HEAD_SIZE + head.size)
        self._block = Block(octets, segment.sync_marker, segment.seed)
        self._begin, self._at = place, 0
        return True
