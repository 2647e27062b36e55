"""The asyncio protocol that connects one socket to its AMQP connection.

It contains no AMQP logic. Received bytes are passed to `connection.receive`; the output of the connection is
written once per turn of the loop; after each of these, its requests to the socket (pause reading, schedule a
deadline, close) are carried out.
"""

import asyncio
import logging
from typing import Protocol, cast

from warren import limits, limits_relay
from warren.framing.driven_connection import DrivenConnection
from warren.framing.output_listener import OutputListener
from warren.model.turn import Turn
from warren.runtime.timers import Deadlines
from warren.session.peer import Peer
from warren.transport.flusher import Flusher
from warren.transport.proxy_protocol import ProxiedEnds
from warren.transport.sockets import unacknowledged

logger = logging.getLogger("warren.connection")

_READ_SIZE = limits.READ_SIZE_MAX
_LINK_READ_SIZE = limits_relay.LINK_READ_SIZE_SHARED
_WORK = limits.WORK_PER_TURN_MAX
_WORK_ALONE = limits.WORK_SOLE_CLIENT_MAX
_ALONE_AFTER_MS = limits.SOLE_CLIENT_AFTER_MS
# The number of checks within the send timeout of a client with pending output.
_STALL_CHECKS = 8
# A heartbeat is a frame without a payload (0-9-1 §4.2.7).
_HEARTBEAT_SIZE = 8


class ConnectionRegistry(Protocol):
    """Port: keeps the list of connections; implemented by the listener and by outgoing connections."""

    def admit(self, protocol: "AmqpProtocol", transport: asyncio.Transport) -> DrivenConnection | None:
        """Create a connection for this socket; None if there are too many."""

    def opened(self, protocol: "AmqpProtocol") -> None:
        """Called when the handshake of a client is complete."""

    def connection_closed(self, protocol: "AmqpProtocol") -> None:
        """Called when the socket was closed."""


class LoopContext:
    """The objects that all protocols of one event loop share."""

    __slots__ = (
        "_alone_since",
        "_large",
        "_last",
        "_small",
        "_smallest",
        "buffer",
        "deadlines",
        "flusher",
        "octets",
        "turn",
        "work",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, turn: Turn) -> None:
        self.turn = turn
        self.deadlines = Deadlines(loop, turn)
        self.flusher = Flusher(loop)
        # The buffer of all reads; its content is consumed before the next read.
        self.octets = bytearray(limits.READ_SIZE_ALONE_MAX)
        self._large = memoryview(self.octets)
        self._small = self._large[:_READ_SIZE]
        self._smallest = self._large[:_LINK_READ_SIZE]
        # The part of it for the last read, and the work that its data may use at once.
        self.buffer = self._small
        self.work = _WORK
        self._last: AmqpProtocol | None = None
        self._alone_since = 0

    def begin_read(self, reader: "AmqpProtocol") -> memoryview:
        """The buffer for the next read of `reader`; small unless no other client has sent for long."""
        now = self.turn.begin()
        if reader is not self._last:
            self._last = reader
            self._alone_since = now
            self.buffer = self._small
            self.work = _WORK
        elif now - self._alone_since >= _ALONE_AFTER_MS:
            self.buffer = self._large
            self.work = _WORK_ALONE
        if reader.is_link:
            self.buffer = self._smallest if self.turn.is_shared() else self._small
        return self.buffer

    def note_read(self, reader: "AmqpProtocol", size: int) -> None:
        """Note that `size` bytes were read, unless they are a heartbeat or those of a link."""
        if size > _HEARTBEAT_SIZE and not reader.is_link:
            self.turn.note_client()


