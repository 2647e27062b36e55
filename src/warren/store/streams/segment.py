"""One segment file of a stream: a head, then chunks; a full segment has an index in a second file.

    file   │ "WRNSTR" │ version u16 │ stream u32 │ epoch 8 │ first offset u64 │ salt 8 │ checksum u32
           │ chunks … │
    index  │ "WRNSIX" │ version u16 │ end offset u64 │ last time u64 │ end u64 │ count u32
           │ ( offset u64 │ time u64 │ place u64 ) … │ checksum u32 │

The files are named after the number of the stream and the first offset,
`0000002a-00000000000000001234.stream` and `….index`. A file is filled with zeros a little ahead of the
writes, since overwriting zeros syncs in half the time of growing. The salt is random, and part of all
checksums behind it. The epoch is random as well, and the same in all files of a stream: it distinguishes a
stream from a deleted one with the same name. The index has an entry for the first chunk of each fixed number
of bytes; if it is missing or damaged, the heads of all chunks are read.
"""

from array import array
from bisect import bisect_right
from struct import Struct

from google_crc32c import extend
from google_crc32c import value as checksum_of

from warren.limits import STREAM_INDEX_STEP
from warren.store.disk import CreateFile, DiskStep, SyncFile, WriteFile
from warren.store.segment import NewerFormatError, StoreFileError
from warren.store.streams.chunk import ChunkHead

VERSION = 1
SUFFIX = ".stream"
INDEX_SUFFIX = ".index"
# The ranges of the fields in the head of a file.
_NUMBERS_END = 1 << 32
_OFFSETS_END = 1 << 63
SALT_SIZE = 8
EPOCH_SIZE = 8
_MAGIC = b"WRNSTR"
_INDEX_MAGIC = b"WRNSIX"
_HEAD = Struct(">6sHI8sQ8sI")
HEAD_SIZE = _HEAD.size
_INDEX_HEAD = Struct(">6sHQQQI")
_ENTRY = Struct(">QQQ")
_CHECKSUM_SIZE = 4


