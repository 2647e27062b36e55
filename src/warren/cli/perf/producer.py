"""A connection that publishes as fast as it may."""

from enum import Enum, auto

from warren.cli.perf.link import NOT_NOW
from warren.cli.perf.publication import Publication
from warren.client.confirms import ConfirmCounter, UnexpectedBytes
from warren.client.link import BrokerRefused, Link, reason

RECEIVE_BYTES = 65_536
WRITES_PER_TURN = 16  # of a producer that writes few messages at once


class Outcome(Enum):
    """What a producer needs before it can go on."""

    READY = auto()  # nothing: another turn
    BLOCKED = auto()  # a socket that takes more
    AWAITING = auto()  # a confirm, or the time of its next message
    STARVED = auto()  # consumers that catch up


class Producer:
    """Sends pieces of a publication and counts what the broker confirms."""

    def __init__(self, link: Link, publication: Publication, *, window: int, messages_per_write: int) -> None:
        self.link = link
        self.nacked = 0
        self._publication = publication
        self._window = window
        self._messages_per_write = messages_per_write
        self._writes_per_turn = WRITES_PER_TURN if messages_per_write else 1
        self._confirms = ConfirmCounter()
        self._socket = link.socket
        self._pending: memoryview | bytes = b""
        self._taken = 0  # publishes that went, or are in `_pending`

    @property
    def published(self) -> int:
        """How many publishes have been written whole."""
        return self._taken - -(-len(self._pending) // self._publication.length)

    @property
    def settled(self) -> int:
        """How many publishes the broker has confirmed or refused."""
        return self._confirms.settled

    def pump(self, room: int, now_ns: int) -> Outcome:
        """Write what the window and `room` deliveries allow, and the socket takes."""
        for _ in range(self._writes_per_turn):
            if not self._pending:
                taken = self._taken
                outcome = self._take(room, now_ns)
                if outcome is not Outcome.READY:
                    return outcome
                room -= self._taken - taken
            if not self.flush():
                return Outcome.BLOCKED
        if self._window and self._taken - self._confirms.settled >= self._window:
            return Outcome.AWAITING
        return Outcome.READY

    def flush(self) -> bool:
        """Write what is pending; False if the socket does not take all of it."""
        try:
            sent = self._socket.send(self._pending)
        except NOT_NOW:
            return False
        self._pending = self._pending[sent:]
        return not self._pending

    def receive(self, now_ns: int) -> None:
        """Read confirms."""
        try:
            octets = self._socket.recv(RECEIVE_BYTES)
        except NOT_NOW:
            return
        if not octets:
            raise BrokerRefused("the broker closed a publishing connection")
        try:
            self.on_settled(self._confirms.feed(octets), now_ns)
        except UnexpectedBytes as unexpected:
            raise BrokerRefused(reason(unexpected.octets)) from None
        self.nacked = self._confirms.nacked

    def finish(self) -> None:
        """Write the rest of a message that was begun; if that takes too long, leave without goodbye."""
        if not self._pending:
            return
        try:
            self._socket.settimeout(1)
            self._socket.sendall(self._pending[: len(self._pending) % self._publication.length])
        except OSError:
            self._socket.close()

    def _take(self, room: int, now_ns: int) -> Outcome:
        """Put the next publishes into `_pending`, if there may be any."""
        unsettled = self._taken - self._confirms.settled
        if self._window and unsettled >= self._window:
            return Outcome.AWAITING
        if room <= 0:
            return Outcome.STARVED
        count = min(room, self._messages_per_write or room)
        if self._window:
            count = min(count, self._window - unsettled)
        self._pending = self._publication.take(self._taken, count)
        self._taken += len(self._pending) // self._publication.length
        return Outcome.READY

    def on_settled(self, count: int, now_ns: int) -> None:
        """`count` more publishes were confirmed."""
