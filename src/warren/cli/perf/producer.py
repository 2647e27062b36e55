"""A connection that publishes as fast as its limits allow."""

from enum import Enum, auto

from warren.blocking.connection import BlockingConnection
from warren.cli.perf.connection import NOT_NOW
from warren.cli.perf.publish_ring import PublishRing
from warren.client.confirms import ConfirmCounter, UnexpectedBytes
from warren.client.errors import BrokerRefused
from warren.client.raw_frames import reason

RECEIVE_BYTES = 65_536
WRITES_PER_TURN = 16  # for a producer that writes few messages at once


class ProducerState(Enum):
    """The state of a producer: it can continue, or it waits."""

    READY = auto()  # it can continue in the next turn
    BLOCKED = auto()  # waits until the socket is writable
    AWAITING = auto()  # waits for a confirm, or until its next message is due
    STARVED = auto()  # waits for consumers to catch up


class Producer:
    """Publishes encoded messages, and counts their confirms."""

    def __init__(
        self,
        connection: BlockingConnection,
        publish_ring: PublishRing,
        *,
        window: int,
        messages_per_write: int,
    ) -> None:
        self.connection = connection
        self.nacked = 0
        self._publish_ring = publish_ring
        self._window = window
        self._messages_per_write = messages_per_write
        self._writes_per_turn = WRITES_PER_TURN if messages_per_write else 1
        self._confirms = ConfirmCounter()
        self._socket = connection.socket
        self._pending: memoryview | bytes = b""
        self._taken = 0  # messages that were written or are in `_pending`

    @property
    def published(self) -> int:
        """The number of messages that are completely written."""
        return self._taken - -(-len(self._pending) // self._publish_ring.length)

    @property
    def settled(self) -> int:
        """The number of messages that the broker has confirmed or rejected."""
        return self._confirms.settled

    def pump(self, room: int, now_ns: int) -> ProducerState:
        """Publish as many messages as the confirm window, `room` and the socket allow."""
        for _ in range(self._writes_per_turn):
            if not self._pending:
                taken = self._taken
                outcome = self._take(room, now_ns)
                if outcome is not ProducerState.READY:
                    return outcome
                room -= self._taken - taken
            if not self.flush():
                return ProducerState.BLOCKED
        if self._window and self._taken - self._confirms.settled >= self._window:
            return ProducerState.AWAITING
        return ProducerState.READY

    def flush(self) -> bool:
        """Write pending bytes; False if the socket accepts only a part."""
        try:
            sent = self._socket.send(self._pending)
        except NOT_NOW:
            return False
        self._pending = self._pending[sent:]
        return not self._pending

    def receive(self, now_ns: int) -> None:
        """Read and count confirms. Raises BrokerRefused for anything else."""
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except NOT_NOW:
            return
        if not data:
            raise BrokerRefused("the broker closed a publishing connection")
        try:
            self.on_settled(self._confirms.feed(data, self._taken), now_ns)
        except UnexpectedBytes as unexpected:
            raise BrokerRefused(reason(unexpected.data)) from None
        self.nacked = self._confirms.nacked

    def finish(self) -> None:
        """Complete a partly written message and close; after a timeout, close the socket at once."""
        if not self._pending:
            return
        try:
            self._socket.settimeout(1)
            self._socket.sendall(self._pending[: len(self._pending) % self._publish_ring.length])
        except OSError:
            self._socket.close()

    def _take(self, room: int, now_ns: int) -> ProducerState:
        """Put the next messages into `_pending`, if the limits allow any."""
        unsettled = self._taken - self._confirms.settled
        if self._window and unsettled >= self._window:
            return ProducerState.AWAITING
        if room <= 0:
            return ProducerState.STARVED
        count = min(room, self._messages_per_write or room)
        if self._window:
            count = min(count, self._window - unsettled)
        self._pending = self._publish_ring.take(self._taken, count)
        self._taken += len(self._pending) // self._publish_ring.length
        return ProducerState.READY

    def on_settled(self, count: int, now_ns: int) -> None:
        """Handle `count` new confirms."""
