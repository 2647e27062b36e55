"""The streaming source of `mode=classic`: consumes a queue of any broker over AMQP, at least once.

The driver consumes the messages, and passes them to the tasks. It acknowledges a micro-batch when Spark asks
for the offset after it. Spark does so only after the micro-batch is committed, and also while no messages
arrive, so the last messages before a pause are acknowledged too. If the driver dies, unacknowledged messages
return to the queue. A micro-batch that was planned and not committed before a restart is empty when Spark
repeats it; its messages are read in a later one.

An offset is the number of messages that the query has read: `{"v": 1, "n": 12000}`.
"""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark_warren.amqp import CHANNEL, AmqpConsumer, connect, is_retryable, with_retries
from pyspark_warren.mode_detection import ReadStrategy
from pyspark_warren.offsets import VERSION, check_version
from pyspark_warren.options import ReadOptions
from pyspark_warren.partitions import BufferedPartition, ReadPartition
from warren.client.errors import BrokerRefused
from warren.wire.methods import QueueDeclare, QueueDeclareOk

if TYPE_CHECKING:
    import pyarrow as pa

# The default prefetch count.
PREFETCH = 20_000
PART_BYTES = 4 * 1_048_576
# How long to wait for a first message: POLL_S in each poll of a continuous query, LAST_S with AvailableNow,
# which then asks the broker whether messages are left.
POLL_S = 0.1
LAST_S = 1.0
LISTEN_S = 0.5
LINGER_S = 0.05


class ClassicSource:
    """Consumes messages, passes them to tasks, and acknowledges committed ones; runs on the driver."""

    def __init__(self, options: ReadOptions, strategy: ReadStrategy, columns: tuple[str, ...]) -> None:
        self._options = options
        self._queue = strategy.queues[0]
        self._columns = columns
        self._consumer: BufferedConsumer | None = None
        # Of the current micro-batch.
        self._start = self._end = -1
        self._tag = 0
        self._planned: list[pa.RecordBatch] = []
        # With AvailableNow, how many messages the run may read, and may still read; else None.
        self._share: int | None = None
        self._left: int | None = None

    def initial_offset(self) -> dict[str, Any]:
        """Return the offset of a query that has read no message."""
        return _written(0)

    def latest_offset(
        self, start: Mapping[str, Any], offsets_max: int | None, bytes_max: int | None
    ) -> dict[str, Any]:
        """Return the end offset of the next micro-batch, and acknowledge the messages before `start`."""
        at = _read(start)
        if at == self._start < self._end:
            return _written(self._end)
        self.commit(start)
        count = min(offsets_max or 2**63, 2**63 if self._left is None else self._left)
        if not count:
            return dict(start)
        if self._left is None:
            self._planned, self._tag = self._opened().take(count, bytes_max, POLL_S)
        else:
            self._planned, self._tag = self._take_waiting(count, bytes_max)
        taken = sum(batch.num_rows for batch in self._planned)
        if self._left is not None:
            self._left = self._left - taken if taken else 0
        self._start, self._end = at, at + taken
        return _written(self._end)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Acknowledge the current micro-batch if it ends at or before `end`."""
        if 0 <= self._end <= _read(end) and self._planned and self._consumer is not None:
            self._consumer.ack(self._tag)
            self._planned = []

    def prepare_available_now(self) -> None:
        """Limit the run to the number of messages that are ready now (AvailableNow)."""
        self._share = self._left = ready_count(self._options, self._queue)

    def committed(self) -> dict[str, Any] | None:
        """Return None: AMQP does not count the messages of a queue by offsets."""
        return None

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[ReadPartition]:
        """Return the partitions of the current micro-batch; none for one planned before a restart."""
        if (_read(start), _read(end)) != (self._start, self._end):
            return []
        partitions: list[ReadPartition] = []
        at = self._start
        for batch in self._planned:
            pieces = max(self._options.partitions_min, -(-batch.nbytes // PART_BYTES))
            rows = -(-batch.num_rows // pieces)
            for first in range(0, batch.num_rows, rows):
                piece = batch.slice(first, rows)
                partitions.append(BufferedPartition(_packed(_numbered(piece, at))))
                at += piece.num_rows
        return partitions

    def stop(self) -> None:
        """Close the consumer; unacknowledged messages return to the queue."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _take_waiting(self, count: int, bytes_max: int | None) -> "tuple[list[pa.RecordBatch], int]":
        """Return ready messages as `take` does; none if the queue is empty or `timeoutMs` has passed."""
        deadline = time.monotonic() + self._options.broker.timeout_ms / 1000
        is_left = True
        while True:
            planned, tag = self._opened().take(count, bytes_max, LAST_S)
            if planned or not is_left or time.monotonic() > deadline:
                return planned, tag
            # Messages that left the queue may be on the way to this consumer, so it is polled once more.
            is_left = ready_count(self._options, self._queue) > 0

    def _opened(self) -> "BufferedConsumer":
        """Return the consumer, opened again if its connection broke; its messages are then redelivered."""
        if self._consumer is not None and self._consumer.is_broken:
            self.stop()
            # Unacknowledged messages are redelivered, and it is unknown which acknowledgements arrived: the
            # run reads the full number of messages again.
            self._left = self._share
        if self._consumer is None:
            opened = partial(BufferedConsumer, self._options, self._queue, self._columns)
            self._consumer = with_retries(self._options.broker, opened)
        return self._consumer


