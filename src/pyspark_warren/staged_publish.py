"""Publishes by stages: tasks leave rows with the broker, and the driver commits all of a batch at once."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyspark_warren.amqp import retry_delays
from pyspark_warren.amqp_publisher import PublishFailed
from pyspark_warren.http import HttpApi, HttpApiError, path
from pyspark_warren.options import BrokerOptions, WriteOptions
from pyspark_warren.schema import WRITABLE
from pyspark_warren.spool import SpooledBytes

ARROW_STREAM = "application/vnd.apache.arrow.stream"
# How the HTTP API calls the exchange that has no name.
DEFAULT_EXCHANGE = "amq.default"
AGAIN_S = 0.5
_TRANSIENT = 1
_COMMITTING = "committing"
# A broker says within 20 s how far a commit is.
_COMMIT_S = 30.0


def stage(batches: Iterable[pa.RecordBatch], options: WriteOptions, stage_key: dict[str, Any]) -> int:
    """Leave the rows of one task with the broker, which has them on its disk then; how many there are."""
    rows = StagedRows(batches, options)
    first = next(iter(rows), None)
    if first is None:
        return 0
    name = options.exchange or DEFAULT_EXCHANGE
    target = path("warren", "staged", options.broker.target.vhost, name)
    management = HttpApi(options.broker)
    if options.is_mandatory:
        # Refused now, it can be published later: behind the commit it could not.
        stage_key = {**stage_key, "mandatory": "true"}
    with SpooledBytes(rows.octets(first)) as kept:
        told = _sent(management, target, stage_key, kept)
    # A batch that Spark makes again, because it ended before it noted the commit, says so.
    if "state" not in told and told["rows"] != rows.count:
        raise PublishFailed(f"{rows.count} rows were sent and {told['rows']} staged")
    return rows.count


def _sent(
    management: HttpApi, target: str, stage_key: dict[str, Any], octets: SpooledBytes
) -> dict[str, Any]:
    """What the broker says; sent again while it is away: the same attempt replaces what it has of it."""
    for wait_s in retry_delays(management.broker):
        try:
            told: dict[str, Any] = management.send(target, stage_key, octets, ARROW_STREAM)
        except HttpApiError as refused:
            if wait_s is None or not refused.is_retryable:
                raise
        else:
            return told
        time.sleep(wait_s)
    raise AssertionError


def commit(
    broker: BrokerOptions, query: str, batch: int, partitions: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    """Publish what was staged, once however often it is asked; what the broker says when it is done.

    `PublishFailed` if nothing of it moves for as long as the options have patience.
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
        told: dict[str, Any] = management.post(target, body)
        if told["state"] != _COMMITTING:
            return told
        if told["published"] > published:
            published, progress = told["published"], time.monotonic()
        elif time.monotonic() - progress > broker.timeout_ms / 1000:
            raise PublishFailed(_held_up(told, query, batch))
        # It is decided: what is in its way holds up this query, and nothing else.
        time.sleep(AGAIN_S)


def _held_up(told: Mapping[str, Any], query: str, batch: int) -> str:
    why = told.get("reason") or "the broker does not say why"
    return (
        f"{told['published']} of {told['rows']} messages of batch {batch} are published, the others wait: "
        f"{why}. The broker publishes them, once, when that has changed. A streaming query that is started "
        "again waits for it, and so does a batch write with the same txnId; any other write of these rows "
        f"publishes them twice. The broker knows the batch as query {query!r}"
    )


def discard_staged(broker: BrokerOptions, query: str, batch: int) -> None:
    """Drop what was staged, unless it is being published."""
    target = path("warren", "staged", broker.target.vhost)
    try:
        HttpApi(broker).delete(target, {"query": query, "batch": batch})
    except HttpApiError as refused:
        # Under way, or nothing is there any more of whose query it is.
        if refused.status not in (403, 409):
            raise


class StagedRows:
    """The rows of a task with the columns that are sent."""

    def __init__(self, batches: Iterable[pa.RecordBatch], options: WriteOptions) -> None:
        self._batches = iter(batches)
        self._options = options
        self.count = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            if batch.num_rows:
                self.count += batch.num_rows
                yield self._sent(batch)

    def octets(self, first: pa.RecordBatch) -> Iterator[bytes]:
        """The Arrow stream of `first` and of all behind it, piece by piece."""
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
