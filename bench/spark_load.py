"""Messages that Spark reads and writes, and streaming queries."""

import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from brokers import Broker
from pyspark_warren.amqp import CHANNEL, connect
from pyspark_warren.amqp_publisher import AmqpPublisher
from pyspark_warren.encoding import PublishEncoder
from pyspark_warren.options import BrokerOptions, read_options
from warren.blocking.connection import BlockingConnection
from warren.spark import register
from warren.wire.methods import (
    ExchangeDeclare,
    ExchangeDeclareOk,
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
)

SIZE = 200
PROPERTIES = {
    "equal": ["map('tenant', 'a') as headers"],
    "mixed": ["concat('id-', id) as message_id", "map('tenant', 'a', 'n', cast(id as string)) as headers"],
}
SENT_AGAIN = 20_000
PARTITIONS = 4
# Number of messages of a super stream that are confirmed at once: the share of each partition becomes a
# chunk.
CONFIRMED_AT_ONCE = 400
# Number of batches of a query that are measured, without the first, and the time limit.
BATCHES = 20
QUERY_S_MAX = 40.0
# Interval of messages for micro-batches with minimal work.
INTERVAL_S = 0.02
MILLISECONDS = 1e3


@dataclass(frozen=True, slots=True)
class SparkBroker:
    """A broker, and the port of its HTTP API, if that is needed."""

    broker: Broker
    management: int | None

    def options(self) -> dict[str, str]:
        """Return the options of a reader or a writer for this broker."""
        found = {"uri": self.broker.uri}
        if self.management:
            found["managementUri"] = f"http://127.0.0.1:{self.management}"
        return found

    @property
    def parsed(self) -> BrokerOptions:
        """The parsed options."""
        return read_options(self.options() | {"queue": "any"}).broker

    def declare_super_stream(self, name: str) -> None:
        """Declare an exchange and the streams that its keys lead to, new and empty, as stream clients do."""
        with self._link() as link:
            link.call(
                CHANNEL,
                ExchangeDeclare(exchange=name, type="direct", durable=True),
                ExchangeDeclareOk,
            )
            for number in range(PARTITIONS):
                stream = f"{name}-{number}"
                link.call(CHANNEL, QueueDelete(queue=stream), QueueDeleteOk)
                arguments = {"x-queue-type": "stream"}
                link.call(
                    CHANNEL, QueueDeclare(queue=stream, durable=True, arguments=arguments), QueueDeclareOk
                )
                link.call(
                    CHANNEL,
                    QueueBind(queue=stream, exchange=name, routing_key=str(number)),
                    QueueBindOk,
                )

    def declare(self, queue: str, *, is_stream: bool) -> None:
        """Declare a durable queue, new and empty."""
        with self._link() as link:
            link.call(CHANNEL, QueueDelete(queue=queue), QueueDeleteOk)
            arguments = {"x-queue-type": "stream"} if is_stream else {}
            link.call(CHANNEL, QueueDeclare(queue=queue, durable=True, arguments=arguments), QueueDeclareOk)

    @contextmanager
    def _link(self) -> Iterator[BlockingConnection]:
        link = connect(self.parsed)
        try:
            link.open_channel(CHANNEL)
            yield link
        finally:
            link.close()


