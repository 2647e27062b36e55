"""Publishes a DataFrame: each task its rows, confirmed one by one, or staged and committed as one."""

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_warren.amqp import CHANNEL
from pyspark_warren.amqp_publisher import AmqpPublisher, ConnectionLost, PublishFailed
from pyspark_warren.http import path
from pyspark_warren.mode_detection import detect_transport, has_api_path, server_properties
from pyspark_warren.options import WriteOptions
from pyspark_warren.schema import WRITABLE, arrow_fields

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # before Spark 4.1
    DataSourceStreamArrowWriter = DataSourceStreamWriter

if TYPE_CHECKING:
    import pyarrow as pa

# How Spark names the query and its batch to a task.
QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
# Of a Spark without Arrow for streaming writes.
ROWS = 10_000


@dataclass(frozen=True)
class WriteTask:
    """Which publishes these are, whoever makes them and however often: by this, they can be told apart."""

    query: str
    batch: int
    partition: int
    attempt: int

    @property
    def place(self) -> dict[str, Any]:
        """By what the broker knows the stage of this task."""
        return {
            "query": self.query,
            "batch": self.batch,
            "partition": self.partition,
            "attempt": self.attempt,
        }

    def names(self, start: int, count: int) -> list[bytes]:
        """What the header `x-spark-txn` says of each of `count` rows."""
        prefix = f"{self.query}:{self.batch}:{self.partition}:".encode()
        return [b"%b%d" % (prefix, number) for number in range(start, start + count)]


@dataclass(frozen=True)
class TaskCommitMessage(WriterCommitMessage):
    """What a task has published, or staged."""

    task: WriteTask
    rows: int
    is_staged: bool


class BatchWriter(DataSourceArrowWriter):
    """For `df.write`."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._query = options.transaction_id or str(uuid.uuid4())

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Publish one task's rows; returns when they are confirmed."""
        context = TaskContext.get()
        task = WriteTask(self._query, self._options.transaction_version, *_attempt(context))
        return publish(iterator, self._options, task)

    def commit(self, messages: "list[WriterCommitMessage | None]") -> None:
        """Publish what was staged."""
        _commit(self._options, messages)

    def abort(self, messages: "list[WriterCommitMessage | None]") -> None:
        """Drop what was staged; what was published over AMQP is published."""
        _abort(self._options, messages)


class _StreamWriter:
    """What streaming writers have in common."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def _publish(self, batches: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        context = TaskContext.get()
        query = self._options.transaction_id or context.getLocalProperty(QUERY_ID)
        batch = int(context.getLocalProperty(BATCH_ID))
        return publish(batches, self._options, WriteTask(query, batch, *_attempt(context)))

    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803
        """Publish what was staged."""
        _commit(self._options, messages)

    def abort(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803
        """Drop what was staged; what was published over AMQP is published."""
        _abort(self._options, messages)


class ArrowStreamWriter(_StreamWriter, DataSourceStreamArrowWriter):
    """For `df.writeStream`."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Publish one task's rows; returns when they are confirmed."""
        return self._publish(iterator)


class RowStreamWriter(_StreamWriter, DataSourceStreamWriter):
    """For `df.writeStream` in Spark 4.0, which hands over rows."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        super().__init__(options)
        self._schema = schema

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Publish one task's rows; returns when they are confirmed."""
        return self._publish(_batches(iterator, self._schema))


def stream_writer(options: WriteOptions, schema: StructType) -> DataSourceStreamWriter:
    """For `df.writeStream`."""
    if DataSourceStreamArrowWriter is DataSourceStreamWriter:
        return RowStreamWriter(options, schema)
    return ArrowStreamWriter(options)


def checked_write_options(options: WriteOptions) -> WriteOptions:
    """`options`, if the broker can do what they ask for; ValueError says what it cannot."""
    if options.transaction == "staged":
        _check_staged(options)
        told = server_properties(options.broker)
        if "warren" not in told:
            name = f"{told.get('product', 'the broker')} {told.get('version', '')}".strip()
            raise ValueError(
                f"txn=staged needs Warren: {name} at {options.broker.target.host} has no staged publish. "
                "txn=dedupe publishes at least once, each row with a header x-spark-txn by which consumers "
                "tell what came twice; txn=none leaves the header out"
            )
    return options


