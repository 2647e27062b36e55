"""A session between two nodes, which outlasts the connections that carry it.

Payloads are sent in parts, which are numbered. A part is kept until the peer has obeyed it, and is sent again
when the connection was replaced meanwhile.

    BEGIN  │ session of the sender u64 │ session of the receiver u64 │ obeyed u64 │ window u32 │
    PART   │ number u64 │ kind of the payload u8 │ data │         flag: the last part of its payload
    OBEYED │ session of its receiver u64 │ number u64 │

What was obeyed is told with other output, with the next ping, or when it is a quarter of the window.

Each end names its session with a random number, and a new one when it has given up the former. The first
frame of both on a connection is a BEGIN: the number of its own session, the one that it knows of the peer (0:
none), and the last part of that which it has obeyed. Nothing else is sent before the peer's BEGIN was
received, and both can tell from the two BEGINs what happens:

1. An end that knows another session than the peer now has gives up its own: the peer has given up before.
   It says so with another BEGIN, in which it knows no session.
2. An end whose peer knows another session than its own waits for that other BEGIN.
3. Otherwise both sessions belong together, and continue after what the BEGINs say was obeyed.

Invariants: `lost` is called once for each session that is given up and was used, and before anything of the
next one is delivered; no payload is delivered twice, or behind a later one.
"""

import struct
from collections import deque
from collections.abc import Callable
from typing import Protocol

from warren.cluster.link_frames import (
    LAST_PART,
    PART_HEAD_SIZE,
    LinkFrame,
    LinkFrameError,
    LinkFrameKind,
    encode_frame,
    encode_pieces,
)
from warren.limits_cluster import (
    CLUSTER_BEGINS_MAX,
    CLUSTER_KEPT_SIZE_MAX,
    CLUSTER_PART_OVERHEAD,
    CLUSTER_PART_SIZE_MAX,
    CLUSTER_PAYLOAD_SIZE_MAX,
    CLUSTER_UNTOLD_SIZE_MAX,
    CLUSTER_WINDOW_SIZE,
)

_BEGIN = struct.Struct(">QQQI")
_PART = struct.Struct(">QB")
_OBEYED = struct.Struct(">QQ")
# Looked up once: an attribute of an enum costs 0.1 µs interpreted.
_BEGIN_FRAME = LinkFrameKind.BEGIN
_PART_FRAME = LinkFrameKind.PART
_OBEYED_FRAME = LinkFrameKind.OBEYED
_PART_OVERHEAD = CLUSTER_PART_OVERHEAD
_SESSION_SIZE = 8
# The session of a peer that has told none.
_NO_SESSION = 0
# A window in which a part of the largest size does not fit would never let it pass.
_WINDOW_MIN = CLUSTER_PART_SIZE_MAX + CLUSTER_PART_OVERHEAD


class LinkFullError(Exception):
    """More waits to be sent than a session may keep: the caller did not ask whether it is writable."""


class LinkSessionListener(Protocol):
    """Port: the caller's side of a session."""

    def delivered(self, kind: int, body: bytes) -> None:
        """Called with each payload of the peer."""

    def began(self) -> None:
        """Called when the peer has begun the session, before anything of it."""

    def lost(self) -> None:
        """Called when the session was given up; what the caller sends from now on is of the next one."""

    def writable(self) -> None:
        """Called when the session accepts more again."""


class _Part:
    """A part of a payload, until the peer has obeyed it."""

    __slots__ = ("data", "is_last", "kind", "number", "size")

    def __init__(self, number: int, kind: int, is_last: bool, data: bytes | memoryview) -> None:
        self.number = number
        self.kind = kind
        self.is_last = is_last
        self.data = data
        # What it takes on the connection, in bytes.
        self.size = len(data) + _PART_OVERHEAD


