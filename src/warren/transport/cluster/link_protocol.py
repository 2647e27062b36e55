"""The asyncio protocol that connects one socket to its connection of a link between nodes.

It contains no rule of links: what was read is passed on, the output is written once in each turn, and the
socket is closed when the connection is finished.
"""

import asyncio
import logging
from typing import Protocol, cast

from warren.cluster.link_connection import LinkConnection, LinkSocket
from warren.limits import LINGER_MS
from warren.limits_cluster import CLUSTER_OUTPUT_SIZE
from warren.transport.protocol import LoopContext

logger = logging.getLogger("warren.cluster")


class LinkRegistry(Protocol):
    """Port: makes the connection of a socket, and is told what becomes of it."""

    def connect(self, protocol: "LinkProtocol", transport: asyncio.Transport) -> LinkConnection:
        """Create the connection of a connected socket."""

    def proven(self, protocol: "LinkProtocol") -> None:
        """Called when the peer has proved itself."""

    def ended(self, protocol: "LinkProtocol", connection: LinkConnection) -> None:
        """Called when the socket was closed."""


class LinkProtocol(LinkSocket, asyncio.BufferedProtocol):
    """The asyncio protocol of one socket between two nodes."""

    def __init__(self, registry: LinkRegistry, loop_context: LoopContext, buffer: memoryview) -> None:
        """`buffer` is that of all reads; its content is consumed before the next one."""
        self.slot = 0
        self._registry = registry
        self._loop_context = loop_context
        self._buffer = buffer
        self._connection: LinkConnection | None = None
        self._transport: asyncio.Transport | None = None
        self._is_marked = False
        self._is_paused = False
        self._is_closing = False
        self._is_proven = False

    # --- what the loop calls -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is connected and, with TLS, has shaken hands."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=CLUSTER_OUTPUT_SIZE)
        self._connection = self._registry.connect(self, self._transport)
        self._schedule(self._connection)
        self.output_ready()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer of the next read."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """`nbytes` bytes were read into the buffer."""
        connection, transport = self._connection, self._transport
        if connection is None or transport is None or self._is_closing:
            return
        try:
            connection.receive(self._buffer[:nbytes], self._loop_context.turn.begin())
        except Exception:
            self._crash(connection)
            return
        if connection.is_proven and not self._is_proven:
            self._is_proven = True
            self._registry.proven(self)
        if nbytes == len(self._buffer) and not transport.is_closing():
            # More data is likely: other sockets have their turn first.
            transport.pause_reading()
            self._loop_context.flusher.mark_busy(self)

    def process_more(self) -> None:
        """Read again, in another turn."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        """The peer sends no more: the socket is closed."""
        return False

    def pause_writing(self) -> None:
        """The peer reads slowly: output stays in the connection, where it is bounded."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self._is_paused = False
        self.output_ready()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket was closed, for whatever reason."""
        connection, self._connection = self._connection, None
        self._transport = None
        self._loop_context.deadlines.forget(self)
        if connection is not None:
            connection.lost()
            self._registry.ended(self, connection)

    # --- what the connection and its timers call -----------------------------------------------

    def output_ready(self) -> None:
        """Schedule a write, because the connection has output or is finished."""
        if not self._is_marked:
            self._is_marked = True
            self._loop_context.flusher.mark(self)

    def flush(self) -> None:
        """Write a turn's output of the connection; close the socket of a finished one."""
        self._is_marked = False
        connection, transport = self._connection, self._transport
        if connection is None or transport is None or self._is_closing:
            return
        if not self._is_paused or connection.is_finished:
            try:
                transport.writelines(connection.take_output())
            except Exception:
                self._crash(connection)
                return
        if connection.is_finished:
            self._is_closing = True
            transport.close()
            # A peer that reads nothing would keep the last output, and the socket.
            deadlines = self._loop_context.deadlines
            deadlines.schedule(self, self._loop_context.turn.now() + LINGER_MS)
        elif connection.has_output and not self._is_paused:
            self.output_ready()

    def expire(self, now: int) -> None:
        """Handle the deadline of a handshake, or of a closed socket."""
        connection = self._connection
        if connection is None:
            return
        if self._is_closing:
            self.abort()
            return
        connection.expire(now)
        self._schedule(connection)

    def abort(self) -> None:
        """Drop the peer at once."""
        if self._transport is not None:
            self._transport.abort()

    def abandon(self) -> None:
        """Drop the peer of a socket whose connecting was cancelled or has failed.

        uvloop closes the socket then, and does not say so to a protocol that is connected already.
        """
        self.abort()
        self.connection_lost(None)

    # --- private -------------------------------------------------------------------------------

    def _schedule(self, connection: LinkConnection) -> None:
        due = connection.deadline()
        if due is not None:
            self._loop_context.deadlines.schedule(self, due)

    def _crash(self, connection: LinkConnection) -> None:
        """End the session of the connection after an unexpected exception."""
        logger.exception("a connection to another node is closed because of an internal error")
        connection.fail()
        self.output_ready()
