"""Splits the input of one connection into frames (0-9-1 §4.2.3), without creating an object for each.

    frame | type u8 | channel u16 | size u32 | payload, `size` bytes | 0xCE |

The reader is a cursor: `feed` passes in the bytes of a read, `advance` moves to the next complete frame, and
`kind`, `channel`, `start` and `size` describe the frame in `data`. A frame that ends in a later read is
collected in pieces and joined once, so that the cost is linear even if bytes arrive one at a time.
"""

from warren.errors import FrameError
from warren.limits import FRAME_OVERHEAD, FRAME_SIZE_HANDSHAKE
from warren.wire.erlang import frame_bytes, pair_printed

METHOD = 1
HEADER = 2
BODY = 3
HEARTBEAT = 8
FRAME_END = 0xCE

_METHOD_SIZE = 4
_HEAD_SIZE = 7
_END = FRAME_END
_OVERHEAD = FRAME_OVERHEAD


class FrameReader:
    """A cursor over the frames of one connection."""

    __slots__ = (
        "_carry", "_carry_needed", "_carry_size", "_end", "_position", "_rest", "_rest_position", "channel",
        "data", "frame_size_max", "kind", "size", "start",
    )  # fmt: skip

    def __init__(self) -> None:
        self.data = b""
        self.kind = 0
        self.channel = 0
        self.start = 0
        self.size = 0
        self.frame_size_max = FRAME_SIZE_HANDSHAKE
        self._position = 0
        self._end = 0
        # An incomplete frame from earlier reads: its pieces, their size, and the size needed to continue.
        self._carry: list[bytes] = []
        self._carry_size = 0
        self._carry_needed = 0
        # While `data` is a joined frame: the read that completed it, and where to continue in it.
        self._rest: bytes | None = None
        self._rest_position = 0

    def feed(self, data: bytes) -> None:
        """Set the bytes of one read; all frames of the last read must have been visited."""
        if self._carry_size:
            self._complete(data)
        else:
            self._use(data, 0)

    def advance(self) -> bool:
        """Move to the next complete frame; False if more data must be fed first.

        Raises FrameError for a frame that is too large or does not end with 0xCE; `size` is its size.
        """
        data = self.data
        raw = data
        at = self._position
        left = self._end - at
        if left < _HEAD_SIZE:
            return self._run_out(left)
        # A separate variable: as a C int, the first shift could make it negative; this one is unsigned.
        length = (raw[at + 3] << 24) | (raw[at + 4] << 16) | (raw[at + 5] << 8) | raw[at + 6]
        size = length
        # As in RabbitMQ, a payload of frame-max bytes is accepted although the frame is 8 larger.
        if size > self.frame_size_max:
            self._refuse_size(raw[at], size)
        if left < size + _OVERHEAD:
            return self._run_out(left)
        self.kind = raw[at]
        self.channel = (raw[at + 1] << 8) | raw[at + 2]
        self.start = at + _HEAD_SIZE
        self.size = size
        self._position = at + size + _OVERHEAD
        if raw[at + size + _HEAD_SIZE] != _END:
            self._refuse_end(raw[at + size + _HEAD_SIZE])
        return True

    def is_next_of(self, channel: int) -> bool:
        """True if the next frame is complete, in `data`, and on `channel`."""
        data = self.data
        raw = data
        at = self._position
        left = self._end - at
        if left < _OVERHEAD or ((raw[at + 1] << 8) | raw[at + 2]) != channel:
            return False
        length = (raw[at + 3] << 24) | (raw[at + 4] << 16) | (raw[at + 5] << 8) | raw[at + 6]
        size = length
        return size <= self.frame_size_max and left >= size + _OVERHEAD

    def next_method(self) -> int:
        """Class id << 16 | method id of a next frame that `is_next_of` a channel; 0 if it is no method."""
        data = self.data
        raw = data
        at = self._position + _HEAD_SIZE
        if raw[self._position] != METHOD or self._end - at < _METHOD_SIZE:
            return 0
        return (raw[at] << 24) | (raw[at + 1] << 16) | (raw[at + 2] << 8) | raw[at + 3]

    def has_more(self) -> bool:
        """True if fed bytes were not visited yet; otherwise they are released."""
        if self._position < self._end or self._rest is not None:
            return True
        self._use(b"", 0)
        return False

    def take_unread(self) -> bytes:
        """Return the fed bytes that were not visited, and forget them."""
        unread = b"".join(self._carry) if self._carry_size else self.data[self._position : self._end]
        if self._rest is not None:
            unread += self._rest[self._rest_position :]
            self._rest = None
        self._carry = []
        self._carry_size = 0
        self._use(b"", 0)
        return unread

    def payload(self) -> bytes:
        """A copy of the payload of the frame under the cursor."""
        data = self.data
        return data[self.start : self.start + self.size]

    def _use(self, data: bytes, position: int) -> None:
        self.data = data
        self._position = position
        self._end = len(data)

    def _run_out(self, left: int) -> bool:
        """Without a complete frame at the cursor, continue with the rest, or store the incomplete one."""
        if self._rest is not None:
            rest = self._rest
            self._rest = None
            self._use(rest, self._rest_position)
            return self.advance()
        if left:
            tail = self.data[self._position : self._end]
            self._carry.append(tail)
            self._carry_size = left
            self._carry_needed = self._needed(tail)
        self._use(b"", 0)
        return False

    def _complete(self, data: bytes) -> None:
        """Add `data` to the incomplete frame; move the cursor to it once it is complete."""
        position = 0
        while True:
            missing = self._carry_needed - self._carry_size
            if len(data) - position < missing:
                piece = data[position:]
                self._carry.append(piece)
                self._carry_size += len(piece)
                return
            self._carry.append(data[position : position + missing])
            self._carry_size += missing
            position += missing
            carried = b"".join(self._carry)
            needed = self._needed(carried)
            if needed == len(carried):
                break
            self._carry = [carried]
            self._carry_needed = needed
        self._carry = []
        self._carry_size = 0
        self._use(carried, 0)
        self._rest = data
        self._rest_position = position

    def _needed(self, head: bytes) -> int:
        """The number of bytes needed to continue with a frame that begins with `head`."""
        if len(head) < _HEAD_SIZE:
            return _HEAD_SIZE
        size = int.from_bytes(head[3:7], "big")
        if size > self.frame_size_max:
            self._refuse_size(head[0], size)
        return size + _OVERHEAD

    def _refuse_size(self, kind: int, size: int) -> None:
        # For who describes the error in other words.
        self.size = size
        limit = self.frame_size_max - _OVERHEAD
        raise FrameError(
            f"type {kind}, all octets = <<>>: {{frame_too_large,{size},{limit}}}", method_index=0
        )

    def _refuse_end(self, end: int) -> None:
        data = frame_bytes(self.kind, self.payload())
        raise FrameError(pair_printed(f"{data}: ", "invalid_frame_end_marker", end), method_index=0)
