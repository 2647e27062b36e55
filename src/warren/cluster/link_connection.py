"""One connection between two nodes: its frames, its handshake, and its output.

It knows no socket. Whoever has one passes what was read to `receive`, writes what `take_output` returns when
`LinkSocket.output_ready` was called, and closes the socket after that when the connection `is_finished`.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct, field

from warren.cluster.elapsed_time import ElapsedTime
from warren.cluster.hello import Hello, LinkPurpose
from warren.cluster.link_frames import (
    LinkFrame,
    LinkFrameError,
    LinkFrameKind,
    LinkFrameReader,
    encode_frame,
)
from warren.cluster.link_handshake import LinkHandshake, LinkRefusal, RefusalCode, decode_refusal
from warren.limits_cluster import CLUSTER_HANDSHAKE_MS, CLUSTER_OUTPUT_SIZE

# The place of the kind in an encoded frame.
_KIND_AT = 4
# Looked up once: an attribute of an enum costs 0.1 µs interpreted.
_REFUSAL = LinkFrameKind.REFUSAL
# A network that fell silent, and what this node cannot do.
_NOT_SUSPECT = (RefusalCode.TIMEOUT, RefusalCode.BUSY, RefusalCode.INTERNAL)


class NodeLinkCounters(Struct):
    """What was counted of the connections of a link, or of those that have none yet."""

    frames_received: int = 0
    bytes_received: int = 0
    frames_sent: int = 0
    bytes_sent: int = 0
    connections: int = 0
    # Refusals by this node, and by peers.
    refusals: dict[RefusalCode, int] = field(default_factory=dict)
    refusals_received: dict[RefusalCode, int] = field(default_factory=dict)


class LinkSocket(Protocol):
    """Port: the socket of a connection."""

    def output_ready(self) -> None:
        """Called when the connection has output, or is finished."""


class ConnectionOwner(Protocol):
    """Port: the link that a connection belongs to, after its handshake."""

    @property
    def counters(self) -> NodeLinkCounters:
        """The counters of the link."""

    def attach(self, connection: "LinkConnection") -> None:
        """Called when the peer has proved itself."""

    def receive(self, connection: "LinkConnection", frame: LinkFrame) -> None:
        """Handle a frame that does not belong to the handshake. Raises LinkFrameError."""

    def has_output(self, connection: "LinkConnection") -> bool:
        """True if the session of the connection has something to send."""

    def take_output(self, connection: "LinkConnection", size_max: int) -> list[bytes]:
        """Return frames of the session of the connection, in pieces, and count them."""

    def detach(self, connection: "LinkConnection") -> None:
        """Called when the connection has ended, exactly once."""

    def fail(self, connection: "LinkConnection", refusal: LinkRefusal) -> None:
        """Give up the session of the connection, and the connection with it."""


class LinkConnection:
    """One connection, dialed by this node or by the peer."""

    def __init__(
        self,
        handshake: LinkHandshake,
        find_owner: Callable[[Hello], ConnectionOwner],
        socket: LinkSocket,
        time: ElapsedTime,
        *,
        unowned: NodeLinkCounters,
        failed: Callable[[str], None] | None = None,
        removed: Callable[[], None] = lambda: None,
    ) -> None:
        """`find_owner` returns the link of a peer that the handshake has accepted.

        What happens before is counted in `unowned`. `failed` is called with the reason if the connection ends
        before; before that, `removed` if the peer proves that this node was removed from the cluster.
        """
        self._handshake = handshake
        self._find_owner = find_owner
        self._socket = socket
        self._failed = failed
        self._removed = removed
        self._reader = LinkFrameReader()
        self._counters = unowned
        self._owner: ConnectionOwner | None = None
        self._purpose: LinkPurpose | None = None
        self._time = time
        self._due = time.now + CLUSTER_HANDSHAKE_MS
        self._output = handshake.start()
        # Why the connection is finished, or was refused; empty while it is not.
        self.reason = ""
        self.is_finished = False
        # True if this node has refused what the peer has sent: it may be guessing the cookie.
        self.is_suspect = False

    @property
    def is_proven(self) -> bool:
        """True if the handshake is complete."""
        return self._owner is not None

    @property
    def is_unproven(self) -> bool:
        """True if the connection has ended and the peer had not proved itself."""
        return self.is_finished and not self._handshake.is_proven

    @property
    def peer(self) -> Hello:
        """The HELLO of a peer that has proved itself."""
        assert self._handshake.is_proven
        assert self._handshake.peer is not None
        return self._handshake.peer

    @property
    def purpose(self) -> LinkPurpose:
        """What the connection of a peer that has proved itself is for."""
        assert self._purpose is not None
        return self._purpose

    # --- what the socket calls -----------------------------------------------------------------------

    def receive(self, data: bytes | memoryview, now: int) -> None:
        """Handle what was read from the socket; `data` is not kept."""
        if self.is_finished:
            return
        self._time.follow(now)
        self._counters.bytes_received += len(data)
        try:
            for frame in self._reader.cut(data):
                self._counters.frames_received += 1
                self._handle(frame)
                if self.is_finished:
                    break
        except LinkFrameError as error:
            self.refuse(LinkRefusal(RefusalCode.MALFORMED, str(error)))
        except LinkRefusal as refusal:
            self.refuse(refusal)
        if self.has_output:
            self._socket.output_ready()

    @property
    def has_output(self) -> bool:
        """True if `take_output` has something."""
        if self._output:
            return True
        return self._owner is not None and not self.is_finished and self._owner.has_output(self)

    def take_output(self) -> list[bytes]:
        """Return what is to be written next, and keep the rest for later."""
        output, self._output = self._output, []
        self._counters.frames_sent += len(output)
        if self._owner is not None and not self.is_finished:
            output += self._owner.take_output(self, CLUSTER_OUTPUT_SIZE)
        self._counters.bytes_sent += sum(map(len, output))
        return output

    def deadline(self) -> int | None:
        """Return when `expire` is due, on the clock of the node."""
        return None if self.is_proven or self.is_finished else self._time.clock_at(self._due)

    def expire(self, now: int) -> None:
        """Give up a handshake that takes too long."""
        self._time.follow(now)
        if not self.is_proven and self._due <= self._time.now:
            self.refuse(LinkRefusal(RefusalCode.TIMEOUT, f"no handshake within {CLUSTER_HANDSHAKE_MS} ms"))

    def lost(self) -> None:
        """The socket was closed."""
        self.close(self.reason or "the peer has closed the connection")

    def fail(self) -> None:
        """End the connection, and its session, because of an error of this node."""
        refusal = LinkRefusal(RefusalCode.INTERNAL, "internal error")
        if self._owner is not None:
            self._owner.fail(self, refusal)
        else:
            self.refuse(refusal)

    # --- what the link calls -------------------------------------------------------------------------

    def send(self, kind: LinkFrameKind, body: bytes) -> None:
        """Send a frame of the link itself, in place of one of its kind that still waits."""
        self._output = [waiting for waiting in self._output if waiting[_KIND_AT] != kind]
        self._output.append(encode_frame(kind, body))
        self._socket.output_ready()

    def output_ready(self) -> None:
        """Have the output of the session written."""
        self._socket.output_ready()

    def refuse(self, refusal: LinkRefusal) -> None:
        """Tell the peer that it is refused, and end the connection."""
        if self.is_finished:
            return
        self.is_suspect = refusal.code not in _NOT_SUSPECT
        count = self._counters.refusals
        count[refusal.code] = count.get(refusal.code, 0) + 1
        self._output.append(self._handshake.refusal_frame(refusal))
        self.close(str(refusal))

    def close(self, reason: str) -> None:
        """End the connection."""
        if self.is_finished:
            return
        self.is_finished = True
        self.reason = reason
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.detach(self)
        elif self._failed is not None:
            self._failed(reason)
        self._socket.output_ready()

    # --- private -------------------------------------------------------------------------------------

    def _handle(self, frame: LinkFrame) -> None:
        if frame.kind is _REFUSAL:
            refusal = decode_refusal(frame.body)
            count = self._counters.refusals_received
            count[refusal.code] = count.get(refusal.code, 0) + 1
            if self._handshake.proves_removal(refusal):
                self._removed()
            self.close(f"the peer refuses: {refusal.code.name.lower()}: {refusal.text}")
        elif self._owner is not None:
            self._owner.receive(self, frame)
        else:
            self._output += self._handshake.receive(frame)
            if self._handshake.is_proven:
                self._proved()

    def _proved(self) -> None:
        self._reader.proved()
        self._purpose = self.peer.purpose
        owner = self._find_owner(self.peer)
        self._counters = owner.counters
        self._counters.connections += 1
        self._owner = owner
        owner.attach(self)
