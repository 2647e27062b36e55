"""A cache of recently written or read chunks of all streams of a virtual host."""

from collections import OrderedDict

from warren.limits import STREAM_CACHE_SIZE
from warren.store.streams.chunk import Chunk


class ChunkCache:
    """Whole chunks by stream and first offset; the least recently used ones are evicted when it is full."""

    __slots__ = ("_chunks", "_size")

    def __init__(self) -> None:
        self._chunks: OrderedDict[tuple[int, int], Chunk] = OrderedDict()
        self._size = 0

    def get(self, stream: int, first: int) -> Chunk | None:
        """The chunk of `stream` that begins with `first`; None if it is not cached."""
        chunk = self._chunks.get((stream, first))
        if chunk is not None:
            self._chunks.move_to_end((stream, first))
        return chunk

    def drop(self, stream: int) -> None:
        """Remove the chunks of `stream`, which was deleted."""
        for key in [key for key in self._chunks if key[0] == stream]:
            self._size -= self._chunks.pop(key).size

    def put(self, stream: int, chunk: Chunk) -> None:
        """Add `chunk` of `stream` to the cache."""
        key = stream, chunk.first
        if key not in self._chunks:
            self._size += chunk.size
        self._chunks[key] = chunk
        self._chunks.move_to_end(key)
        while self._size > STREAM_CACHE_SIZE and len(self._chunks) > 1:
            _, eldest = self._chunks.popitem(last=False)
            self._size -= eldest.size
