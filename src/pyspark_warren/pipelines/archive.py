"""Archives queues and streams in a lake, each message once, partitioned by day and queue.

Spark stores the end offset of a micro-batch in the checkpoint before it reads the rows, and a stream or a
lease gives the same rows again. So exactly-once follows if the lake commits each micro-batch once, identified
by the id of the query and its number. Executors write the files, and the driver commits them.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_warren.amqp import CHANNEL, connect
from pyspark_warren.answers import traced_vhosts
from pyspark_warren.http import HttpApi, path
from pyspark_warren.mode_detection import STREAM, ReadStrategy, detect_strategy
from pyspark_warren.options import EARLIEST, BrokerOptions, ReadOptions, read_options
from pyspark_warren.partitions import open_streams
from pyspark_warren.pipelines.consume_check import check_consume
from pyspark_warren.pipelines.lake_factory import new_lake
from pyspark_warren.pipelines.lakes import DAY, DELTA, Lake, LakeBatch, lake_folder, own_folder
from pyspark_warren.pipelines.progress_relay import query_id
from pyspark_warren.streams import DataLoss
from pyspark_warren.versions import HAS_BATCHES, check_batches, check_mode
from warren.client.uri import DEFAULT_URI
from warren.wire.methods import QueueBind, QueueBindOk, QueueDeclare, QueueDeclareOk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

# The stream with copies of all messages of a virtual host, and its retention.
FIREHOSE = "warren.firehose"
FIREHOSE_AGE = "7D"
_TRACED = "amq.rabbitmq.trace"
# Value of `starting`: after the last archived offset of each stream.
ARCHIVED = "archived"
# Large enough for files of a good size, and small enough that repeating a micro-batch is quick.
BATCH_ROWS = 1_000_000
INTERVAL = "30 seconds"
_DAY_MICROSECONDS = 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveProgress:
    """The progress of a micro-batch."""

    # planned, written, committed, or repeated if the lake had it already.
    stage: str
    batch: int
    rows: int
    files: int
    bytes: int
    # Version of the Delta table after the commit.
    version: int | None
    seconds: float

    @property
    def octets(self) -> int:
        """Deprecated: use `bytes`."""
        return self.bytes


ArchiveListener = Callable[[ArchiveProgress], None]


def archive(
    spark: "SparkSession",
    table: str | os.PathLike[str],
    *,
    queue: str | None = None,
    queue_pattern: str | None = None,
    super_stream: str | None = None,
    firehose: bool = False,
    uri: str = DEFAULT_URI,
    management_uri: str | None = None,
    format: str = DELTA,
    name: str | None = None,
    checkpoint: str | None = None,
    starting: str | None = None,
    batch_rows: int | None = None,
    once: bool = False,
    consume: bool = True,
    interval: str = INTERVAL,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: ArchiveListener | None = None,
) -> "StreamingQuery":
    """Start a streaming query that archives messages in the lake `table`, and return the query.

    With `once` it ends after the messages that are available now. `starting` applies to a new checkpoint: a
    value of `startingOffsets`, or `archived`, after the last archived offsets. `options` are further options
    of the reader. A micro-batch has at most `batch_rows` rows, by default a million; before Spark 4.2, all
    available rows. consume=False refuses a source that consumes messages. `storage_options` configure an
    object store, which needs a `checkpoint`. Raises ValueError for invalid arguments, and DataLoss.
    """
    given = _given(
        queue=queue,
        queuePattern=queue_pattern,
        superStream=super_stream,
        uri=uri,
        managementUri=management_uri,
        maxOffsetsPerTrigger=_size(batch_rows),
    ) | dict(options or {})
    if firehose:
        if queue or queue_pattern or super_stream:
            raise ValueError("the firehose has all messages: omit the queue, pattern or super stream")
        given["queue"] = FIREHOSE
    lake = new_lake(table, format, storage_options)
    name = name or queue or queue_pattern or super_stream or FIREHOSE
    wanted = read_options(given)
    check_batches(wanted)
    if firehose:
        _open_firehose(wanted.broker)
    strategy = detect_strategy(wanted, is_streaming=True)
    check_mode(strategy.mode)
    check_consume(strategy, consume)
    place = lake_folder(checkpoint) if checkpoint else own_folder(lake, "checkpoints", name)
    lake.prepare()
    if not (place / "metadata").exists():
        given |= _starting_offsets(lake, wanted, strategy, starting)
    reader = spark.readStream.format("warren").options(**given)
    writer = reader.load().writeStream.queryName(name).option("checkpointLocation", str(place))
    archiver = _Archiver(lake, name, place, progress)
    trigger = {"availableNow": True} if once else {"processingTime": interval}
    return writer.trigger(**trigger).foreachBatch(archiver).start()  # type: ignore[arg-type]


class _Archiver:
    """Writes micro-batches to the lake; runs on the driver, or on the server of Spark Connect."""

    def __init__(self, lake: Lake, name: str, checkpoint: Path, progress: ArchiveListener | None) -> None:
        self._lake = lake
        self._checkpoint = checkpoint
        self._name = name
        self._progress = progress

    def __call__(self, rows: "DataFrame", number: int) -> None:
        """Write and commit a micro-batch, unless the lake has it already."""
        batch = LakeBatch(query=query_id(self._checkpoint), number=number, name=self._name)
        begun = time.monotonic()
        self._tell("planned", number, begun)
        if self._lake.has(batch):
            self._tell("repeated", number, begun)
            return
        written = self._lake.write(_with_day(rows), batch)
        told = {
            "rows": sum(one.rows for one in written.files),
            "files": len(written.files),
            "bytes": sum(one.size_bytes for one in written.files),
        }
        self._tell("written", number, begun, **told)
        version = self._lake.commit(batch, written)
        self._tell("committed", number, begun, version=version, **told)

    def _tell(self, stage: str, number: int, begun: float, **told: Any) -> None:
        if self._progress is not None:
            known = {"rows": 0, "files": 0, "bytes": 0, "version": None} | told
            seconds = round(time.monotonic() - begun, 3)
            self._progress(ArchiveProgress(stage=stage, batch=number, seconds=seconds, **known))


def _with_day(rows: "DataFrame") -> "DataFrame":
    """Add the day in UTC on which the broker received each message, or else the current day."""
    taken = "coalesce(broker_timestamp, current_timestamp())"
    day = f"date_from_unix_date(cast(floor(unix_micros({taken}) / {_DAY_MICROSECONDS}) as int)) as {DAY}"
    return rows.selectExpr("*", day)


def _starting_offsets(
    lake: Lake, wanted: ReadOptions, strategy: ReadStrategy, starting: str | None
) -> dict[str, str]:
    """Return the starting offsets of a query without a checkpoint. Raises ValueError if unclear."""
    if strategy.mode != STREAM:
        return _given(startingOffsets=None if starting == ARCHIVED else starting)
    ends = lake.ends(strategy.queues)
    if ends and starting is None:
        known = ", ".join(sorted(ends))
        raise ValueError(
            f"the lake {lake.place!r} already has rows of {known}, and this query has no checkpoint: give "
            f"starting='{ARCHIVED}' to continue after them, or '{EARLIEST}' to archive them again"
        )
    if starting != ARCHIVED:
        return _given(startingOffsets=starting)
    streams = open_streams(wanted, strategy.transport)
    places = {}
    for queue in strategy.queues:
        bounds = streams.bounds(queue, ends.get(queue, 0))
        if bounds.committed < ends.get(queue, 0):
            raise DataLoss(
                f"the lake has the messages of {queue!r} up to {ends[queue] - 1}, but the stream ends at "
                f"{bounds.committed}: it was deleted and declared again. Use another lake, or give starting"
            )
        places[f"{wanted.broker.target.vhost}/{queue}"] = {"next": ends.get(queue, bounds.first)}
    return {"startingOffsets": json.dumps({"v": 1, "s": places})}


def _open_firehose(broker: BrokerOptions) -> None:
    """Declare and bind the stream of the firehose. Raises ValueError if the virtual host is not traced."""
    vhost = broker.target.vhost
    if vhost not in HttpApi(broker).get(path("vhosts"), read=traced_vhosts):
        raise ValueError(
            f"the virtual host {vhost!r} is not traced: enable its firehose with `warren trace on`"
        )
    arguments = {"x-queue-type": "stream", "x-max-age": FIREHOSE_AGE}
    link = connect(broker)
    try:
        link.open_channel(CHANNEL)
        declare = QueueDeclare(queue=FIREHOSE, durable=True, arguments=arguments)
        link.call(CHANNEL, declare, QueueDeclareOk)
        bind = QueueBind(queue=FIREHOSE, exchange=_TRACED, routing_key="#")
        link.call(CHANNEL, bind, QueueBindOk)
    finally:
        link.close()


def _given(**options: str | None) -> dict[str, str]:
    return {name: value for name, value in options.items() if value is not None}


def _size(rows: int | None) -> str | None:
    """Return the value of maxOffsetsPerTrigger; None by default if this Spark does not support it."""
    if rows is None:
        return str(BATCH_ROWS) if HAS_BATCHES else None
    if rows < 1:
        raise ValueError(f"batch_rows must be at least 1, not {rows}")
    return str(rows)