class AmqpProtocol(OutputListener, asyncio.BufferedProtocol):
    """The asyncio protocol of one client's socket."""

    __slots__ = (
        "_client",
        "_handed",
        "_is_busy",
        "_is_closing",
        "_is_marked",
        "_is_paused",
        "_is_reading",
        "_loop_context",
        "_registry",
        "_seen",
        "_send_timeout_ms",
        "_taken",
        "_taken_at",
        "_transport",
        "_unsent",
        "ends",
        "is_half_open",
        "is_link",
        "peer",
        "slot",
    )

    def __init__(
        self,
        registry: ConnectionRegistry,
        loop_context: LoopContext,
        ends: ProxiedEnds | None = None,
        *,
        send_timeout_ms: int | None = None,
    ) -> None:
        """A client that accepts no output is dropped after `send_timeout_ms`."""
        self.slot = 0
        self._send_timeout_ms = send_timeout_ms
        # While output is pending: when the client last accepted some; how much it has accepted since output
        # became pending, less what was pending at first; and how much was written to the socket since.
        self._taken_at: int | None = None
        self._taken = 0
        self._handed = 0
        self._registry = registry
        self._loop_context = loop_context
        self._client: DrivenConnection | None = None
        self._transport: asyncio.Transport | None = None
        self._is_marked = False
        self._is_paused = False
        self._is_reading = True
        # The connection's count of changes at the last update of the socket.
        self._seen = -1
        self._is_closing = False
        # True while received data is processed turn by turn, and nothing is read.
        self._is_busy = False
        self._unsent = 0
        self.is_half_open = True
        # True if it is the connection of a shovel or federation link, at either end.
        self.is_link = False
        self.ends = ends
        self.peer: Peer | None = None

    # --- what the loop calls -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is connected and, with TLS, has shaken hands."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=limits.OUTBOX_SIZE_MAX)
        self._client = self._registry.admit(self, self._transport)
        if self._client is None:
            self._transport.abort()
            return
        self._update_socket(self._client)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer of the next read; `sizehint` is ignored, as it is too much for one turn."""
        return self._loop_context.begin_read(self)

    def buffer_updated(self, nbytes: int) -> None:
        """`nbytes` bytes were read into the buffer."""
        client, loop_context = self._client, self._loop_context
        if client is None or self._is_closing:
            return
        octets = loop_context.octets
        loop_context.note_read(self, nbytes)
        try:
            client.receive(bytes(octets[:nbytes]), loop_context.work)
        except Exception:
            self._crash()
            return
        loop_context.flusher.flush_full()
        # After a full buffer more data is likely, and libuv would read one socket 32 times before the next.
        if (client.has_more or nbytes == len(loop_context.buffer)) and not self._is_busy:
            self._be_busy()
        if client.changes != self._seen:
            self._update_socket(client)

    def process_more(self) -> None:
        """Process another turn's work of what was read, while reading is paused."""
        self._is_busy = False
        client, transport = self._client, self._transport
        if client is None or transport is None:
            return
        if client.has_more:
            try:
                client.process_more(self._loop_context.work)
            except Exception:
                self._crash()
                return
            self._loop_context.flusher.flush_full()
            if client.changes != self._seen:
                self._update_socket(client)
        if client.has_more:
            self._be_busy()
        elif self._is_reading:
            transport.resume_reading()

    def eof_received(self) -> bool:
        """The client sends no more: pending output is written, then the socket is closed."""
        self.flush()
        return False

    def pause_writing(self) -> None:
        """The client reads too slowly: output stays in the connection, where it is bounded."""
        self._is_paused = True
        if self._client is not None:
            self._client.pause_output()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._is_paused = False
        if self._client is not None:
            self._client.resume_output()
            self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket was closed, for whatever reason."""
        client, self._client = self._client, None
        self._transport = None
        self._loop_context.deadlines.forget(self)
        self._registry.connection_closed(self)
        if client is not None:
            client.lost()

    # --- what the connection and its timers call -----------------------------------------------

    def output_ready(self) -> None:
        """Schedule a write, because the connection has output."""
        if not self._is_marked:
            self._is_marked = True
            self._loop_context.flusher.mark(self)

    def output_full(self) -> None:
        """Schedule an early write, because the outbox of the connection is full."""
        self._loop_context.flusher.mark_full(self)

    def flush(self) -> None:
        """Write the pending output of the connection."""
        self._is_marked = False
        client, transport = self._client, self._transport
        if client is None or transport is None or self._is_closing:
            return
        if self._is_paused:
            # A connection that pauses reading until its output is written must be able to write.
            if client.changes != self._seen:
                self._update_socket(client)
            return
        try:
            chunks = client.take_output()
        except Exception:
            self._crash()
            return
        if chunks:
            if len(chunks) == 1:
                transport.write(chunks[0])
            else:
                transport.writelines(chunks)
            if self._taken_at is not None:
                self._handed += sum(map(len, chunks))
            elif transport.get_write_buffer_size():
                self._watch_for_stall(transport)
            if not self._is_paused:
                client.output_written()
        if client.changes != self._seen:
            self._update_socket(client)

    def expire(self, now: int) -> None:
        """Handle a deadline of the connection."""
        client, transport = self._client, self._transport
        if client is None or transport is None:
            return
        if self._is_closing:
            self._linger(transport)
            return
        if self._taken_at is not None and self._is_stalled(transport, self._taken_at, now):
            name = self.peer.name if self.peer is not None else "?"
            logger.warning(
                "dropping connection %s: the client read nothing for %s ms", name, self._send_timeout_ms
            )
            transport.abort()
            return
        due = client.deadline()
        if due is not None and due <= now:
            try:
                client.expire()
            except Exception:
                self._crash()
                return
        self._update_socket(client)

    def abort(self) -> None:
        """Drop the client at once."""
        if self._transport is not None:
            self._transport.abort()

    # --- private -------------------------------------------------------------------------------

    def _update_socket(self, client: DrivenConnection) -> None:
        """Apply the state of the connection to the socket: pause reading, schedule a deadline, close."""
        self._seen = client.changes
        if client.is_finished:
            self._finish()
            return
        if self.is_half_open and client.is_open:
            self.is_half_open = False
            self.is_link = client.is_link
            self._registry.opened(self)
        due = client.deadline()
        if due is not None:
            self._loop_context.deadlines.schedule(self, due)
        if self._taken_at is not None:
            self._check_stall_later()
        if client.has_more and not self._is_busy:
            self._be_busy()
        if client.is_reading_paused == self._is_reading:
            self._read(not self._is_reading)

    def _watch_for_stall(self, transport: asyncio.Transport) -> None:
        """After an incomplete write, check from now on that the client accepts output."""
        if self._send_timeout_ms:
            self._taken_at = self._loop_context.turn.now()
            self._handed = 0
            self._taken = -transport.get_write_buffer_size() - unacknowledged(transport)
            self._check_stall_later()

    def _check_stall_later(self) -> None:
        """Check a few times within the timeout whether the client accepts output."""
        assert self._send_timeout_ms is not None
        assert self._taken_at is not None
        look = self._loop_context.turn.now() + max(1, self._send_timeout_ms // _STALL_CHECKS)
        self._loop_context.deadlines.schedule(self, min(look, self._taken_at + self._send_timeout_ms))

    def _is_stalled(self, transport: asyncio.Transport, taken_at: int, now: int) -> bool:
        """True if the client has accepted no byte of output for too long."""
        waiting = transport.get_write_buffer_size()
        if not waiting:
            self._taken_at = None
            return False
        # The kernel accepts more only after a third of its buffer is free, which may be megabytes.
        taken = self._handed - waiting - unacknowledged(transport)
        if taken != self._taken:
            self._taken, self._taken_at = taken, now
            return False
        return self._send_timeout_ms is not None and now - taken_at >= self._send_timeout_ms

    def _be_busy(self) -> None:
        """Pause reading until everything that was read has been processed."""
        self._is_busy = True
        if self._transport is not None:
            self._transport.pause_reading()
        self._loop_context.flusher.mark_busy(self)

    def _read(self, is_reading: bool) -> None:
        transport = self._transport
        if transport is None:
            return
        self._is_reading = is_reading
        if is_reading:
            if not self._is_busy:
                transport.resume_reading()
        else:
            transport.pause_reading()

    def _finish(self) -> None:
        """Write the last output, shut down the sending side, and wait shortly for the client to close.

        Closing at once with bytes of the client unread would make the kernel send a reset, which can
        overtake the close frame (RFC 1122 §4.2.2.13).
        """
        client, transport = self._client, self._transport
        if self._is_closing or client is None or transport is None:
            return
        self._is_closing = True
        chunks = client.take_output()
        if chunks:
            transport.writelines(chunks)
        self._loop_context.deadlines.forget(self)
        self._unsent = transport.get_write_buffer_size() + 1
        self._linger(transport)
        if not self._is_reading:
            self._read(True)
        if transport.can_write_eof():
            transport.write_eof()
        else:
            transport.close()

    def _linger(self, transport: asyncio.Transport) -> None:
        """Wait while the client still reads pending output, then drop it."""
        unsent = transport.get_write_buffer_size()
        if unsent >= self._unsent:
            transport.abort()
            return
        self._unsent = unsent
        self._loop_context.deadlines.schedule(self, self._loop_context.turn.now() + limits.LINGER_MS)

    def _crash(self) -> None:
        """Close this connection after an unexpected exception, without affecting others."""
        name = self.peer.name if self.peer is not None else "?"
        logger.exception("unexpected exception in connection %s", name)
        self.abort()