class LinkSession:
    """One end of a session, for both directions."""

    __slots__ = (
        "_begins", "_is_begin_due", "_is_connected", "_is_full", "_is_obeyed_due", "_is_open", "_kept_size",
        "_last", "_last_sent", "_listener", "_obeyed", "_own", "_peers", "_pieces", "_pieces_kind",
        "_pieces_size", "_random_bytes", "_sent", "_sent_size", "_unsent", "_untold_size", "_window",
        "frame_count", "lost_count", "resumed_count",
    )  # fmt: skip

    def __init__(self, listener: LinkSessionListener, random_bytes: Callable[[int], bytes]) -> None:
        self._listener = listener
        self._random_bytes = random_bytes
        self._own = self._new_number()
        self._peers = _NO_SESSION
        # Parts that were sent on this connection, and those that were not, in order of their numbers.
        self._sent: deque[_Part] = deque()
        self._unsent: deque[_Part] = deque()
        # The number of the last part that was made, and of the last one that was sent on any connection.
        self._last = 0
        self._last_sent = 0
        self._kept_size = 0
        self._sent_size = 0
        self._window = 0
        self._is_full = False
        # The last part of the peer that was obeyed, and the parts of a payload that is not complete.
        self._obeyed = 0
        self._pieces: list[bytes] = []
        self._pieces_size = 0
        self._pieces_kind = 0
        # Of this connection.
        self._is_connected = False
        self._is_open = False
        self._begins = 0
        self._is_begin_due = False
        self._is_obeyed_due = False
        # What was obeyed since the peer was told, in bytes.
        self._untold_size = 0
        # How many frames were taken, on all connections.
        self.frame_count = 0
        # How often a session continued on another connection, and how many were given up.
        self.resumed_count = 0
        self.lost_count = 0

    @property
    def is_used(self) -> bool:
        """True if there is something to lose: the peer is known, or something waits for it."""
        return self._peers != _NO_SESSION or self._last > 0

    @property
    def is_open(self) -> bool:
        """True if parts may be sent on the connection."""
        return self._is_open

    @property
    def is_writable(self) -> bool:
        """True if the caller should send more."""
        return not self._is_full

    @property
    def kept_size(self) -> int:
        """What is kept for the peer, in bytes."""
        return self._kept_size

    @property
    def received_size(self) -> int:
        """What is kept of a payload that the peer has not sent completely, in bytes."""
        return self._pieces_size

    def send(self, kind: int, body: bytes) -> None:
        """Send a payload. Raises LinkFullError if too much waits already."""
        assert len(body) <= CLUSTER_PAYLOAD_SIZE_MAX
        count = max(1, -(-len(body) // CLUSTER_PART_SIZE_MAX))
        size = len(body) + count * CLUSTER_PART_OVERHEAD
        if self._kept_size + size > CLUSTER_KEPT_SIZE_MAX:
            raise LinkFullError(f"{self._kept_size} bytes wait to be sent, and {size} more are too many")
        if count == 1:
            self._add(_Part(self._last + 1, kind, True, body))
        else:
            view = memoryview(body)
            for start in range(0, len(body), CLUSTER_PART_SIZE_MAX):
                end = start + CLUSTER_PART_SIZE_MAX
                self._add(_Part(self._last + 1, kind, end >= len(body), view[start:end]))
        self._is_full = self._is_full or self._kept_size >= CLUSTER_WINDOW_SIZE

    # --- the connection that carries the session -----------------------------------------------------

    def connected(self) -> None:
        """Continue on a new connection, after the handshake."""
        self.disconnected()
        self._is_connected = self._is_begin_due = True

    def disconnected(self) -> None:
        """Keep everything for the next connection."""
        self._is_connected = self._is_open = self._is_begin_due = self._is_obeyed_due = False
        self._untold_size = 0
        self._begins = 0
        self._unsent.extendleft(reversed(self._sent))
        self._sent.clear()
        self._sent_size = 0

    def end(self) -> None:
        """Give up the session; a connection that exists continues with the next one."""
        was_used = self.is_used
        self._own = self._new_number()
        self._peers = _NO_SESSION
        self._sent.clear()
        self._unsent.clear()
        self._last = self._last_sent = self._kept_size = self._sent_size = self._obeyed = 0
        self._untold_size = 0
        self._drop_pieces()
        self._is_open = self._is_obeyed_due = self._is_full = False
        self._is_begin_due = self._is_connected
        if was_used:
            self.lost_count += 1
            self._listener.lost()

    def receive(self, frame: LinkFrame) -> None:
        """Handle a BEGIN, PART or OBEYED of the peer; LinkFrameError if it is not valid now."""
        kind = frame.kind
        if kind is _PART_FRAME and self._is_open:
            self._part(frame)
        elif kind is _OBEYED_FRAME and self._is_open:
            self._peer_obeyed(frame.body)
        elif kind is _BEGIN_FRAME:
            self._begin(frame.body)
        else:
            raise LinkFrameError(f"a {kind.name} outside of a session")

    def tell_obeyed(self) -> None:
        """Tell the peer what was obeyed, if it does not know."""
        self._is_obeyed_due = self._untold_size > 0

    @property
    def has_output(self) -> bool:
        """True if `take_output` has something."""
        if self._is_begin_due or self._is_obeyed_due:
            return True
        return self._is_open and bool(self._unsent) and self._is_within_window(self._unsent[0])

    def take_output(self, size_max: int) -> list[bytes]:
        """Return the next frames, of about `size_max` bytes in all; a large one in two pieces."""
        frames: list[bytes] = []
        if self._is_begin_due:
            self._is_begin_due = False
            begin = _BEGIN.pack(self._own, self._peers, self._obeyed, CLUSTER_WINDOW_SIZE)
            frames.append(encode_frame(LinkFrameKind.BEGIN, begin))
            self.frame_count += 1
        if self._untold_size and self._is_open:
            self._is_obeyed_due = False
            self._untold_size = 0
            frames.append(encode_frame(LinkFrameKind.OBEYED, _OBEYED.pack(self._peers, self._obeyed)))
            self.frame_count += 1
        size = 0
        while self._is_open and self._unsent and size < size_max and self._is_within_window(self._unsent[0]):
            part = self._unsent.popleft()
            self._sent.append(part)
            self._sent_size += part.size
            self._last_sent = max(self._last_sent, part.number)
            size += part.size
            head = _PART.pack(part.number, part.kind)
            flags = LAST_PART if part.is_last else 0
            frames += encode_pieces(_PART_FRAME, head, bytes(part.data), flags)
            self.frame_count += 1
        return frames

    # --- private -------------------------------------------------------------------------------------

    def _new_number(self) -> int:
        # 0 is no session.
        return int.from_bytes(self._random_bytes(_SESSION_SIZE), "big") or 1

    def _add(self, part: _Part) -> None:
        self._last = part.number
        self._unsent.append(part)
        self._kept_size += part.size

    def _is_within_window(self, part: _Part) -> bool:
        return self._sent_size + part.size <= self._window

    def _begin(self, body: bytes) -> None:
        if len(body) != _BEGIN.size:
            raise LinkFrameError("a BEGIN has a wrong size")
        theirs, known, obeyed, window = _BEGIN.unpack(body)
        self._begins += 1
        if self._is_open or self._begins > CLUSTER_BEGINS_MAX:
            raise LinkFrameError("a BEGIN of a session that has begun")
        if theirs == _NO_SESSION or window < _WINDOW_MIN:
            raise LinkFrameError(f"a BEGIN of session {theirs} with a window of {window}")
        if self._peers not in (_NO_SESSION, theirs):
            self.end()
            if not self._is_connected:
                # The listener has given up the connection as well.
                return
        if known not in (_NO_SESSION, self._own):
            # The peer gives up its session when it receives the BEGIN of this one.
            return
        if obeyed > self._last_sent or (obeyed and known == _NO_SESSION):
            raise LinkFrameError(f"a BEGIN after part {obeyed}, which was not sent")
        is_new = self._peers != theirs
        if not is_new:
            self.resumed_count += 1
        self._peers = theirs
        self._window = min(window, CLUSTER_WINDOW_SIZE)
        self._is_open = True
        self._release(self._unsent, obeyed)
        if is_new:
            self._listener.began()

    def _part(self, frame: LinkFrame) -> None:
        data, head = frame.body, frame.head
        size = len(data)
        if len(head) != PART_HEAD_SIZE or size > CLUSTER_PART_SIZE_MAX:
            raise LinkFrameError("a PART has a wrong size")
        number, kind = _PART.unpack(head)
        if number != self._obeyed + 1:
            raise LinkFrameError(f"part {number} follows part {self._obeyed}")
        if self._pieces and kind != self._pieces_kind:
            raise LinkFrameError(f"a payload is of the kinds {self._pieces_kind} and {kind}")
        if self._pieces_size + size > CLUSTER_PAYLOAD_SIZE_MAX:
            raise LinkFrameError(f"a payload is larger than {CLUSTER_PAYLOAD_SIZE_MAX} bytes")
        self._obeyed = number
        self._untold_size += size + CLUSTER_PART_OVERHEAD
        if self._untold_size >= CLUSTER_UNTOLD_SIZE_MAX:
            self._is_obeyed_due = True
        if not frame.flags & LAST_PART:
            self._pieces.append(data)
            self._pieces_size += size
            self._pieces_kind = kind
            return
        if self._pieces:
            data = b"".join((*self._pieces, data))
            self._drop_pieces()
        self._listener.delivered(kind, data)

    def _peer_obeyed(self, body: bytes) -> None:
        if len(body) != _OBEYED.size:
            raise LinkFrameError("an OBEYED has a wrong size")
        session, number = _OBEYED.unpack(body)
        if session != self._own:
            return
        if number > self._last_sent:
            raise LinkFrameError(f"part {number} was obeyed, and not sent")
        self._release(self._sent, number)

    def _release(self, parts: deque[_Part], number: int) -> None:
        """Forget the `parts` up to `number`."""
        while parts and parts[0].number <= number:
            part = parts.popleft()
            self._kept_size -= part.size
            if parts is self._sent:
                self._sent_size -= part.size
        # At half of the window, so that a caller is not told for each part.
        if self._is_full and self._kept_size <= CLUSTER_WINDOW_SIZE // 2:
            self._is_full = False
            self._listener.writable()

    def _drop_pieces(self) -> None:
        self._pieces.clear()
        self._pieces_size = 0
        self._pieces_kind = 0
