"""connection.close and connection.close-ok, started by either side (0-9-1 §1.4.2.5 and §1.4.2.6)."""

from warren.errors import AmqpError, FrameError
from warren.framing.outbox import Outbox
from warren.session.connection_deadlines import ConnectionDeadlines
from warren.session.protocol_errors import close_text
from warren.wire import methods
from warren.wire.frames import METHOD, FrameReader
from warren.wire.method import index_of

CLOSE_OK = methods.ConnectionCloseOk().encode()
# After a malformed frame the frame boundaries are lost: the input is only searched for this frame.
_CLOSE_OK_FRAME = b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x33\xce"


class ClosingHandshake:
    """The closing handshake of one connection, with its deadline."""

    __slots__ = ("_deadlines", "_outbox", "ignores_input", "is_close_ok_pending")

    def __init__(self, outbox: Outbox, deadlines: ConnectionDeadlines) -> None:
        self._outbox = outbox
        self._deadlines = deadlines
        # True after a malformed frame, or when the client is not sent a close: no more frames are processed.
        self.ignores_input = False
        # True while close-ok waits for the exclusive queues to be deleted.
        self.is_close_ok_pending = False

    def begin(self, error: AmqpError, now: int) -> bytes:
        """Return the connection.close for `error`; after a malformed frame only close-ok is awaited."""
        index = error.method_index or 0
        close = methods.ConnectionClose(error.code, close_text(error), index >> 16, index & 0xFFFF)
        self.ignores_input = isinstance(error, FrameError)
        self._deadlines.begin_closing(now, is_broken=self.ignores_input)
        return close.encode()

    def agree(self, now: int) -> None:
        """Start the timeout in which the client, which has sent connection.close, must close the socket."""
        self._deadlines.begin_closing(now, is_broken=False)

    def is_answered_by(self, data: bytes) -> bool:
        """True if `data`, whose frame boundaries are unknown, contains connection.close-ok."""
        return _CLOSE_OK_FRAME in data

    def handle(self, reader: FrameReader) -> bool:
        """Process a frame received after the close; True if it is close-ok, which ends the connection."""
        if reader.kind != METHOD or reader.channel:
            return False
        index = index_of(reader.payload())
        if index == methods.ConnectionClose.index and not self.is_close_ok_pending:
            # The client may repeat connection.close, as with RabbitMQ.
            self._outbox.payload(0, CLOSE_OK)
        return index == methods.ConnectionCloseOk.index
