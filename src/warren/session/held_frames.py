"""The frames of a channel that wait until it may go on, as they came."""

from warren.wire import methods
from warren.wire.frames import FrameReader

_HEAD_SIZE = 7
_SIZE_AT = 3
_ACK = methods.BasicAck.index
_NACK = methods.BasicNack.index
_REJECT = methods.BasicReject.index


class HeldFrames:
    """Frames of one channel, oldest first."""

    __slots__ = ("_data", "size")

    def __init__(self) -> None:
        self._data = bytearray()
        # Their size in bytes.
        self.size = 0

    def add(self, reader: FrameReader) -> int:
        """Append the frame under the cursor and those that follow it at once; returns their size.

        A frame that settles deliveries is not appended with one before it, since it may overtake it.
        """
        data = reader.data
        channel = reader.channel
        begin = reader.start - _HEAD_SIZE
        while reader.is_next_of(channel) and not settles(reader.next_method()):
            reader.advance()
        frames = data[begin : reader.start + reader.size + 1]
        self._data += frames
        self.size += len(frames)
        return len(frames)

    def first(self, size: int) -> FrameReader:
        """A reader of about the first `size` bytes, but of one frame at least."""
        frame = int.from_bytes(self._data[_SIZE_AT:_HEAD_SIZE], "big") + _HEAD_SIZE + 1
        return self._part(0, max(size, frame))

    def after(self, size: int) -> FrameReader:
        """A reader of all but the first `size` bytes."""
        return self._part(size, len(self._data))

    def remove(self, size: int) -> None:
        """Remove the first `size` bytes."""
        del self._data[:size]
        self.size -= size

    def _part(self, begin: int, end: int) -> FrameReader:
        reader = FrameReader()
        reader.frame_size_max = len(self._data)
        with memoryview(self._data) as view:
            reader.feed(bytes(view[begin:end]))
        return reader


def settles(index: int) -> bool:
    """True if the method with this class id << 16 | method id settles deliveries of a client."""
    return index in (_ACK, _NACK, _REJECT)
