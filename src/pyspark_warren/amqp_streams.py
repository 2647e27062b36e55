"""Streams over AMQP 0-9-1, of RabbitMQ and of any other broker that supports `x-stream-offset`.

AMQP has no request for the end of a stream. Therefore the last chunk is read until no message arrives for
IDLE_S, or longer if the broker answers slowly, and for PROBE_S_MAX in all, or five such waits if these are
longer: the end is after the last message received.
"""

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark_warren.amqp import CHANNEL, AmqpConsumer, connect, is_retryable, with_retries
from pyspark_warren.options import BrokerOptions
from pyspark_warren.streams import OffsetRange, StreamBounds, retention_loss
from warren.client.errors import BrokerRefused
from warren.wire.methods import QueueDeclare, QueueDeclareOk
from warren.wire.table import Timestamp

if TYPE_CHECKING:
    import pyarrow as pa

PREFETCH = 5_000
BATCH_ROWS = 10_000
BATCH_BYTES = 8 * 1_048_576
# If no delivery arrives for this long, no message is left. A broker that takes long to answer has so many
# times its longest answer instead, at most IDLE_S_MAX.
IDLE_S = 0.1
IDLE_ROUND_TRIPS = 4
IDLE_S_MAX = 2.0
PROBE_S_MAX = 1.0
PROBE_PREFETCH = 1_000


class AmqpStreams:
    """Implements `Streams` over AMQP; the epoch of a stream is unknown."""

    has_times = False

    def __init__(self, broker: BrokerOptions, prefetch: int | None) -> None:
        self._broker = broker
        self._prefetch = prefetch or PREFETCH
        self._timeout_s = broker.timeout_ms / 1000

    def bounds(self, queue: str, expected: int = 0) -> StreamBounds:
        """Return the bounds, without an epoch; an end before `expected` is searched for once more."""
        return with_retries(self._broker, lambda: self._bounds(queue, expected))

    def _bounds(self, queue: str, expected: int) -> StreamBounds:
        if not self._has_messages(queue) and self._first_seen(queue, "first", IDLE_S) is None:
            return StreamBounds(epoch="", first=0, committed=0)
        first = self._first_seen(queue, "first", self._timeout_s)
        committed = self._committed(queue, IDLE_S)
        if committed < expected:
            committed = self._committed(queue, PROBE_S_MAX)
        return StreamBounds(epoch="", first=first or 0, committed=committed)

    def offset_at(self, queue: str, milliseconds: int) -> int:
        """Return the first offset of the chunk that contains the time; it can start with older messages."""
        time_asked = Timestamp(milliseconds // 1000)
        first = with_retries(self._broker, lambda: self._first_seen(queue, time_asked, PROBE_S_MAX))
        return self.bounds(queue).committed if first is None else first

    def read(self, wanted: OffsetRange, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
        """Yield the messages; after a lost connection, continue behind the last one."""
        at, attempts = wanted.start, 0
        while at < wanted.end:
            try:
                for batch, reached in self._read_from(at, wanted, columns):
                    at, attempts = reached, 0
                    if batch.num_rows:
                        yield batch
            except (OSError, BrokerRefused) as error:
                attempts += 1
                if not is_retryable(error) or attempts > self._broker.retries:
                    raise

    def _read_from(
        self, at: int, wanted: OffsetRange, columns: Sequence[str]
    ) -> "Iterator[tuple[pa.RecordBatch, int]]":
        from pyspark_warren.batches import to_batch

        with AmqpConsumer(self._broker, wanted.queue, prefetch=self._prefetch, offset=at) as subscription:
            reader = subscription.reader
            is_checked = False
            while at < wanted.end:
                is_there = reader.last_offset() >= wanted.end - 1
                if not is_there and len(reader) < BATCH_ROWS and reader.body_bytes < BATCH_BYTES:
                    if not subscription.receive(self._timeout_s):
                        raise BrokerRefused(
                            f"no message of {wanted.queue!r} arrived at the offset {at} "
                            f"within {self._timeout_s:g} s"
                        )
                    subscription.ack_half(self._prefetch)
                    continue
                rows = reader.take()
                if not is_checked and rows.offset[0] > at and wanted.is_loss_fatal:
                    self._check_loss(wanted.queue, at)
                is_checked = True
                start, end = bisect_left(rows.offset, at), bisect_left(rows.offset, wanted.end)
                at = rows.offset[-1] + 1
                yield to_batch(rows, wanted.queue, columns).slice(start, end - start), at

    def _check_loss(self, queue: str, at: int) -> None:
        """Raise DataLoss if retention deleted `at`; gaps of internal entries of the broker are no loss."""
        first = self._first_seen(queue, "first", self._timeout_s) or 0
        if first > at:
            raise retention_loss(queue, at, first)

    def _has_messages(self, queue: str) -> bool:
        link = connect(self._broker)
        try:
            link.open_channel(CHANNEL)
            declared = link.call(CHANNEL, QueueDeclare(queue=queue, passive=True), QueueDeclareOk)
            return bool(declared.message_count)
        finally:
            link.close()

    def _first_seen(self, queue: str, offset: Any, wait_s: float) -> int | None:
        """Return the offset of the first message from `offset` on; None if none arrives within `wait_s`."""
        with AmqpConsumer(self._broker, queue, prefetch=1, offset=offset) as subscription:
            deadline = time.monotonic() + _patience(wait_s, subscription.round_trip_s)
            while not len(subscription.reader):
                if not subscription.receive(max(0.0, deadline - time.monotonic())):
                    return None
            return subscription.reader.take().offset[0]

    def _committed(self, queue: str, idle_s: float) -> int:
        """Return the offset after the last message that arrives within a gap of at most `idle_s`."""
        last = -1
        with AmqpConsumer(self._broker, queue, prefetch=PROBE_PREFETCH, offset="last") as subscription:
            reader = subscription.reader
            idle_s = _patience(idle_s, subscription.round_trip_s)
            begun = time.monotonic()
            while time.monotonic() - begun < max(PROBE_S_MAX, 5 * idle_s) or last < 0:
                asked = time.monotonic()
                is_more = subscription.receive(self._timeout_s if last < 0 and not len(reader) else idle_s)
                idle_s = _patience(idle_s, time.monotonic() - asked)
                if len(reader):
                    last = reader.last_offset()
                    subscription.ack_half(PROBE_PREFETCH)
                    reader.take()
                if not is_more:
                    break
        return last + 1


def _patience(idle_s: float, answered_s: float) -> float:
    """Return how long to wait for a message (s) on a broker that took `answered_s` to answer."""
    return max(idle_s, min(IDLE_ROUND_TRIPS * answered_s, IDLE_S_MAX))