def publish(batches: "Iterator[pa.RecordBatch]", options: WriteOptions, task: WriteTask) -> TaskCommitMessage:
    """Publish or stage the rows of one task; `PublishFailed` if one is returned, refused or not confirmed."""
    if _is_staged(options):
        from pyspark_warren.staged_publish import stage

        return TaskCommitMessage(task, stage(batches, options, task.place), is_staged=True)
    return TaskCommitMessage(task, _confirmed(batches, options, task), is_staged=False)


def _confirmed(batches: "Iterator[pa.RecordBatch]", options: WriteOptions, task: WriteTask) -> int:
    """Publish the rows of one task; all of them again, under the same names, if the connection breaks."""
    from pyspark_warren.spool import SpooledBatches

    with SpooledBatches(batches) as kept:
        for left in range(options.broker.retries, -1, -1):
            try:
                return _published(kept, options, task)
            except ConnectionLost:
                if not left:
                    raise
    raise AssertionError


def _published(batches: "Iterable[pa.RecordBatch]", options: WriteOptions, task: WriteTask) -> int:
    from pyspark_warren.encoding import PublishEncoder

    address = (options.exchange, options.routing_key)
    count = 0
    with AmqpPublisher(options.broker) as publisher:
        encoder = PublishEncoder(
            channel=CHANNEL,
            frame_size_max=publisher.frame_size_max,
            is_mandatory=options.is_mandatory,
            is_persistent=options.is_persistent,
        )
        for batch in batches:
            for start in range(0, batch.num_rows, ROWS):
                piece = batch.slice(start, ROWS)
                names = None if options.transaction == "none" else task.names(count, piece.num_rows)
                publisher.publish(encoder.encode(piece, address, names))
                count += piece.num_rows
        publisher.finish()
    return count


def _is_staged(options: WriteOptions) -> bool:
    """Whether the broker takes stages: if it is Warren, and all rows go to one exchange."""
    if options.transaction == "staged":
        _check_staged(options)
    if options.transaction != "auto":
        return options.transaction == "staged"
    if options.exchange is None or detect_transport(options.broker) != "arrow":
        return False
    return has_api_path(options.broker, path("warren", "staged"))


def _check_staged(options: WriteOptions) -> None:
    if options.exchange is None:
        raise ValueError("txn=staged needs one exchange for all rows: give the option 'exchange' or 'queue'")


def _commit(options: WriteOptions, messages: "list[WriterCommitMessage | None]") -> None:
    staged = _staged(messages)
    if not staged:
        return
    from pyspark_warren.staged_publish import commit

    first = staged[0].task
    partitions = [(one.task.partition, one.task.attempt) for one in staged]
    told = commit(options.broker, first.query, first.batch, partitions)
    if options.is_mandatory and told.get("unroutable"):
        raise PublishFailed(
            f"{told['unroutable']} messages of batch {first.batch} reached no queue: bindings have changed "
            "since they were staged. The others are published, and the batch will not be published again. "
            "mandatory=false goes on without them"
        )


def _abort(options: WriteOptions, messages: "list[WriterCommitMessage | None]") -> None:
    if staged := _staged(messages):
        from pyspark_warren.staged_publish import discard_staged

        discard_staged(options.broker, staged[0].task.query, staged[0].task.batch)


def _staged(messages: "list[WriterCommitMessage | None]") -> list[TaskCommitMessage]:
    """Those that have something to commit, in the order of their partitions."""
    found = [one for one in messages if isinstance(one, TaskCommitMessage) and one.is_staged and one.rows]
    return sorted(found, key=lambda one: one.task.partition)


def _attempt(context: Any) -> tuple[int, int]:
    return context.partitionId(), context.taskAttemptId()


def _batches(rows: Iterator[Row], schema: StructType) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    kinds = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    types = arrow_fields([(name, kind) for name, kind in kinds if name in WRITABLE])
    while piece := list(islice(rows, ROWS)):
        sent = [{name: _with_zone(row[name]) for name in types.names} for row in piece]
        yield pa.RecordBatch.from_pylist(sent, schema=types)


def _with_zone(value: Any) -> Any:
    """Spark makes of a time that of this machine, and does not say so; Arrow takes that for UTC."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value
