"""Frames on a connection between two nodes.

    frame │ size u32 │ kind u8 │ flags u8 │ checksum u32 │ body, `size` bytes │

All numbers are big-endian. The checksum is CRC-32C over size, kind, flags and body. A frame is refused at its
head if it is larger than the connection accepts, so that nothing is allocated for it.
"""

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum

from google_crc32c import extend
from google_crc32c import value as checksum_of
from msgspec import Struct

from warren.limits_cluster import CLUSTER_FRAME_SIZE_MAX, CLUSTER_UNPROVEN_SIZE_MAX

_HEAD = struct.Struct(">IBBI")
# What the checksum covers of the head: its first bytes.
_COVERED = struct.Struct(">IBB")
_SIZE = struct.Struct(">I")
# Bytes of a frame beside its body.
LINK_FRAME_OVERHEAD = _HEAD.size
# What a PART begins with: its number and the kind of its payload, as in `cluster/link_session`.
PART_HEAD_SIZE = 9
# From this size on the last piece of a frame is written by itself, which costs less than to copy it.
_COPIED_SIZE_MAX = 4_096
# The flag of the last part of a payload; no other flag is defined.
LAST_PART = 1


class LinkFrameKind(IntEnum):
    """The kinds of frames."""

    HELLO = 1
    PROOF = 2
    REFUSAL = 3
    PING = 4
    BEGIN = 5
    PART = 6
    OBEYED = 7
    WANT = 8


_PART = int(LinkFrameKind.PART)
_KINDS = {int(kind): kind for kind in LinkFrameKind}


class LinkFrameError(Exception):
    """A peer has sent what is not a valid frame, or not the expected one; its connection is closed."""


class LinkFrame(Struct, frozen=True):
    """One frame."""

    kind: LinkFrameKind
    body: bytes
    flags: int = 0
    # What a PART that has been received begins with; its body is the rest, which is not copied again.
    head: bytes = b""


def encode_frame(kind: LinkFrameKind, *pieces: bytes, flags: int = 0) -> bytes:
    """Return the frame with the body that the pieces are together."""
    return b"".join((_encode_head(kind, pieces, flags), *pieces))


def encode_pieces(kind: LinkFrameKind, head: bytes, data: bytes, flags: int) -> list[bytes]:
    """Return the frame with the body `head` and `data`, in pieces to be written one after the other.

    Much `data` is a piece by itself, and is not copied.
    """
    begin = _encode_head(kind, (head, data), flags) + head
    return [begin, data] if len(data) > _COPIED_SIZE_MAX else [begin + data]


def _encode_head(kind: LinkFrameKind, pieces: Sequence[bytes], flags: int) -> bytes:
    size = sum(map(len, pieces))
    assert size <= CLUSTER_FRAME_SIZE_MAX
    checksum = checksum_of(_COVERED.pack(size, kind, flags))
    for piece in pieces:
        checksum = extend(checksum, piece)
    return _HEAD.pack(size, kind, flags, checksum)


class LinkFrameReader:
    """Cuts what is read from a connection into frames; an incomplete frame is kept."""

    __slots__ = ("_allowance", "_needed", "_pending")

    def __init__(self) -> None:
        # The begin of a frame, and how many bytes of it are needed to go on.
        self._pending = bytearray()
        self._needed = 0
        # How many bytes may still be sent before the proof; None after it.
        self._allowance: int | None = CLUSTER_UNPROVEN_SIZE_MAX

    def proved(self) -> None:
        """Accept frames of the usual size from now on, also behind the one that was cut last."""
        self._allowance = None

    def cut(self, data: bytes | memoryview) -> Iterator[LinkFrame]:
        """Yield the frames that `data` completes; LinkFrameError at the first that is not valid.

        Each byte is copied once into its frame, and once before if its frame was not complete; `data` itself
        is not kept.
        """
        view = memoryview(data)
        start = 0
        if self._pending:
            start = self._complete(view)
            if len(self._pending) < self._needed:
                return
            whole, self._pending = self._pending, bytearray()
            yield self._frame_at(memoryview(whole), 0)
        self._needed = LINK_FRAME_OVERHEAD
        while len(view) - start >= LINK_FRAME_OVERHEAD:
            needed = LINK_FRAME_OVERHEAD + self._size_at(view, start)
            if len(view) - start < needed:
                self._needed = needed
                break
            at, start = start, start + needed
            yield self._frame_at(view, at)
        self._pending += view[start:]

    def _complete(self, view: memoryview) -> int:
        """Add to the frame that has begun what is missing of it; returns where the next one begins."""
        start = 0
        while True:
            end = start + self._needed - len(self._pending)
            self._pending += view[start:end]
            start = min(end, len(view))
            if start < end or self._needed > LINK_FRAME_OVERHEAD:
                return start
            self._needed += self._size_at(memoryview(self._pending), 0)
            if self._needed == LINK_FRAME_OVERHEAD:
                return start

    def _size_at(self, view: memoryview, start: int) -> int:
        """The size of the body of the frame at `start`, whose head is there. Raises LinkFrameError."""
        (size,) = _SIZE.unpack_from(view, start)
        self._check_size(size)
        return int(size)

    def _frame_at(self, view: memoryview, start: int) -> LinkFrame:
        """The frame at `start`, which is complete. Raises LinkFrameError."""
        size, kind, flags, checksum = _HEAD.unpack_from(view, start)
        at = start + LINK_FRAME_OVERHEAD
        body_at = at + PART_HEAD_SIZE if kind == _PART and size >= PART_HEAD_SIZE else at
        head, body = bytes(view[at:body_at]), bytes(view[body_at : at + size])
        covered = bytes(view[start : start + _COVERED.size]) + head
        if extend(checksum_of(covered), body) != checksum:
            raise LinkFrameError("a frame has a wrong checksum")
        return self._frame(kind, flags, head, body)

    def _check_size(self, size: int) -> None:
        """Refuse a frame at its head."""
        if size > CLUSTER_FRAME_SIZE_MAX:
            raise LinkFrameError(f"a frame of {size} bytes is larger than {CLUSTER_FRAME_SIZE_MAX}")
        if self._allowance is not None and LINK_FRAME_OVERHEAD + size > self._allowance:
            raise LinkFrameError(f"more than {CLUSTER_UNPROVEN_SIZE_MAX} bytes before the proof")

    def _frame(self, kind: int, flags: int, head: bytes, body: bytes) -> LinkFrame:
        if self._allowance is not None:
            self._allowance -= LINK_FRAME_OVERHEAD + len(head) + len(body)
        if kind not in _KINDS:
            raise LinkFrameError(f"a frame has the unknown kind {kind}")
        if flags and (flags != LAST_PART or kind != LinkFrameKind.PART):
            raise LinkFrameError(f"a frame of kind {_KINDS[kind].name} has the flags {flags:#x}")
        return LinkFrame(_KINDS[kind], body, flags, head)
