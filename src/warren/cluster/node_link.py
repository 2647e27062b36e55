"""The link of this node to one other: its connections by purpose, each with a session.

The node with the smaller number dials; a node that is not in a cluster yet dials to join it. Both ends send a
ping on each connection every `CLUSTER_PING_MS`, so that a network that drops everything is noticed. Time is
that of `ElapsedTime`.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from warren.cluster.elapsed_time import ElapsedTime
from warren.cluster.hello import NO_NODE, Hello, LinkPurpose
from warren.cluster.link_connection import LinkConnection, NodeLinkCounters
from warren.cluster.link_frames import LinkFrame, LinkFrameError, LinkFrameKind
from warren.cluster.link_handshake import LinkRefusal, RefusalCode
from warren.cluster.link_session import LinkSession
from warren.cluster.redial import Redial
from warren.limits_cluster import (
    CLUSTER_CONNECTION_SILENT_MS,
    CLUSTER_DIGEST_SIZE_MAX,
    CLUSTER_PING_MS,
    CLUSTER_PINGS_PER_CONNECTION_PING,
    CLUSTER_REFUSALS_GONE,
    CLUSTER_SESSION_MS,
    CLUSTER_SILENT_MS,
)

# Those between two members, of which the first two are always there, and those of a node that joins.
_MEMBER_PURPOSES = (LinkPurpose.CONTROL, LinkPurpose.DATA, LinkPurpose.BULK)
_LASTING = frozenset((LinkPurpose.CONTROL, LinkPurpose.DATA, LinkPurpose.JOIN))
# Looked up once: an attribute of an enum costs 0.1 µs interpreted.
_CONTROL, _BULK = LinkPurpose.CONTROL, LinkPurpose.BULK
_OF_SESSIONS = frozenset((LinkFrameKind.BEGIN, LinkFrameKind.PART, LinkFrameKind.OBEYED))


class PayloadError(Exception):
    """A listener cannot use a payload: the session ends in which it was sent."""


class PeerNode(Struct, frozen=True, kw_only=True):
    """Another node, and where it listens; a node that joins has NO_NODE, and one to join has no name."""

    node_id: int
    name: str
    host: str = ""
    port: int = 0


class LinkListener(Protocol):
    """Port: what a link is for. Each method may call the link, and may forget it."""

    def received(self, link: "NodeLink", purpose: LinkPurpose, kind: int, body: bytes) -> None:
        """Called with each payload, exactly once and in order within a session. Raises PayloadError."""

    def session_began(self, link: "NodeLink", purpose: LinkPurpose) -> None:
        """Called when the peer has begun a session, before anything that it sends in it."""

    def session_lost(self, link: "NodeLink", purpose: LinkPurpose) -> None:
        """Called when what was sent may not have arrived, and before anything of the next session."""

    def silent(self, link: "NodeLink") -> None:
        """Called when nothing was heard from the peer for a while."""

    def heard(self, link: "NodeLink") -> None:
        """Called when something was heard from the peer, at first and after each silence."""

    def writable(self, link: "NodeLink", purpose: LinkPurpose) -> None:
        """Called when the link accepts more again."""

    def pinged(self, link: "NodeLink", digest: bytes) -> None:
        """Called with what the peer tells with its pings. Raises PayloadError."""


class NodeLinkDependencies(Struct, frozen=True, kw_only=True):
    """What the links of a node need."""

    listener: LinkListener
    random_bytes: Callable[[int], bytes]
    # Port: opens a socket; NodeLinks.dialed or NodeLink.dial_failed follows.
    dial: Callable[["NodeLink", LinkPurpose], None]
    # Port: finds out whether anybody listens where the peer does, and whether that has removed this node:
    # NodeLink.probed follows, or NodeLinks.dialed with the purpose INQUIRY.
    probe: Callable[["NodeLink"], None]
    # True if the node with this number was removed from the cluster.
    is_removed: Callable[[int], bool] = lambda _: False
    # Port: what is told with each ping of a control connection.
    digest: Callable[[], bytes]
    # Called when a tick may be due earlier than it was.
    schedule: Callable[[], None] = lambda: None


class _Channel:
    """One purpose of a link: its session, to which it listens, and the connection that carries it."""

    __slots__ = (
        "_link", "_listener", "connection", "heard_at", "is_dialing", "is_wanted", "purpose", "redial",
        "session",
    )  # fmt: skip

    def __init__(
        self, link: "NodeLink", purpose: LinkPurpose, dependencies: NodeLinkDependencies, now: int
    ) -> None:
        self._link = link
        self._listener = dependencies.listener
        self.purpose = purpose
        self.session = LinkSession(self, dependencies.random_bytes)
        self.redial = Redial(dependencies.random_bytes, now)
        self.connection: LinkConnection | None = None
        self.heard_at = now
        self.is_dialing = False
        # True if the peer, which does not dial, has asked for a connection.
        self.is_wanted = False

    @property
    def is_needed(self) -> bool:
        return self.purpose in _LASTING or self.is_wanted or self.session.is_used

    def delivered(self, kind: int, body: bytes) -> None:
        self._listener.received(self._link, self.purpose, kind, body)

    def began(self) -> None:
        self._listener.session_began(self._link, self.purpose)

    def lost(self) -> None:
        self._listener.session_lost(self._link, self.purpose)

    def writable(self) -> None:
        self._listener.writable(self._link, self.purpose)

    def close(self, reason: str) -> None:
        if self.connection is not None:
            self.connection.close(reason)


class NodeLink:
    """The link to one other node, the owner of its connections."""

    __slots__ = (
        "_channels", "_counters", "_dependencies", "_heard_at", "_ping_at", "_pings", "_time", "failure",
        "hello", "is_closed", "is_dialer", "is_removed_by_peer", "is_silent", "peer",
    )  # fmt: skip

    def __init__(
        self, peer: PeerNode, dependencies: NodeLinkDependencies, time: ElapsedTime, *, is_dialer: bool
    ) -> None:
        self.peer = peer
        self.is_dialer = is_dialer
        # The HELLO of the peer in its last handshake.
        self.hello: Hello | None = None
        # Why the last attempt to connect has failed; empty since there is a connection.
        self.failure = ""
        # True if the peer has proved that it has removed this node from the cluster.
        self.is_removed_by_peer = False
        self._counters = NodeLinkCounters()
        self._dependencies = dependencies
        self._time = time
        purposes = (LinkPurpose.JOIN,) if peer.node_id == NO_NODE else _MEMBER_PURPOSES
        self._channels = {purpose: _Channel(self, purpose, dependencies, time.now) for purpose in purposes}
        if not is_dialer and LinkPurpose.CONTROL in self._channels:
            # A peer that is there dials before it is asked why it does not.
            self._channels[LinkPurpose.CONTROL].redial.due = time.now + CLUSTER_SILENT_MS
        self._heard_at = time.now
        self.is_silent = True
        self._ping_at = time.now
        self._pings = 0
        self.is_closed = False

    @property
    def counters(self) -> NodeLinkCounters:
        """The counters of all connections."""
        return self._counters

    @property
    def resumed_count(self) -> int:
        """How often a session continued on another connection."""
        return sum(channel.session.resumed_count for channel in self._channels.values())

    @property
    def lost_count(self) -> int:
        """How many sessions were given up."""
        return sum(channel.session.lost_count for channel in self._channels.values())

    @property
    def kept_size(self) -> int:
        """The bytes that wait for the peer, or for the rest of its payloads."""
        sessions = [channel.session for channel in self._channels.values()]
        return sum(session.kept_size + session.received_size for session in sessions)

    @property
    def is_gone(self) -> bool:
        """True if there is no connection, and nobody listens for one: the process of the peer has ended."""
        control = self._channels.get(_CONTROL)
        if control is None or control.redial.refused_count < CLUSTER_REFUSALS_GONE:
            return False
        return not any(channel.connection for channel in self._channels.values())

    @property
    def is_idle(self) -> bool:
        """True if there is no connection, and nothing to lose."""
        return not any(channel.connection or channel.session.is_used for channel in self._channels.values())

    # --- what users of the link call -----------------------------------------------------------------

    def send(self, purpose: LinkPurpose, kind: int, body: bytes) -> None:
        """Send a payload: it arrives in the order of the calls, or `session_lost` is told.

        Raises LinkFullError if a caller that does not ask `is_writable` has sent too much. A closed link
        sends nothing.
        """
        channel = self._channels[purpose]
        if self.is_closed:
            return
        if purpose not in _LASTING and not channel.session.is_used:
            # There was no connection that could have been heard.
            channel.heard_at = self._time.now
        channel.session.send(kind, body)
        if channel.connection is not None:
            channel.connection.output_ready()
        elif purpose not in _LASTING and not self.is_dialer:
            self._want(channel)

    def is_writable(self, purpose: LinkPurpose) -> bool:
        """True if the peer was heard of within a session's time, and does not lag behind."""
        channel = self._channels[purpose]
        return channel.session.is_writable and not self._is_lost(channel)

    def end_session(self, purpose: LinkPurpose, reason: str) -> None:
        """Give up a session, at both ends, because of what the peer has sent in it."""
        self._end(self._channels[purpose], LinkRefusal(RefusalCode.MALFORMED, reason))

    def session_number(self, purpose: LinkPurpose) -> int:
        """How many sessions of `purpose` were given up before the present one."""
        return self._channels[purpose].session.lost_count

    def close(self, reason: str) -> None:
        """Give up the link: its connections are closed, its sessions lost."""
        self.is_closed = True
        for channel in self._channels.values():
            channel.close(reason)
        for channel in self._channels.values():
            channel.session.end()

    def check(self, hello: Hello) -> None:
        """Raise LinkRefusal unless a peer with this HELLO is the one of this link."""
        peer = self.peer
        if self.is_closed or hello.purpose not in self._channels:
            raise LinkRefusal(RefusalCode.PURPOSE, f"no {hello.purpose.name} connection is expected")
        if peer.name and (hello.node_id, hello.name) != (peer.node_id, peer.name):
            raise LinkRefusal(
                RefusalCode.NODE,
                f"node {peer.node_id} '{peer.name}' is expected, and not {hello.node_id} '{hello.name}'",
            )
        known = self.hello
        if known is not None and known.name == hello.name and hello.incarnation < known.incarnation:
            raise LinkRefusal(
                RefusalCode.INCARNATION,
                f"start {hello.incarnation} of '{hello.name}' was followed by start {known.incarnation}",
            )

    # --- time ----------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what is due: pings, attempts to connect, silence, sessions that are over."""
        now = self._time.now
        if self._ping_at <= now:
            # All links of a node at the same times, for one turn and one wake of the process.
            self._ping_at = now - now % CLUSTER_PING_MS + CLUSTER_PING_MS
            self._ping()
        for channel in self._channels.values():
            if channel.connection is not None and now - channel.heard_at >= CLUSTER_CONNECTION_SILENT_MS:
                channel.close(f"nothing was heard for {CLUSTER_CONNECTION_SILENT_MS} ms")
        self._notice_loss()
        for channel in self._channels.values():
            self._dial(channel)
        self._probe()

    def deadline(self) -> int:
        """Return when `tick` is due, as a time of `ElapsedTime`: with the next ping at the latest."""
        due = self._ping_at
        for channel in self._channels.values():
            is_due = self.is_dialer and channel.is_needed and channel.connection is None
            if (is_due or self._is_in_doubt(channel)) and not channel.is_dialing:
                due = min(due, channel.redial.due)
        return due

    def dial_failed(self, purpose: LinkPurpose, reason: str, *, is_refused: bool = False) -> None:
        """An attempt to connect has ended without a proven connection.

        `is_refused` is True if the host has said that nobody listens there.
        """
        if purpose is LinkPurpose.INQUIRY:
            self.probed(is_refused=is_refused)
            return
        self.failure = reason
        self._attempted(self._channels[purpose], is_refused=is_refused)

    def probed(self, *, is_refused: bool) -> None:
        """The answer to `probe`: whether the host has said that nobody listens there."""
        # Only one that was there can be gone.
        is_gone = is_refused and self.hello is not None
        self._attempted(self._channels[LinkPurpose.CONTROL], is_refused=is_gone)

    def removed_by_peer(self) -> None:
        """Note that the peer has proved that it has removed this node from the cluster."""
        self.is_removed_by_peer = True

    # --- ConnectionOwner -----------------------------------------------------------------------------

    def attach(self, connection: LinkConnection) -> None:
        """Carry the session of its purpose on this connection from now on."""
        hello = connection.peer
        known, self.hello = self.hello, hello
        if known is not None and (known.name, known.incarnation) != (hello.name, hello.incarnation):
            self._restarted()
            if self.is_closed:
                connection.close("the link was closed")
                return
        channel = self._channels[connection.purpose]
        channel.close("it was replaced by another one")
        channel.connection = connection
        channel.is_dialing = channel.is_wanted = False
        channel.redial.connected(self._time.now)
        self.failure = ""
        self.is_removed_by_peer = False
        channel.session.connected()
        connection.output_ready()
        self._heard(channel)
        if connection.purpose is LinkPurpose.CONTROL:
            self._connect_others()

    def receive(self, connection: LinkConnection, frame: LinkFrame) -> None:
        """Handle a frame of a connection of this link. Raises LinkFrameError."""
        channel = self._channels[connection.purpose]
        self._heard(channel)
        if channel.connection is not connection:
            # The listener has closed the link.
            return
        try:
            self._handle(channel, frame)
        except PayloadError as error:
            self.end_session(connection.purpose, str(error))

    def has_output(self, connection: LinkConnection) -> bool:
        """True if the session of the connection has something to send."""
        return self._channels[connection.purpose].session.has_output

    def take_output(self, connection: LinkConnection, size_max: int) -> list[bytes]:
        """Return frames of the session of the connection, and count them."""
        session = self._channels[connection.purpose].session
        before = session.frame_count
        output = session.take_output(size_max)
        self._counters.frames_sent += session.frame_count - before
        return output

    def detach(self, connection: LinkConnection) -> None:
        """The connection has ended: another one is dialed, or expected."""
        channel = self._channels[connection.purpose]
        channel.connection = None
        channel.session.disconnected()
        channel.redial.lost(self._time.now)

    def fail(self, connection: LinkConnection, refusal: LinkRefusal) -> None:
        """Give up the session of the connection, and the connection with it."""
        self._end(self._channels[connection.purpose], refusal)

    # --- private -------------------------------------------------------------------------------------

    def _handle(self, channel: _Channel, frame: LinkFrame) -> None:
        """Handle a frame. Raises LinkFrameError, and PayloadError of what the listener cannot use."""
        if frame.kind in _OF_SESSIONS:
            channel.session.receive(frame)
            return
        match frame.kind:
            case LinkFrameKind.PING:
                if len(frame.body) > CLUSTER_DIGEST_SIZE_MAX:
                    raise LinkFrameError(f"a PING has {len(frame.body)} bytes")
                if channel.purpose is LinkPurpose.CONTROL:
                    self._dependencies.listener.pinged(self, frame.body)
            case LinkFrameKind.WANT:
                self._wanted(frame.body)
            case _:
                raise LinkFrameError(f"a {frame.kind.name} after the handshake")

    def _heard(self, channel: _Channel) -> None:
        # Whole frames count, and not bytes: behind a size that was changed on its way nothing is complete.
        self._heard_at = channel.heard_at = self._time.now
        if self.is_silent:
            self.is_silent = False
            self._dependencies.listener.heard(self)

    def _notice_loss(self) -> None:
        """Report a silence, and give up the sessions that are over."""
        if not self.is_silent and (self.is_gone or self._time.now - self._heard_at >= CLUSTER_SILENT_MS):
            self.is_silent = True
            self._dependencies.listener.silent(self)
        for channel in self._channels.values():
            if self._is_lost(channel) and channel.session.is_used:
                channel.close(f"nothing was heard for {CLUSTER_SESSION_MS} ms")
                channel.session.end()

    def _is_lost(self, channel: _Channel) -> bool:
        """True if nothing was heard for as long as a session outlasts its connection, or the peer is gone."""
        if self.is_gone:
            return True
        if channel.purpose is _BULK and not channel.session.is_used:
            channel = self._channels[_CONTROL]
        return self._time.now - channel.heard_at >= CLUSTER_SESSION_MS

    def _end(self, channel: _Channel, refusal: LinkRefusal) -> None:
        if channel.connection is not None:
            channel.connection.refuse(refusal)
        channel.session.end()

    def _restarted(self) -> None:
        """The peer has another incarnation: what the former one was sent may not have arrived."""
        for channel in self._channels.values():
            channel.close("the peer has restarted")
        for channel in self._channels.values():
            channel.session.end()

    def _ping(self) -> None:
        is_for_all = self._pings % CLUSTER_PINGS_PER_CONNECTION_PING == 0
        self._pings += 1
        for channel in self._channels.values():
            connection = channel.connection
            if connection is None:
                continue
            channel.session.tell_obeyed()
            if channel.purpose is LinkPurpose.CONTROL:
                digest = self._dependencies.digest()
                assert len(digest) <= CLUSTER_DIGEST_SIZE_MAX
                connection.send(LinkFrameKind.PING, digest)
            elif is_for_all:
                connection.send(LinkFrameKind.PING, b"")
            elif connection.has_output:
                connection.output_ready()

    def _dial(self, channel: _Channel) -> None:
        if not self.is_dialer or not channel.is_needed or channel.connection is not None:
            return
        if not channel.is_dialing and channel.redial.due <= self._time.now and not self.is_closed:
            channel.is_dialing = True
            self._dependencies.dial(self, channel.purpose)

    def _connect_others(self) -> None:
        """Connect what is not connected, since the peer is there."""
        for channel in self._channels.values():
            if channel.connection is not None:
                continue
            if self.is_dialer:
                channel.redial.due = self._time.now
            elif channel.purpose not in _LASTING and channel.session.is_used:
                self._want(channel)
        if self.is_dialer:
            self._dependencies.schedule()

    def _is_in_doubt(self, channel: _Channel) -> bool:
        """True if the peer, which should dial, may have ended, or have removed this node."""
        is_lost = channel.purpose is LinkPurpose.CONTROL and channel.connection is None
        return is_lost and not self.is_dialer and not self.is_gone

    def _probe(self) -> None:
        """Find out whether a peer that should dial has ended, or has removed this node."""
        control = self._channels.get(LinkPurpose.CONTROL)
        if control is None or not self._is_in_doubt(control) or self.is_closed:
            return
        if not control.is_dialing and control.redial.due <= self._time.now:
            control.is_dialing = True
            self._dependencies.probe(self)

    def _attempted(self, channel: _Channel, *, is_refused: bool) -> None:
        """An attempt, or a probe, has ended without a connection."""
        channel.is_dialing = False
        channel.redial.failed(self._time.now, is_refused=is_refused)
        if self.is_gone and not self.is_closed:
            self._notice_loss()

    def _want(self, channel: _Channel) -> None:
        """Ask the peer, which dials, for a connection; again when the control connection is a new one."""
        control = self._channels[LinkPurpose.CONTROL].connection
        if control is not None:
            control.send(LinkFrameKind.WANT, bytes((channel.purpose,)))

    def _wanted(self, body: bytes) -> None:
        wanted = self._channels.get(LinkPurpose.BULK)
        if not self.is_dialer or wanted is None or body != bytes((LinkPurpose.BULK,)):
            raise LinkFrameError("a WANT of a connection that is not dialed on demand")
        wanted.is_wanted = True
