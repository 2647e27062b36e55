"""The way in of one connection: the protocol header, the handshake, and the wait for an answer to it.

Whether a password is right may take long to say. Nothing that came meanwhile is looked at before, and the
time is not the client's.
"""

from collections.abc import Callable, Coroutine
from typing import Protocol

from warren.errors import AmqpError
from warren.session.events.connection_facts import ConnectionFacts
from warren.session.handshake import PROTOCOL_HEADER, PROTOCOL_HEADER_SIZE, Handshake, HandshakePhase
from warren.session.outbox import Outbox
from warren.session.protocol_errors import unexpected_frame_error
from warren.session.server import Server
from warren.vhost.coroutine_driver import Pending, step
from warren.wire.frames import METHOD, FrameReader
from warren.wire.method import Method
from warren.wire.methods import ConnectionTuneOk, decode_method


class HandshakeConnection(ConnectionFacts, Protocol):
    """The connection whose handshake is driven."""

    @property
    def outbox(self) -> Outbox:
        """Where the answers go."""


class HandshakeDriver:
    """What a connection does before it is open."""

    __slots__ = (
        "_connection",
        "_later",
        "_log",
        "_negotiation",
        "_outbox",
        "_resume",
        "_waiting_since",
        "handshake",
        "header",
        "tuned_at",
    )

    def __init__(
        self,
        handshake: Handshake,
        connection: HandshakeConnection,
        server: Server,
        resume: Callable[[int], None],
    ) -> None:
        """`resume` is called in a turn of its own, with the time, when what was waited for is there."""
        self.handshake = handshake
        self._connection = connection
        self._outbox = connection.outbox
        self._log = server.connection_log
        self._later = server.later
        self._resume = resume
        # What came of the protocol header.
        self.header = b""
        self._negotiation: Coroutine[Pending, None, None] | None = None
        self._waiting_since = 0
        # When its tune-ok came (ms): from here on heartbeats count.
        self.tuned_at = 0

    @property
    def is_waiting(self) -> bool:
        """An answer is being looked for: no other frame may be obeyed."""
        return self._negotiation is not None

    @property
    def is_refused(self) -> bool:
        """The client was refused and waits for the delayed answer."""
        return self.handshake.phase is HandshakePhase.REFUSED

    def deadline(self) -> int | None:
        """When the peer is dropped without a word unless it gets further."""
        return None if self.is_waiting else self.handshake.deadline()

    def expire(self, now: int) -> bool:
        """Whether the client has not come further in time: its socket is to be closed without a word."""
        due = self.deadline()
        if due is None or now < due:
            return False
        if not self.is_refused:
            is_first = self.handshake.phase is HandshakePhase.AWAIT_HEADER
            awaited = "its protocol header" if is_first else "its next frame"
            self._log.handshake_timed_out(self._connection, awaited)
        return True

    def disconnected(self) -> None:
        """Log that the client has closed the socket, unless it was refused before."""
        if not self.is_refused:
            if self.header:
                self._log.client_disconnected(self._connection)
            else:
                self._log.disconnected_silently(self._connection)

    def refuse(self, error: AmqpError, now: int) -> bool:
        """End the handshake with `error`; whether the client is sent connection.close."""
        self._log.handshake_refused(self._connection, self.handshake, error)
        self._negotiation = None
        return self.handshake.refuse(error, now)

    def receive_header(self, data: bytes) -> bytes | None:
        """Take the protocol header; what lies behind it, or None when the peer is sent away."""
        if not self.header:
            self._log.accepted(self._connection)
        needed = PROTOCOL_HEADER_SIZE - len(self.header)
        if not needed:
            return data
        self.header += data[:needed]
        if len(self.header) < PROTOCOL_HEADER_SIZE:
            return b""
        answer = self.handshake.receive_header(self.header)
        if not answer:
            self._outbox.raw(PROTOCOL_HEADER)
            self._log.wrong_protocol(self._connection, self.header)
            return None
        self._outbox.payload(0, answer)
        return data[needed:]

    def handle(self, reader: FrameReader, now: int) -> None:
        """Obey the frame under the cursor, which is no heartbeat; an AmqpError goes to `refuse`."""
        if reader.channel or reader.kind != METHOD:
            raise unexpected_frame_error(reader.kind, reader.payload())
        self._waiting_since = now
        self._negotiation = self._negotiate(decode_method(reader.payload()), reader)
        self.process_more(now)

    def process_more(self, now: int) -> None:
        """Go on with what is there now; an AmqpError goes to `refuse`."""
        negotiation, self._negotiation = self._negotiation, None
        assert negotiation is not None
        pending = step(negotiation)
        if pending is None:
            self.handshake.extend_deadline(now - self._waiting_since)
        else:
            self._negotiation = negotiation
            pending.add_done_callback(lambda _: self._later(self._resume))

    async def _negotiate(self, method: Method, reader: FrameReader) -> None:
        answer = await self.handshake.handle(method)
        if answer:
            self._outbox.payload(0, answer)
        if isinstance(method, ConnectionTuneOk):
            self.tuned_at = self._waiting_since
        reader.frame_size_max = self.handshake.frame_size_max
