"""The Publish frame: entries, each with one message or a batch of some hundred messages.

    publish  │ key u16 │ version u16 │ publisher u8 │ count u32 │ entry … │
    entry    │ sequence u64 │ filter text, in version 2 │ message, or batch │
    message  │ size u32, below 2**31 │ bytes │
    batch    │ 1 in a bit │ compression, 3 bits │ 4 bits │ count u16 │ unpacked size u32 │ size u32 │ bytes │

An uncompressed batch consists of messages, each preceded by its size. Each of them has its own offset, but
all have one sequence.
"""

import zlib
from struct import Struct

from warren import limits
from warren.wire.streams.codes import MalformedFrame

_HEAD_SIZE = 9
_MESSAGE = Struct(">QI")
_SIZE = Struct(">I")
_BATCH = Struct(">BHII")
_IS_BATCH = 1 << 31
_NO_TEXT = 0xFFFF
_PLAIN = 0
_GZIP = 1
# zlib's window bits for data with gzip header and trailer.
_GZIP_BITS = 16 + zlib.MAX_WBITS


class SubEntryBatch:
    """Messages published as one entry."""

    __slots__ = ("compression", "count", "data", "size")

    def __init__(self, compression: int, count: int, size: int, data: bytes) -> None:
        self.compression = compression
        self.count = count
        # The uncompressed size in bytes.
        self.size = size
        self.data = data

    @property
    def is_readable(self) -> bool:
        """True if `messages` supports its compression."""
        return self.compression in (_PLAIN, _GZIP)

    def messages(self) -> list[bytes]:
        """Decode the messages; MalformedFrame if they do not match the declared count and size."""
        data = self.data
        if self.size > limits.STREAM_BATCH_SIZE_MAX:
            raise MalformedFrame(f"a batch of {self.size} bytes")
        if self.compression == _GZIP:
            data = _unzipped(data, self.size)
        if len(data) != self.size:
            raise MalformedFrame("the size of the batch does not match its header")
        messages: list[bytes] = []
        at, end = 0, len(data)
        while at < end:
            if at + _SIZE.size > end:
                raise MalformedFrame("batch cut short")
            (size,) = _SIZE.unpack_from(data, at)
            at += _SIZE.size
            if size > end - at:
                raise MalformedFrame("batch cut short")
            messages.append(data[at : at + size])
            at += size
        if len(messages) != self.count:
            raise MalformedFrame("the messages of the batch do not match its header")
        return messages


class Publication:
    """One Publish: its publisher and entries."""

    __slots__ = ("entries", "filters", "publisher")

    def __init__(
        self,
        publisher: int,
        entries: "list[tuple[int, bytes | SubEntryBatch]]",
        filters: list[str | None] | None = None,
    ) -> None:
        self.publisher = publisher
        # Pairs of sequence, and message or batch.
        self.entries = entries
        # The filter value of each entry, in version 2.
        self.filters = filters


def decode_publish(frame: bytes) -> Publication:
    """Decode a Publish frame; MalformedFrame if it is incomplete, or of an unknown version."""
    if len(frame) < _HEAD_SIZE:
        raise MalformedFrame("frame cut short")
    version = frame[2] << 8 | frame[3]
    if version not in (1, 2):
        raise MalformedFrame(f"unknown version {version} of publish")
    at, end = _HEAD_SIZE, len(frame)
    entries: list[tuple[int, bytes | SubEntryBatch]] = []
    filters: list[str | None] | None = [] if version == 2 else None
    append = entries.append
    unpack = _MESSAGE.unpack_from
    while at < end:
        if at + _MESSAGE.size > end:
            raise MalformedFrame("entry cut short")
        sequence, size = unpack(frame, at)
        at += 8
        if filters is not None:
            value, at = _filter_at(frame, at)
            filters.append(value)
            size = _size_at(frame, at)
        if size >= _IS_BATCH:
            at = _append_batch(entries, sequence, frame, at)
            continue
        at += 4
        message_end = at + size
        if message_end > end:
            raise MalformedFrame("message cut short")
        append((sequence, frame[at:message_end]))
        at = message_end
    if len(entries) != int.from_bytes(frame[5:_HEAD_SIZE], "big"):
        raise MalformedFrame("the number of entries does not match the header")
    return Publication(frame[4], entries, filters)


def encode_publish(publication: Publication) -> bytes:
    """Encode `publication` in version 1, without the size of the frame."""
    parts = [
        b"\x00\x02\x00\x01",
        bytes((publication.publisher,)),
        len(publication.entries).to_bytes(4, "big"),
    ]
    for sequence, entry in publication.entries:
        if isinstance(entry, SubEntryBatch):
            parts.append(sequence.to_bytes(8, "big"))
            head = _BATCH.pack(0x80 | entry.compression << 4, entry.count, entry.size, len(entry.data))
            parts += (head, entry.data)
        else:
            parts += (_MESSAGE.pack(sequence, len(entry)), entry)
    return b"".join(parts)


def _filter_at(frame: bytes, at: int) -> tuple[str | None, int]:
    """Return the text at `at`, None for null, and its end."""
    size = int.from_bytes(frame[at : at + 2], "big")
    at += 2
    if size == _NO_TEXT:
        return None, at
    if size > len(frame) - at:
        raise MalformedFrame("filter value cut short")
    return frame[at : at + size].decode("utf-8", "surrogateescape"), at + size


def _size_at(frame: bytes, at: int) -> int:
    if at + _SIZE.size > len(frame):
        raise MalformedFrame("entry cut short")
    return frame[at] << 24 | frame[at + 1] << 16 | frame[at + 2] << 8 | frame[at + 3]


def _append_batch(
    entries: "list[tuple[int, bytes | SubEntryBatch]]", sequence: int, frame: bytes, at: int
) -> int:
    """Append the batch at `at` to `entries`; return its end."""
    if at + _BATCH.size > len(frame):
        raise MalformedFrame("batch cut short")
    kind, count, unpacked_size, size = _BATCH.unpack_from(frame, at)
    at += _BATCH.size
    if size > len(frame) - at:
        raise MalformedFrame("batch cut short")
    end: int = at + size
    entries.append((sequence, SubEntryBatch(kind >> 4 & 7, count, unpacked_size, frame[at:end])))
    return end


def _unzipped(data: bytes, size: int) -> bytes:
    """Decompress `data` to at most `size` + 1 bytes."""
    try:
        return zlib.decompressobj(_GZIP_BITS).decompress(data, size + 1)
    except zlib.error as error:
        raise MalformedFrame(f"the batch is not valid gzip: {error}") from None