class StreamSegment:
    """The state of one segment file while its stream is open."""

    __slots__ = (
        "_offsets", "_places", "_times", "end", "epoch", "first", "is_sealed", "last_time", "name", "salt",
        "seed", "size", "sync_marker", "zeroed_to",
    )  # fmt: skip

    def __init__(self, stream: int, first: int, salt: bytes, epoch: bytes) -> None:
        self.epoch = epoch
        self.name = segment_name(stream, first)
        self.first = first
        self.salt = salt
        self.sync_marker = int.from_bytes(salt[:4], "big")
        self.seed: int = extend(0, salt)
        # The offset behind the last message, and the time of the last chunk (ms).
        self.end = first
        self.last_time = 0
        # The bytes in use, and the place up to which zeros follow.
        self.size = HEAD_SIZE
        self.zeroed_to = HEAD_SIZE
        self.is_sealed = False
        # A sparse index of chunks: first offset, time and place.
        self._offsets = array("Q")
        self._times = array("Q")
        self._places = array("Q")

    @property
    def first_time(self) -> int:
        """The time of its first chunk (ms)."""
        return self._times[0] if self._times else 0

    def note(self, head: ChunkHead, place: int, size: int) -> None:
        """Record a chunk with `head` at `place` that takes `size` bytes."""
        if not self._places or place - self._places[-1] >= STREAM_INDEX_STEP:
            self._offsets.append(head.first)
            self._times.append(head.time)
            self._places.append(place)
        self.end = head.end
        self.last_time = max(self.last_time, head.time)
        self.size = place + size

    def place_before(self, offset: int) -> int:
        """The place from which to read in order to find the chunk with `offset`, which must be in this
        segment.
        """
        place = bisect_right(self._offsets, offset) - 1
        return self._places[place] if place >= 0 else HEAD_SIZE

    def place_at(self, time: int) -> int:
        """The place from which to read in order to find the first chunk with `time` (ms) or later."""
        place = bisect_right(self._times, time - 1) - 1
        return self._places[place] if place >= 0 else HEAD_SIZE

    def offset_behind(self, offset: int) -> int:
        """The first indexed offset behind `offset`; the end of the segment if there is none."""
        place = bisect_right(self._offsets, offset)
        return self._offsets[place] if place < len(self._offsets) else self.end

    def encode_head(self, stream: int) -> bytes:
        """The head of the file."""
        head = _HEAD.pack(_MAGIC, VERSION, stream, self.epoch, self.first, self.salt, 0)[:-_CHECKSUM_SIZE]
        return head + int(checksum_of(head)).to_bytes(_CHECKSUM_SIZE, "big")

    def seal(self) -> list[DiskStep]:
        """Close the segment for writing; returns the steps that write its index."""
        self.is_sealed = True
        index = self.encode_index()
        name = self.index_name
        return [CreateFile(name, len(index)), WriteFile(name, 0, [index]), SyncFile(name)]

    @property
    def index_name(self) -> str:
        """The name of the index file."""
        return index_name(self.name)

    def encode_index(self) -> bytes:
        """The encoded index."""
        count = len(self._places)
        parts = [_INDEX_HEAD.pack(_INDEX_MAGIC, VERSION, self.end, self.last_time, self.size, count)]
        parts += map(_ENTRY.pack, self._offsets, self._times, self._places)
        data = b"".join(parts)
        checksum: int = extend(self.seed, data)
        return data + checksum.to_bytes(_CHECKSUM_SIZE, "big")

    def load_index(self, data: bytes) -> bool:
        """Load the index from `data`; False if it is incomplete or damaged."""
        if len(data) < _INDEX_HEAD.size or data[:6] != _INDEX_MAGIC:
            return False
        _, version, end, last_time, size, count = _INDEX_HEAD.unpack_from(data)
        ends_at = _INDEX_HEAD.size + _ENTRY.size * count
        data = data[: ends_at + _CHECKSUM_SIZE]
        if version != VERSION or len(data) != ends_at + _CHECKSUM_SIZE:
            return False
        if extend(self.seed, data[:ends_at]) != int.from_bytes(data[ends_at:], "big"):
            return False
        self.end, self.last_time, self.size = end, last_time, size
        for offset, time, place in _ENTRY.iter_unpack(data[_INDEX_HEAD.size : ends_at]):
            self._offsets.append(offset)
            self._times.append(time)
            self._places.append(place)
        return True


def segment_name(stream: int, first: int) -> str:
    """The file name of the segment of `stream` that begins with offset `first`."""
    return f"{stream:08x}-{first:020d}{SUFFIX}"


def index_name(name: str) -> str:
    """The file name of the index of the segment `name`."""
    return name.removesuffix(SUFFIX) + INDEX_SUFFIX


def stream_of(name: str) -> tuple[int, int]:
    """The stream number and the first offset in the name of a segment or index file."""
    stream, _, first = name.removesuffix(SUFFIX).removesuffix(INDEX_SUFFIX).partition("-")
    return int(stream, 16), int(first)


def is_stream_file(name: str) -> bool:
    """True if `name` is the name of a segment or index file of a stream."""
    try:
        stream, first = stream_of(name)
    except ValueError:
        return False
    named = segment_name(stream, first)
    return stream < _NUMBERS_END and first < _OFFSETS_END and name in (named, index_name(named))


def open_segment(name: str, data: bytes) -> StreamSegment:
    """The segment whose file `name` begins with `data`.

    SegmentError unless they are the head of it; NewerFormatError for a version that cannot be read.
    """
    stream, first = stream_of(name)
    if len(data) < HEAD_SIZE or data[: len(_MAGIC)] != _MAGIC:
        raise StoreFileError(name, 0, "not a segment of a stream")
    _, version, found_stream, epoch, found_first, salt, checksum = _HEAD.unpack_from(data)
    if checksum_of(data[: HEAD_SIZE - _CHECKSUM_SIZE]) != checksum:
        raise StoreFileError(name, 0, "the head of the segment is damaged")
    if version > VERSION:
        raise NewerFormatError(
            name,
            6,
            f"format {version} is newer than {VERSION}, the newest this version of Warren reads",
        )
    if (found_stream, found_first) != (stream, first):
        raise StoreFileError(
            name, 8, f"the file is {segment_name(found_stream, found_first)} under another name"
        )
    return StreamSegment(stream, first, salt, epoch)
