"""Sequential reads of a stream in large blocks, for readers of columns."""

from collections.abc import Callable

from warren.limits import STREAM_READ_AHEAD_SIZE
from warren.store.streams.chunk import HEAD_SIZE, Chunk, read_head
from warren.store.streams.scan import Read, scan_chunks
from warren.store.streams.segment import StreamSegment
from warren.store.streams.span import Block, Span


class Cursor:
    """The position of one reader in a stream, and the block that was read ahead.

    It knows the place of the next chunk, so that no lookup is needed, and does not use the chunk cache: each
    chunk is returned once.
    """

    __slots__ = ("_at", "_begin", "_block", "_next", "_read", "_segment", "_segment_of")

    def __init__(self, read: Read, segment_of: Callable[[int], StreamSegment]) -> None:
        """`segment_of` finds the segment of an offset that the stream still has."""
        self._read = read
        self._segment_of = segment_of
        self._segment: StreamSegment | None = None
        # The current block, the place in the file where it begins, and the place in it and offset of the next
        # chunk.
        self._block: Block | None = None
        self._begin = 0
        self._at = 0
        self._next = -1

    def read(self, offset: int, end: int) -> Chunk | Span | None:
        """The chunk with the message at `offset`, or a span of it and later chunks, up to, not including,
        offset `end`.

        `offset` must be in the stream, and everything before `end` committed. None if it cannot be read here;
        then the log must be asked, which handles damage.
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
            # The block ends here, or the file does.
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
        """Find the place of the chunk with `offset`; False if there is none."""
        segment = self._segment_of(offset)
        for found in scan_chunks(self._read, segment, segment.place_before(offset), segment.size):
            if found.head.end > offset:
                self._segment, self._begin, self._at = segment, found.place, 0
                return self._fill()
        return False

    def _fill(self) -> bool:
        """Read the next block; False if there is nothing to read."""
        segment = self._segment
        assert segment is not None
        place = self._begin + self._at
        data = self._read(segment.name, place, min(STREAM_READ_AHEAD_SIZE, segment.size - place))
        head = read_head(data, 0, segment.sync_marker, segment.seed)
        if head is None:
            return False
        if HEAD_SIZE + head.size > len(data):
            data = self._read(segment.name, place, HEAD_SIZE + head.size)
        self._block = Block(data, segment.sync_marker, segment.seed)
        self._begin, self._at = place, 0
        return True
