"""A producer that publishes at a fixed rate."""

import struct
from collections import deque
from dataclasses import dataclass

from warren.blocking.connection import BlockingConnection
from warren.cli.perf.histogram import Histogram
from warren.cli.perf.producer import Producer, ProducerState
from warren.cli.perf.publish_ring import PublishRing

# A body begins with the times when the message was due and when it was sent, in monotonic nanoseconds.
STAMPS = struct.Struct(">QQ")
MESSAGES_PER_TURN_MAX = 512


@dataclass(frozen=True, slots=True)
class Pace:
    """The schedule of messages: number n is due at `start_ns + n * interval_ns`."""

    start_ns: int
    interval_ns: float

    def due_ns(self, sequence: int) -> int:
        """Return when message number `sequence` is due."""
        return self.start_ns + int(sequence * self.interval_ns)


class PacedProducer(Producer):
    """Never skips a late message, and stamps each message with the time when it was due.

    So the delay of messages that could not be sent because the broker stalled is part of the latency, and
    there is no coordinated omission.
    """

    def __init__(
        self, connection: BlockingConnection, publish_ring: PublishRing, pace: Pace, *, measured_from_ns: int
    ) -> None:
        super().__init__(connection, publish_ring, window=0, messages_per_write=0)
        self.confirm_latency = Histogram()
        self._pace = pace
        self._measured_from_ns = measured_from_ns
        self._unconfirmed: deque[int] = deque()

    @property
    def due_ns(self) -> int:
        """Return when the next message is due."""
        return self._pace.due_ns(self._taken)

    def pump(self, room: int, now_ns: int) -> ProducerState:
        """Publish every message that is due."""
        if self._pending and not self.flush():
            return ProducerState.BLOCKED
        data = bytearray()
        for _ in range(MESSAGES_PER_TURN_MAX):
            due_ns = self.due_ns
            if due_ns > now_ns:
                break
            at = len(data) + self._publish_ring.body_at
            data += self._publish_ring.take(self._taken, 1)
            STAMPS.pack_into(data, at, due_ns, now_ns)
            self._unconfirmed.append(due_ns)
            self._taken += 1
        self._pending = bytes(data)
        if self._pending and not self.flush():
            return ProducerState.BLOCKED
        return ProducerState.AWAITING

    def on_settled(self, count: int, now_ns: int) -> None:
        """Record the confirm latency of the `count` oldest messages; exact if confirms are in order."""
        for _ in range(count):
            due_ns = self._unconfirmed.popleft()
            if due_ns >= self._measured_from_ns:
                self.confirm_latency.record(now_ns - due_ns)
