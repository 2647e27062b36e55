"""Finds the chunks of a segment file, one after the other, by their heads."""

from collections.abc import Callable, Iterator

from warren.limits import STREAM_BLOCK_SIZE
from warren.store.streams.chunk import HEAD_SIZE, ChunkHead, read_head
from warren.store.streams.segment import StreamSegment

# Reads up to a number of bytes of a file, from a place on.
Read = Callable[[str, int, int], bytes]


class ScannedChunk:
    """A chunk found by its head: its place in the file, and in the bytes that were read."""

    __slots__ = ("_at", "_data", "head", "place")

    def __init__(self, head: ChunkHead, place: int, data: bytes, at: int) -> None:
        self.head = head
        self.place = place
        self._data = data
        self._at = at

    def alone(self) -> "ScannedChunk":
        """A copy that does not keep the bytes that were read."""
        return ScannedChunk(self.head, self.place, b"", 0)

    @property
    def size(self) -> int:
        """The size of the whole chunk in bytes."""
        return HEAD_SIZE + self.head.size

    @property
    def is_read(self) -> bool:
        """True if the bytes that were read contain the whole chunk."""
        return self._at + self.size <= len(self._data)

    def read(self, read: Read, name: str) -> bytes:
        """The bytes of the chunk, read from the file if necessary; fewer at the end of the file."""
        if self.is_read:
            return self._data[self._at : self._at + self.size]
        return read(name, self.place, self.size)


def scan_chunks(read: Read, segment: StreamSegment, place: int, end: int) -> Iterator[ScannedChunk]:
    """The chunks of `segment` whose heads lie between `place` and `end`; invalid data is skipped."""
    data, begin = b"", place
    while end - place >= HEAD_SIZE:
        at = place - begin
        if at + HEAD_SIZE > len(data):
            data, begin, at = read(segment.name, place, min(STREAM_BLOCK_SIZE, end - place)), place, 0
            if len(data) < HEAD_SIZE:
                return
        head = read_head(data, at, segment.sync_marker, segment.seed)
        if head is None:
            found = data.find(segment.salt[:4], at + 1)
            place = begin + (found if found >= 0 else len(data) - HEAD_SIZE + 1)
            continue
        yield ScannedChunk(head, place, data, at)
        place += HEAD_SIZE + head.size
