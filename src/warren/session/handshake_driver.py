"""Drives the handshake of one connection: protocol header, frames, and the wait for authentication.

Authentication may take long. Data that arrives in the meantime is processed afterwards, and the time spent
does not count against the client's deadline.
"""

from warren.errors import AmqpError
from warren.session.any_connection import AnyConnection
from warren.session.handshake import PROTOCOL_HEADER, PROTOCOL_HEADER_SIZE, Handshake, HandshakePhase
from warren.session.pending_command import PendingCommand
from warren.session.protocol_errors import unexpected_frame_error
from warren.session.server import Server
from warren.wire.frames import METHOD, FrameReader
from warren.wire.method import Method
from warren.wire.methods import ConnectionTuneOk, decode_method


class HandshakeDriver:
    """Processes the input of one connection before it is open."""

    __slots__ = (
        "_connection",
        "_log",
        "_outbox",
        "_pending_command",
        "handshake",
        "header",
        "tuned_at",
    )

    def __init__(
        self,
        handshake: Handshake,
        connection: AnyConnection,
        server: Server,
        pending_command: PendingCommand,
    ) -> None:
        """`pending_command` runs the methods of the handshake, of which authentication may wait."""
        self.handshake = handshake
        self._connection = connection
        self._outbox = connection.outbox
        self._pending_command = pending_command
        self._log = server.connection_log
        # The bytes of the protocol header received so far.
        self.header = b""
        # When tune-ok was received (ms): heartbeats count from then.
        self.tuned_at = 0

    @property
    def is_refused(self) -> bool:
        """True if the client was refused, and is dropped after a delay."""
        return self.handshake.phase is HandshakePhase.REFUSED

    def deadline(self) -> int | None:
        """The time (ms) at which the client is dropped silently; None while the broker authenticates it."""
        return None if self._pending_command.is_waiting else self.handshake.deadline()

    def timed_out(self) -> None:
        """Log that the deadline has passed, unless the client was refused before."""
        if not self.is_refused:
            is_first = self.handshake.phase is HandshakePhase.AWAIT_HEADER
            awaited = "its protocol header" if is_first else "its next frame"
            self._log.handshake_timed_out(self._connection, awaited)

    def disconnected(self) -> None:
        """Log that the client has closed the socket, unless it was refused before."""
        if not self.is_refused:
            if self.header:
                self._log.client_disconnected(self._connection)
            else:
                self._log.disconnected_silently(self._connection)

    def refuse(self, error: AmqpError, now: int) -> bool:
        """End the handshake with `error`; True if the client must be sent connection.close."""
        self._log.handshake_refused(self._connection, self.handshake, error)
        self._pending_command.cancel()
        return self.handshake.refuse(error, now)

    def receive_header(self, data: bytes) -> bytes | None:
        """Consume the protocol header; return the data after it, or None if the client is refused."""
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
        """Process the frame under the cursor, no heartbeat; an AmqpError must be passed to `refuse`."""
        if reader.channel or reader.kind != METHOD:
            raise unexpected_frame_error(reader.kind, reader.payload())
        self._pending_command.start(self._negotiate(decode_method(reader.payload()), reader), now)
        self._extend_deadline(now)

    def process_more(self, now: int) -> None:
        """Continue the current method; an AmqpError must be passed to `refuse`."""
        self._pending_command.proceed()
        self._extend_deadline(now)

    def _extend_deadline(self, now: int) -> None:
        """Do not count the time that the broker took against the client."""
        if not self._pending_command.is_waiting:
            self.handshake.extend_deadline(now - self._pending_command.started_at)

    async def _negotiate(self, method: Method, reader: FrameReader) -> None:
        answer = await self.handshake.handle(method)
        if answer:
            self._outbox.payload(0, answer)
        if isinstance(method, ConnectionTuneOk):
            self.tuned_at = self._pending_command.started_at
        reader.frame_size_max = self.handshake.frame_size_max
