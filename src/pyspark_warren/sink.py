"""Publishes a DataFrame: tasks publish their rows with confirms, or stage them for a commit of the driver."""

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

# Local properties by which Spark passes the query id and the batch number to a task.
QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
# Rows per record batch, and per call of the encoder.
ROWS = 10_000


@dataclass(frozen=True)
class WriteTask:
    """Identifies the rows of a task; all but `attempt` are the same when the task is retried."""

    query: str
    batch: int
    partition: int
    attempt: int

    @property
    def place(self) -> dict[str, Any]:
        """Return the query parameters that identify the stage of this task."""
        return {
            "query": self.query,
            "batch": self.batch,
            "partition": self.partition,
            "attempt": self.attempt,
        }

    def names(self, start: int, count: int) -> list[bytes]:
        """Return the values of the header `x-spark-txn` for `count` rows from row `start` on."""
        prefix = f"{self.query}:{self.batch}:{self.partition}:".encode()
        return [b"%b%d" % (prefix, number) for number in range(start, start + count)]


@dataclass(frozen=True)
class TaskCommitMessage(WriterCommitMessage):
    """The commit message of a task: how many rows it published or staged."""

    task: WriteTask
    rows: int
    is_staged: bool


class BatchWriter(DataSourceArrowWriter):
    """The writer of `df.write`."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._query = options.transaction_id or str(uuid.uuid4())

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Publish or stage the rows of a task. Returns when they are confirmed or staged."""
        context = TaskContext.get()
        task = WriteTask(self._query, self._options.transaction_version, *_attempt(context))
        return publish(iterator, self._options, task)

    def commit(self, messages: "list[WriterCommitMessage | None]") -> None:
        """Commit the staged rows of all tasks."""
        _commit(self._options, messages)

    def abort(self, messages: "list[WriterCommitMessage | None]") -> None:
        """Discard the staged rows. Rows that were published over AMQP cannot be withdrawn."""
        _abort(self._options, messages)


class _StreamWriter:
    """The common base of the streaming writers for rows and for Arrow batches."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def _publish(self, batches: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        context = TaskContext.get()
        query = self._options.transaction_id or context.getLocalProperty(QUERY_ID)
        batch = int(context.getLocalProperty(BATCH_ID))
        return publish(batches, self._options, WriteTask(query, batch, *_attempt(context)))

    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803
        """Commit the staged rows of all tasks."""
        _commit(self._options, messages)

    def abort(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803
        """Discard the staged rows. Rows that were published over AMQP cannot be withdrawn."""
        _abort(self._options, messages)


class ArrowStreamWriter(_StreamWriter, DataSourceStreamArrowWriter):
    """The writer of `df.writeStream`, which takes Arrow batches."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Publish or stage the rows of a task. Returns when they are confirmed or staged."""
        return self._publish(iterator)


class RowStreamWriter(_StreamWriter, DataSourceStreamWriter):
    """The writer of `df.writeStream` in Spark 4.0, which passes rows."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        super().__init__(options)
        self._schema = schema

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Publish or stage the rows of a task. Returns when they are confirmed or staged."""
        return self._publish(_batches(iterator, self._schema))


def stream_writer(options: WriteOptions, schema: StructType) -> DataSourceStreamWriter:
    """Return the writer of `df.writeStream` for the installed version of Spark."""
    if DataSourceStreamArrowWriter is DataSourceStreamWriter:
        return RowStreamWriter(options, schema)
    return ArrowStreamWriter(options)


def checked_write_options(options: WriteOptions) -> WriteOptions:
    """Return `options` if the broker supports them. Raises ValueError if txn=staged is not possible."""
    if options.transaction == "staged":
        _check_staged(options)
        told = server_properties(options.broker)
        if "warren" not in told:
            name = f"{told.get('product', 'the broker')} {told.get('version', '')}".strip()
            raise ValueError(
                f"txn=staged needs Warren: {name} at {options.broker.target.host} has no staged publish. "
                "txn=dedupe publishes at least once, each row with a header x-spark-txn by which consumers "
                "can detect duplicates; txn=none omits the header"
            )
    return options


def publish(batches: "Iterator[pa.RecordBatch]", options: WriteOptions, task: WriteTask) -> TaskCommitMessage:
    """Publish or stage the rows of a task. Raises PublishFailed if one is returned or not confirmed."""
    if _is_staged(options):
        from pyspark_warren.staged_publish import stage

        return TaskCommitMessage(task, stage(batches, options, task.place), is_staged=True)
    return TaskCommitMessage(task, _confirmed(batches, options, task), is_staged=False)


def _confirmed(batches: "Iterator[pa.RecordBatch]", options: WriteOptions, task: WriteTask) -> int:
    """Publish the rows of a task; after a lost connection, publish all of them again."""
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
    """Whether rows are staged: with txn=staged, or with txn=auto, Warren and a single exchange."""
    if options.transaction == "staged":
        _check_staged(options)
    if options.transaction != "auto":
        return options.transaction == "staged"
    if options.exchange is None or detect_transport(options.broker) != "arrow":
        return False
    return has_api_path(options.broker, path("warren", "staged"))


def _check_staged(options: WriteOptions) -> None:
    if options.exchange is None:
        raise ValueError("txn=staged needs a single exchange: give the option 'exchange' or 'queue'")


def _commit(options: WriteOptions, messages: "list[WriterCommitMessage | None]") -> None:
    staged = _staged(messages)
    if not staged:
        return
    from pyspark_warren.staged_publish import commit

    first = staged[0].task
    partitions = [(one.task.partition, one.task.attempt) for one in staged]
    told = commit(options.broker, first.query, first.batch, partitions)
    if options.is_mandatory and told.unroutable:
        raise PublishFailed(
            f"{told.unroutable} messages of batch {first.batch} were routed to no queue: bindings were "
            "removed after the messages were staged. The others are published, and the batch will not be "
            "published again. Set mandatory=false to continue without these messages"
        )


def _abort(options: WriteOptions, messages: "list[WriterCommitMessage | None]") -> None:
    if staged := _staged(messages):
        from pyspark_warren.staged_publish import discard_staged

        discard_staged(options.broker, staged[0].task.query, staged[0].task.batch)


def _staged(messages: "list[WriterCommitMessage | None]") -> list[TaskCommitMessage]:
    """Return the messages of tasks that staged rows, ordered by partition."""
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
    """Convert a time to UTC: Spark passes local times without a zone, which Arrow would take for UTC."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value
