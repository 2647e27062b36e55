"""Staged publish: tasks stage rows at the broker, and the driver commits all rows of a batch together."""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pyspark_warren import answers
from pyspark_warren.amqp import retry_delays
from pyspark_warren.amqp_publisher import PublishFailed
from pyspark_warren.answers import CommitAnswer
from pyspark_warren.http import HttpApi, HttpApiError, path
from pyspark_warren.options import BrokerOptions, WriteOptions
from pyspark_warren.schema import WRITABLE
from pyspark_warren.spool import SpooledBytes

# The name of the default exchange in paths of the HTTP API.
DEFAULT_EXCHANGE = "amq.default"
AGAIN_S = 0.5
_TRANSIENT = 1
_COMMITTING = "committing"
# The broker answers a commit within 20 s.
_COMMIT_S = 30.0


def stage(batches: Iterable[pa.RecordBatch], options: WriteOptions, stage_key: dict[str, Any]) -> int:
    """Stage the rows of a task and return their number; they are on the disk of the broker then."""
    rows = StagedRows(batches, options)
    first = next(iter(rows), None)
    if first is None:
        return 0
    name = options.exchange or DEFAULT_EXCHANGE
    target = path("warren", "staged", options.broker.target.vhost, name)
    management = HttpApi(options.broker)
    if options.is_mandatory:
        # Unroutable rows are refused now, since after the commit they cannot be published again.
        stage_key = {**stage_key, "mandatory": "true"}
    with SpooledBytes(rows.arrow_stream(first)) as kept:
        staged = _sent(management, target, stage_key, kept)
    # None: the batch is committed already and Spark had not recorded that.
    if staged is not None and staged != rows.count:
        raise PublishFailed(f"{rows.count} rows were sent, but the broker staged {staged}")
    return rows.count


def _sent(management: HttpApi, target: str, stage_key: dict[str, Any], body: SpooledBytes) -> int | None:
    """Send the rows, with retries, and return how many were staged; a repeated attempt replaces its rows."""
    for wait_s in retry_delays(management.broker):
        try:
            return management.send(target, stage_key, body, answers.staged_rows)
        except HttpApiError as refused:
            if wait_s is None or not refused.is_retryable:
                raise
        time.sleep(wait_s)
    raise AssertionError


def commit(
    broker: BrokerOptions, query: str, batch: int, partitions: Sequence[tuple[int, int]]
) -> CommitAnswer:
    """Commit a batch and return the answer of the broker; repeating the commit publishes nothing twice.

    Raises PublishFailed if no message is published for `timeoutMs`.
    """
    body = {
        "query": query,
        "batch": batch,
        "partitions": [{"partition": partition, "attempt": attempt} for partition, attempt in partitions],
    }
    target = path("warren", "staged", broker.target.vhost, "commit")
    management = HttpApi(broker, timeout_s_min=_COMMIT_S)
    published, progress = -1, time.monotonic()
    while True:
        told = management.post(target, body, answers.commit)
        if told.state != _COMMITTING:
            return told
        if told.published > published:
            published, progress = told.published, time.monotonic()
        elif time.monotonic() - progress > broker.timeout_ms / 1000:
            raise PublishFailed(_held_up(told, query, batch))
        # The commit is decided and waits for its obstacle; only this query is delayed.
        time.sleep(AGAIN_S)


def _held_up(told: CommitAnswer, query: str, batch: int) -> str:
    why = told.reason or "the broker gives no reason"
    return (
        f"{told.published} of {told.rows} messages of batch {batch} are published, and the commit is "
        f"blocked: {why}. The broker publishes the others, each once, when the cause is removed. A restarted "
        "streaming query waits for that, and so does a batch write with the same txnId; any other write of "
        f"these rows publishes them twice. The broker knows the batch as query {query!r}"
    )


def discard_staged(broker: BrokerOptions, query: str, batch: int) -> None:
    """Discard the staged rows of a batch, unless it is being committed."""
    target = path("warren", "staged", broker.target.vhost)
    try:
        HttpApi(broker).delete(target, {"query": query, "batch": batch})
    except HttpApiError as refused:
        # 409: the commit is in progress. 403: nothing of the query is left.
        if refused.status not in (403, 409):
            raise


class StagedRows:
    """The rows of a task with the columns that are sent to the broker."""

    def __init__(self, batches: Iterable[pa.RecordBatch], options: WriteOptions) -> None:
        self._batches = iter(batches)
        self._options = options
        self.count = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            if batch.num_rows:
                self.count += batch.num_rows
                yield self._sent(batch)

    def arrow_stream(self, first: pa.RecordBatch) -> Iterator[bytes]:
        """Yield the Arrow IPC stream of `first` and of all later batches in pieces."""
        sink = pa.BufferOutputStream()
        stream = pa.ipc.new_stream(sink, first.schema)
        stream.write_batch(first)
        yield sink.getvalue().to_pybytes()
        for batch in self:
            yield batch.serialize().to_pybytes()
        yield b"\xff\xff\xff\xff\0\0\0\0"

    def _sent(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = {
            name: batch.column(name) for name in batch.schema.names if name in WRITABLE and name != "exchange"
        }
        if self._options.routing_key is not None:
            columns["routing_key"] = pa.repeat(pa.scalar(self._options.routing_key), batch.num_rows)
        if not self._options.is_persistent:
            mode = pa.repeat(pa.scalar(_TRANSIENT, pa.int32()), batch.num_rows)
            given = columns.get("delivery_mode")
            columns["delivery_mode"] = mode if given is None else given.cast(pa.int32()).fill_null(_TRANSIENT)
        return pa.RecordBatch.from_pydict(columns)
