"""Reads messages back from the segments, with read-ahead: most often the next message is read next.

A chunk that was read before a record was written into it fails the checksum, and is read again.
"""

from collections.abc import Callable

from warren.limits import RANDOM_READ_SIZE, READ_AHEAD_SIZE, READ_GAP_MAX
from warren.model.message import StoredMessage, presume_died
from warren.store.disk import Disk
from warren.store.record import HEAD_SIZE, decode_body, decode_message, is_intact, uint32
from warren.store.segment import Segment, StoreFileError

_HEAD_SIZE = HEAD_SIZE
_READ_AHEAD_SIZE = READ_AHEAD_SIZE
_READ_ALONE_SIZE = RANDOM_READ_SIZE
_READ_GAP_MAX = READ_GAP_MAX
_SEGMENT_SHIFT = 32


class MessageReader:
    """The reader that all queues of a store share, since messages of one place are often read together."""

    __slots__ = ("_begin", "_chunk", "_disk", "_end", "_report", "_segment", "_segments", "_start")

    def __init__(
        self, disk: Disk, segments: dict[int, Segment], report: Callable[[OSError | StoreFileError], None]
    ) -> None:
        self._disk = disk
        self._segments = segments
        self._report = report
        # The last chunk: bytes of `_segment` from `_start` on; the last message read from it ended at `_end`.
        self._chunk = b""
        self._segment = Segment(0)
        self._start = 0
        self._end = 0
        # The place in the chunk of the record found last.
        self._begin = 0

    def read(self, location: int) -> StoredMessage | None:
        """The message stored at `location`; None if it is damaged, which is reported.

        Raises OSError if the disk cannot be read, which is reported as well.
        """
        size = self._find(location)
        if not size:
            return None
        message = decode_message(self._chunk, self._begin, size)
        message.location = location
        message.references = 1
        if not self._segment.knows_deaths:
            presume_died(message)
        self._leave_large()
        return message

    def read_body(self, location: int) -> bytes | None:
        """The body of the message stored at `location`; None if it is damaged. Errors as in `read`."""
        size = self._find(location)
        if not size:
            return None
        body = decode_body(self._chunk, self._begin, size)
        self._leave_large()
        return body

    def forget(self) -> None:
        """Drop the chunk that was read ahead."""
        self._chunk = b""

    def _find(self, location: int) -> int:
        """Load the record at `location` into `_chunk`, at `_begin`; returns its size, 0 if it is damaged."""
        number = location >> _SEGMENT_SHIFT
        at = location - (number << _SEGMENT_SHIFT)
        segment = self._segment
        if segment.number != number:
            segment = self._segments[number]
        if segment.moved is not None:
            moved_to = segment.moved.find(at)
            if moved_to:
                segment = self._segments[moved_to >> _SEGMENT_SHIFT]
                at = moved_to - (segment.number << _SEGMENT_SHIFT)
        begin = at - self._start
        size = 0
        if segment is self._segment and 0 <= begin <= len(self._chunk):
            size = is_intact(self._chunk, begin, segment.seed)
        if not size:
            size = self._fill(segment, at)
            begin = 0
            if not size:
                self._report(StoreFileError(segment.name, at, "a message is damaged"))
                return 0
        self._begin = begin
        self._end = at + size
        return size

    def _leave_large(self) -> None:
        """Drop a chunk that was read for one large message."""
        if len(self._chunk) > _READ_AHEAD_SIZE:
            self._chunk = b""

    def _fill(self, segment: Segment, at: int) -> int:
        """Read a chunk of `segment` at `at`; returns the size of the record there, 0 if it is damaged."""
        gap = at - self._end
        is_near = segment is self._segment and 0 <= gap <= _READ_GAP_MAX
        try:
            try:
                chunk = self._disk.read(segment.name, at, _READ_AHEAD_SIZE if is_near else _READ_ALONE_SIZE)
            except OSError:
                # The unreadable part may lie behind the message.
                chunk = self._disk.read(segment.name, at, _HEAD_SIZE)
            size = _HEAD_SIZE + uint32(chunk, 0) if len(chunk) >= _HEAD_SIZE else 0
            if size > len(chunk) and at + size <= segment.size:
                chunk = self._disk.read(segment.name, at, size)
        except OSError as error:
            self._report(error)
            raise
        self._chunk = chunk
        self._segment = segment
        self._start = at
        return is_intact(self._chunk, 0, segment.seed)
