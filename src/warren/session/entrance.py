"""The way in of one connection: the protocol header, the handshake, and the wait for an answer to it.

Whether a password is right may take long to say. Nothing that came meanwhile is looked at before, and the
time is not the client's.
"""

from collections.abc import Callable, Coroutine

from warren.errors import AmqpError
from warren.session.closing import misplaced
from warren.session.handshake import PROTOCOL_HEADER, PROTOCOL_HEADER_SIZE, Handshake
from warren.session.outbox import Outbox
from warren.vhost.errand import Later, Pending, step
from warren.wire.frames import METHOD, FrameReader
from warren.wire.method import Method
from warren.wire.methods import ConnectionTuneOk, decode_method


class Entrance:
    """What a connection does before it is open."""

    __slots__ = (
        "_asked_at",
        "_later",
        "_negotiation",
        "_outbox",
        "_resume",
        "greeting",
        "handshake",
        "tuned_at",
    )

    def __init__(
        self, handshake: Handshake, outbox: Outbox, later: Later, resume: Callable[[int], None]
    ) -> None:
        """`resume` is called in a turn of its own, with the time, when what was waited for is there."""
        self.handshake = handshake
        self._outbox = outbox
        self._later = later
        self._resume = resume
        # What came of the protocol header.
        self.greeting = b""
        self._negotiation: Coroutine[Pending, None, None] | None = None
        self._asked_at = 0
        # When its tune-ok came (ms): from here on heartbeats count.
        self.tuned_at = 0

    @property
    def is_waiting(self) -> bool:
        """An answer is being looked for: no other frame may be obeyed."""
        return self._negotiation is not None

    def deadline(self) -> int | None:
        """When the peer is dropped without a word unless it gets further."""
        return None if self.is_waiting else self.handshake.deadline()

    def refuse(self, error: AmqpError, now: int) -> bool:
        """End the handshake; whether the peer is told `error`."""
        self._negotiation = None
        return self.handshake.refuse(error, now)

    def greet(self, data: bytes) -> bytes | None:
        """Take the protocol header; what lies behind it, or None when the peer is sent away."""
        needed = PROTOCOL_HEADER_SIZE - len(self.greeting)
        if not needed:
            return data
        self.greeting += data[:needed]
        if len(self.greeting) < PROTOCOL_HEADER_SIZE:
            return b""
        answer = self.handshake.receive_header(self.greeting)
        if not answer:
            self._outbox.raw(PROTOCOL_HEADER)
            return None
        self._outbox.payload(0, answer)
        return data[needed:]

    def obey(self, reader: FrameReader, now: int) -> None:
        """Obey the frame under the cursor, which is no heartbeat; an AmqpError goes to `refuse`."""
        if reader.channel or reader.kind != METHOD:
            raise misplaced(reader.kind, reader.payload())
        self._asked_at = now
        self._negotiation = self._negotiate(decode_method(reader.payload()), reader)
        self.go_on(now)

    def go_on(self, now: int) -> None:
        """Go on with what is there now; an AmqpError goes to `refuse`."""
        negotiation, self._negotiation = self._negotiation, None
        assert negotiation is not None
        pending = step(negotiation)
        if pending is None:
            self.handshake.excuse(now - self._asked_at)
        else:
            self._negotiation = negotiation
            pending.add_done_callback(lambda _: self._later(self._resume))

    async def _negotiate(self, method: Method, reader: FrameReader) -> None:
        answer = await self.handshake.handle(method)
        if answer:
            self._outbox.payload(0, answer)
        if isinstance(method, ConnectionTuneOk):
            self.tuned_at = self._asked_at
        reader.frame_size_max = self.handshake.frame_size_max
