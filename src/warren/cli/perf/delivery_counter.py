"""Counts deliveries of equal length by dividing the number of received bytes."""

import struct

FRAME_HEADER = struct.Struct(">BHI")
FRAME_OVERHEAD = 8
METHOD_FRAME = 1
HEADER_FRAME = 2
BODY_FRAME = 3
END = 0xCE
DELIVER = b"\x00\x3c\x00\x3c"
_BODY_SIZE_AT = 4
_TAG = struct.Struct(">Q")


class Misaligned(Exception):
    """The received bytes are not the expected deliveries; `data` begins with the unexpected frame."""

    def __init__(self, data: bytes) -> None:
        super().__init__("the stream of deliveries is broken")
        self.data = data


class DeliveryCounter:
    """Takes the length of a delivery from the first one, then counts by division.

    Delivery tags have a fixed width and increase by one, so the expected tag in the last delivery of a chunk
    proves that all deliveries before it had the expected length.
    """

    __slots__ = ("_carry", "_prefix", "_probe_bytes", "_received_bytes", "_tag_at", "body_at", "length")

    def __init__(self) -> None:
        self._carry = bytearray()
        self._received_bytes = 0
        self._prefix = b""  # start of each delivery: frame header, class, method, length of the tag
        self._tag_at = 0  # offset of the delivery tag in a delivery
        self._probe_bytes = 0
        self.body_at = 0  # offset of the body in a delivery
        self.length = 0  # length of a delivery in bytes; 0 until the first one has arrived

    @property
    def total(self) -> int:
        """The number of complete deliveries."""
        return self._received_bytes // self.length if self.length else 0

    @property
    def offset(self) -> int:
        """The number of received bytes of an incomplete delivery."""
        return self._received_bytes % self.length if self.length else len(self._carry)

    def feed(self, data: memoryview) -> int:
        """Count `data`; return the total number of complete deliveries."""
        if not self.length:
            return self._learn(data)
        before = self._received_bytes
        self._received_bytes = before + len(data)
        last = self._received_bytes - self._probe_bytes
        last -= last % self.length  # start of the last delivery whose tag has arrived
        if last >= before:
            self._verify(data, last - before, last // self.length + 1)
        return self._received_bytes // self.length

    def skip(self, size: int) -> int:
        """Count bytes that were discarded unread; the next `feed` verifies that they were deliveries."""
        self._received_bytes += size
        return self._received_bytes // self.length

    def _learn(self, data: memoryview) -> int:
        self._carry += data
        length = delivery_length(self._carry)
        if not length:
            return 0
        self.length = length
        self._prefix = bytes(self._carry[: FRAME_OVERHEAD - 1 + len(DELIVER) + 1])
        self._tag_at = len(self._prefix) + self._prefix[-1]
        self._probe_bytes = self._tag_at + _TAG.size
        self.body_at = body_at(self._carry)
        carry, self._carry = self._carry, bytearray()
        return self.feed(memoryview(carry))

    def _verify(self, data: memoryview, at: int, tag: int) -> None:
        """Raise Misaligned unless a delivery like the first, with `tag`, begins at `at`."""
        (found,) = _TAG.unpack_from(data, at + self._tag_at)
        if found == tag and data[at : at + len(self._prefix)] == self._prefix:
            return
        first = -(self._received_bytes - len(data)) % self.length
        raise Misaligned(unexpected_bytes(bytes(data[first:]), self._prefix, self.length))


def delivery_length(data: bytes | bytearray) -> int:
    """Return the length of the first delivery in `data`; 0 if it is incomplete."""
    at, missing = 0, -1  # missing bytes of the body; -1 before the header
    while missing:
        if len(data) < at + FRAME_OVERHEAD:
            return 0
        kind, _, size = FRAME_HEADER.unpack_from(data, at)
        payload_at = at + FRAME_OVERHEAD - 1
        beginning = bytes(data[payload_at : payload_at + len(DELIVER)])
        if at == 0 and (kind != METHOD_FRAME or not DELIVER.startswith(beginning)):
            raise Misaligned(bytes(data))
        if len(data) < at + FRAME_OVERHEAD + size:
            return 0
        if data[at + FRAME_OVERHEAD + size - 1] != END:
            raise Misaligned(bytes(data[at:]))
        if kind == HEADER_FRAME:
            (missing,) = _TAG.unpack_from(data, payload_at + _BODY_SIZE_AT)
        elif kind == BODY_FRAME:
            missing -= size
        elif at:
            raise Misaligned(bytes(data[at:]))
        at += FRAME_OVERHEAD + size
    return at


def body_at(data: bytes | bytearray) -> int:
    """Return where the body begins in a delivery: after three frame headers and two frame ends."""
    at = 0
    for _ in range(2):
        at += FRAME_OVERHEAD + int(FRAME_HEADER.unpack_from(data, at)[2])
    return at + FRAME_OVERHEAD - 1


def unexpected_bytes(data: bytes, prefix: bytes, length: int) -> bytes:
    """Return `data` from the first bytes that are not a delivery like the first."""
    at = 0
    while data[at : at + len(prefix)] == prefix:
        at += length
    return data[at:]
