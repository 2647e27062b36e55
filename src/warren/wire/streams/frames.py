"""Splits the input of a connection into frames.

frame   │ size u32 │ key u16 │ version u16 │ correlation u32, in requests and responses │ fields … │
"""

from warren.wire.streams.codes import FrameTooLarge, MalformedFrame

_SIZE_BYTES = 4
# Key and version, which every frame has.
HEAD_SIZE = 4


class StreamFrameReader:
    """The received data that is not processed yet."""

    __slots__ = ("_at", "_data", "_missing", "_parts", "size_max")

    def __init__(self, size_max: int) -> None:
        # The maximum frame size in bytes; 0 is no limit.
        self.size_max = size_max
        self._data = b""
        self._at = 0
        # The data received after `_data`, and how much more is needed before it is parsed.
        self._parts: list[bytes] = []
        self._missing = 0

    def feed(self, data: bytes) -> None:
        """Add received data."""
        self._missing -= len(data)
        self._parts.append(data)

    def next(self) -> bytes | None:
        """Return the next complete frame, without its size; None if it is incomplete.

        FrameTooLarge as soon as its size is known, MalformedFrame if it is too short.
        """
        if self._missing > 0:
            return None
        self._join()
        at = self._at
        there = len(self._data) - at
        if there < _SIZE_BYTES:
            self._missing = _SIZE_BYTES - there
            return None
        size = int.from_bytes(self._data[at : at + _SIZE_BYTES], "big")
        if self.size_max and size > self.size_max:
            raise FrameTooLarge(f"frame of {size} bytes, {self.size_max} are allowed")
        if size < HEAD_SIZE:
            raise MalformedFrame(f"frame of {size} bytes")
        end = at + _SIZE_BYTES + size
        if end > len(self._data):
            self._missing = end - len(self._data)
            return None
        self._at = end
        return self._data[at + _SIZE_BYTES : end]

    @property
    def has_more(self) -> bool:
        """True if `next` may return a frame."""
        return self._missing <= 0 and (bool(self._parts) or len(self._data) - self._at >= _SIZE_BYTES)

    def _join(self) -> None:
        if self._parts:
            self._data = b"".join((self._data[self._at :], *self._parts))
            self._parts.clear()
            self._at = 0
            self._missing = 0


def framed(payload: bytes | bytearray) -> bytes:
    """`payload` preceded by its size."""
    return b"".join((len(payload).to_bytes(_SIZE_BYTES, "big"), payload))