class BufferedConsumer:
    """A consumer whose socket is read by a thread, since a broker closes connections that read nothing."""

    def __init__(self, options: ReadOptions, name: str, columns: tuple[str, ...]) -> None:
        self._prefetch = options.prefetch or PREFETCH
        self._subscription = AmqpConsumer(options.broker, name, prefetch=self._prefetch)
        self._name = name
        self._columns = columns
        self._changed = threading.Condition()
        self._waiting: deque[tuple[pa.RecordBatch, list[int]]] = deque()
        self._error: BrokerRefused | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._listen, name="warren-inbox", daemon=True)
        self._thread.start()

    @property
    def is_broken(self) -> bool:
        """Whether the connection has failed."""
        return self._error is not None

    def take(self, count: int, bytes_max: int | None, wait_s: float) -> "tuple[list[pa.RecordBatch], int]":
        """Return at most `count` messages of about `bytes_max` bytes, and the last delivery tag."""
        with self._changed:
            if self._changed.wait_for(self._has_news, wait_s):
                # More messages usually follow, and a small micro-batch costs as much as a large one.
                self._changed.wait_for(partial(self._has_all, count), max(LINGER_S, wait_s - POLL_S))
            self._convert()
            if not self._waiting and self._error is not None and not is_retryable(self._error):
                raise self._error
            taken, tag = [], 0
            left = bytes_max or 2**63
            while self._waiting and count and left > 0:
                batch, tags = self._waiting.popleft()
                rows = min(count, batch.num_rows, max(1, batch.num_rows * left // max(batch.nbytes, 1)))
                if rows < batch.num_rows:
                    self._waiting.appendleft((batch.slice(rows), tags[rows:]))
                    batch = batch.slice(0, rows)
                taken.append(batch)
                tag = tags[rows - 1]
                count -= rows
                left -= batch.nbytes
            return taken, tag

    def ack(self, tag: int) -> None:
        """Acknowledge messages up to `tag`; if the connection has failed, they are redelivered."""
        with contextlib.suppress(BrokerRefused):
            self._subscription.ack(tag)

    def close(self) -> None:
        """Close the connection and end the thread."""
        self._is_closed = True
        self._thread.join()
        self._subscription.close()

    def _listen(self) -> None:
        while not self._is_closed:
            try:
                data = self._subscription.read(LISTEN_S)
                if data:
                    with self._changed:
                        self._subscription.feed(data)
                        self._changed.notify_all()
            except BrokerRefused as error:
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                return

    def _has_news(self) -> bool:
        return bool(len(self._subscription.reader) or self._waiting or self._error)

    def _has_all(self, count: int) -> bool:
        held = len(self._subscription.reader) + sum(batch.num_rows for batch, _ in self._waiting)
        return self._error is not None or held >= min(count, self._prefetch)

    def _convert(self) -> None:
        from pyspark_warren.batches import to_batch

        if len(self._subscription.reader):
            rows = self._subscription.reader.take()
            self._waiting.append((to_batch(rows, self._name, self._columns), rows.tag))


def ready_count(options: ReadOptions, name: str) -> int:
    """Return the number of ready messages of a queue."""
    return with_retries(options.broker, lambda: _ready_count(options, name))


def _ready_count(options: ReadOptions, name: str) -> int:
    link = connect(options.broker)
    try:
        link.open_channel(CHANNEL)
        return link.call(CHANNEL, QueueDeclare(queue=name, passive=True), QueueDeclareOk).message_count
    finally:
        link.close()


def _numbered(batch: "pa.RecordBatch", start: int) -> "pa.RecordBatch":
    """Return `batch` with its column `offset` numbered from `start`."""
    import pyarrow as pa

    at = batch.schema.get_field_index("offset")
    if at < 0:
        return batch
    numbers = pa.array(range(start, start + batch.num_rows), pa.int64())
    return batch.set_column(at, batch.schema.field(at), numbers)


def _packed(batch: "pa.RecordBatch") -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _written(count: int) -> dict[str, Any]:
    return {"v": VERSION, "n": count}


def _read(offset: Mapping[str, Any]) -> int:
    check_version(offset)
    count = offset.get("n")
    if not isinstance(count, int) or "lease" in offset:
        raise ValueError("the checkpoint is of another read mode: use a new checkpoint, or the former `mode`")
    return count