def session(folder: Path) -> SparkSession:
    """Start Spark in this process, with the number of cores that the targets are for."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Worker processes must be able to import the data source that is registered here.
    places = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(place for place in places if place)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("warren-bench")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.python.authenticate.socketTimeout", "300")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("FATAL")
    register(spark)
    return spark


def messages(spark: SparkSession, kind: str, count: int) -> DataFrame:
    """Return messages to write: `equal` ones differ in their bodies, `mixed` ones in id and headers, too."""
    rows = spark.range(count, numPartitions=2)
    body = f"cast(rpad(concat('{{\"id\":', id, ',\"text\":\"'), {SIZE}, 'abcdefgh') as binary) as body"
    return rows.selectExpr(body, "'application/json' as content_type", *PROPERTIES[kind])


def fill(spark: SparkSession, place: SparkBroker, queue: str, *, kind: str, count: int) -> None:
    """Fill a stream with `count` of these messages, some of which are sent repeatedly."""
    place.declare(queue, is_stream=True)
    _send(place, messages(spark, kind, min(count, SENT_AGAIN)), ("", queue), count=count)


def fill_super_stream(
    spark: SparkSession, place: SparkBroker, name: str, *, count: int, at_once: int = SENT_AGAIN
) -> None:
    """Fill a super stream with `count` messages: each partition gets a share of every `at_once` messages."""
    place.declare_super_stream(name)
    rows = messages(spark, "equal", min(count, SENT_AGAIN))
    keyed = rows.selectExpr("*", f"cast(pmod(hash(body), {PARTITIONS}) as string) as routing_key")
    _send(place, keyed, (name, None), count=count, at_once=at_once)


def _send(
    place: SparkBroker,
    rows: DataFrame,
    address: tuple[str, str | None],
    *,
    count: int,
    at_once: int = SENT_AGAIN,
) -> None:
    """Publish `count` messages, and wait for the confirms after every `at_once` of them."""
    with AmqpPublisher(place.parsed) as publisher:
        encoder = _encoder(publisher)
        frames = [
            frame for batch in rows.toArrow().to_batches() for frame in encoder.encode(batch, address, None)
        ]
        for sent in range(0, count, at_once):
            at = sent % len(frames)
            publisher.publish(frames[at : at + min(at_once, count - sent)])
            if at_once < SENT_AGAIN:
                publisher.finish()
        publisher.finish()


def rate_latencies(spark: SparkSession, folder: Path) -> list[float]:
    """Return the latency of batches of Spark's own rate source: a lower bound for the connector."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    durations = [duration for _, duration, _ in _batches(spark, rows, folder / "rate")[1:]]
    return _percentiles(durations)


def latencies(spark: SparkSession, place: SparkBroker, folder: Path, transport: str) -> list[float]:
    """Return the latencies of batches, and of messages until the end of their batch: p50 and p95 in ms."""
    queue = f"steady-{transport}"
    place.declare(queue, is_stream=True)
    options = place.options() | {"transport": transport, "mode": "stream"}
    rows = spark.readStream.format("warren").options(**options).load(queue)
    published: list[float] = []
    is_over = threading.Event()
    publisher = threading.Thread(target=_publish, args=(place, queue, published, is_over))
    publisher.start()
    try:
        batches = _batches(spark, rows, folder / f"{place.broker.name}-{transport}")
    finally:
        is_over.set()
        publisher.join()
    reached = [_next(offset) for _, _, offset in batches]
    waits = [
        (ended - sent) * MILLISECONDS
        for (ended, _, _), start, end in zip(batches[1:], reached, reached[1:], strict=False)
        for sent in published[start:end]
    ]
    return [*_percentiles([duration for _, duration, _ in batches[1:]]), *_percentiles(waits)]


def _next(offset: Any) -> int:
    """Return the offset in the one stream at which a batch with the end `offset` ends."""
    streams = (json.loads(offset) if isinstance(offset, str) else offset)["s"]
    (stream,) = streams.values()
    found: int = stream["next"]
    return found


def _publish(place: SparkBroker, queue: str, published: list[float], is_over: threading.Event) -> None:
    """Publish messages at the interval, and record the time at which each was sent."""
    import pyarrow as pa

    with AmqpPublisher(place.parsed) as publisher:
        encoder = _encoder(publisher)
        batch = pa.record_batch({"body": pa.array([b"x"], pa.binary())})
        while not is_over.wait(INTERVAL_S):
            published.append(time.time())
            publisher.publish(encoder.encode(batch, ("", queue), None))
            publisher.finish()


def _encoder(publisher: AmqpPublisher) -> PublishEncoder:
    return PublishEncoder(
        channel=CHANNEL, frame_size_max=publisher.frame_size_max, is_mandatory=True, is_persistent=True
    )


def _batches(spark: SparkSession, rows: DataFrame, checkpoint: Path) -> list[tuple[float, float, Any]]:
    """Return the end (s), duration (ms) and end offset of each batch with rows; the first is slow."""
    query = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    try:
        deadline = time.monotonic() + QUERY_S_MAX
        found: list[Any] = []
        while len(found) <= BATCHES and time.monotonic() < deadline:
            query.awaitTermination(1)
            found = [progress for progress in query.recentProgress if progress["numInputRows"]]
    finally:
        query.stop()
    batches = []
    for progress in found:
        begun = datetime.fromisoformat(progress["timestamp"]).timestamp()
        duration = progress["durationMs"]["triggerExecution"]
        batches.append((begun + duration / MILLISECONDS, duration, progress["sources"][0]["endOffset"]))
    return batches


def _percentiles(values: list[float]) -> list[float]:
    """Return p50 and p95; an empty list for fewer than two values."""
    if len(values) < 2:
        return []
    return [statistics.median(values), statistics.quantiles(values, n=20, method="inclusive")[-1]]
