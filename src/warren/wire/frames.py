"""Cuts the octets of one connection into frames (0-9-1 §4.2.3), without making an object for each.

    frame | type u8 | channel u16 | size u32 | payload, `size` octets | 0xCE |

The reader is a cursor: `feed` hands it what the socket gave, `advance` steps to the next whole frame, and
`kind`, `channel`, `start` and `size` say what lies there in `data`. A frame that ends in a later read is
carried over piece by piece and joined once, so octets that come one at a time cost no more than their number.
"""

from warren.errors import FrameError
from warren.limits import FRAME_OVERHEAD, FRAME_SIZE_HANDSHAKE
from warren.wire.erlang import frame_octets, pair_printed

METHOD = 1
HEADER = 2
BODY = 3
HEARTBEAT = 8
FRAME_END = 0xCE

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
        # A frame begun in an earlier read: its pieces, their octets, and how many it takes to go on.
        self._carry: list[bytes] = []
        self._carry_size = 0
        self._carry_needed = 0
        # While `data` is a frame that was carried over: the read that completed it, and where to go on.
        self._rest: bytes | None = None
        self._rest_position = 0

    def feed(self, data: bytes) -> None:
        """Take the octets of one read; the frames of the read before must have been stepped through."""
        if self._carry_size:
            self._complete(data)
        else:
            self._use(data, 0)

    def advance(self) -> bool:
        """Step to the next whole frame; False when there is none before the next `feed`.

        Raises FrameError for a frame that is too large or does not end with 0xCE.
        """
        data = self.data
        octets = data
        at = self._position
        left = self._end - at
        if left < _HEAD_SIZE:
            return self._run_out(left)
        # A variable of its own: as a C int, the first shift may turn it negative; this one is unsigned.
        length = (octets[at + 3] << 24) | (octets[at + 4] << 16) | (octets[at + 5] << 8) | octets[at + 6]
        size = length
        # As RabbitMQ, a payload of frame-max octets is let pass although the frame is 8 larger.
        if size > self.frame_size_max:
            self._refuse_size(octets[at], size)
        if left < size + _OVERHEAD:
            return self._run_out(left)
        self.kind = octets[at]
        self.channel = (octets[at + 1] << 8) | octets[at + 2]
        self.start = at + _HEAD_SIZE
        self.size = size
        self._position = at + size + _OVERHEAD
        if octets[at + size + _HEAD_SIZE] != _END:
            self._refuse_end(octets[at + size + _HEAD_SIZE])
        return True

    def has_more(self) -> bool:
        """True if octets were fed that were not stepped through yet; else they are let go of."""
        if self._position < self._end or self._rest is not None:
            return True
        self._use(b"", 0)
        return False

    def payload(self) -> bytes:
        """A copy of the payload of the frame under the cursor."""
        octets = self.data
        return octets[self.start : self.start + self.size]

    def _use(self, data: bytes, position: int) -> None:
        self.data = data
        self._position = position
        self._end = len(data)

    def _run_out(self, left: int) -> bool:
        """The octets under the cursor are no whole frame: go on with the rest, or carry them over."""
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
        """Add `data` to the frame carried over; put the cursor on it once it is whole."""
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
        """How many octets it takes to go on with a frame that begins with `head`."""
        if len(head) < _HEAD_SIZE:
            return _HEAD_SIZE
        size = int.from_bytes(head[3:7], "big")
        if size > self.frame_size_max:
            self._refuse_size(head[0], size)
        return size + _OVERHEAD

    def _refuse_size(self, kind: int, size: int) -> None:
        limit = self.frame_size_max - _OVERHEAD
        raise FrameError(
            f"type {kind}, all octets = <<>>: {{frame_too_large,{size},{limit}}}", method_index=0
        )

    def _refuse_end(self, end: int) -> None:
        octets = frame_octets(self.kind, self.payload())
        raise FrameError(pair_printed(f"{octets}: ", "invalid_frame_end_marker", end), method_index=0)
