"""Measures the cost of reading and writing messages with Spark, compared to reading a file of the same rows.

.venv-spark/bin/python bench/spark.py --warren .venv-compiled/bin/warren

Every line is a batch that is run several times in one session. A figure is the CPU time for each row, of the
broker, of Python (the driver and the workers) and of the JVM: the minimum of the runs, since other work on
the machine only adds to it.
"""

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from brokers import Broker, free_port, has_rabbitmq, rabbitmq, warren
from pyspark_warren.schema import COLUMNS
from spark_baseline import ReadyRows
from spark_load import (
    CONFIRMED_AT_ONCE,
    PARTITIONS,
    PROPERTIES,
    SENT_AGAIN,
    SIZE,
    SparkBroker,
    fill,
    fill_super_stream,
    latencies,
    messages,
    rate_latencies,
    session,
)
from spark_usage import Spent, Watch
from table import figure, table

# An expression that reads each value of a column, with as little work as possible.
TOUCH = {
    "string": "coalesce(octet_length({}), 0)",
    "binary": "coalesce(octet_length({}), 0)",
    "bigint": "{}",
    "int": "coalesce({}, 0)",
    "boolean": "int({})",
    "timestamp": "coalesce(unix_micros({}), 0)",
    "map<string,string>": "coalesce(size({}), 0)",
}
PROMISED = {"arrow read": 1_000_000, "arrow to parquet": 400_000, "staged publish": 150_000}
HEADS = ["batch", "rows", "rows/s", "promised", "broker µs", "python µs", "jvm µs", "all µs"]
LATENCY_HEADS = ["micro-batches", "batch p50 ms", "batch p95 ms", "message p50 ms", "message p95 ms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkBatch:
    """A batch: its work, and the number of its rows."""

    text: str
    rows: int
    work: Callable[[], None]
    broker: Broker | None = None
    # Called before each run, and not measured.
    prepare: Callable[[], None] = lambda: None


def main() -> None:
    """Measure, and print tables."""
    arguments = parse_arguments()
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warren-bench-spark-")))
        places = stack.enter_context(started(arguments))
        spark = session(folder)
        stack.callback(spark.stop)
        bench = Bench(spark, folder, arguments)
        lines = [line for line in bench.lines(places) if arguments.only in line.text]
        found = {line.text: bench.measured(line) for line in lines}
        waits = {text: work() for text, work in bench.streaming(places).items() if arguments.only in text}
    print(f"Spark {spark.version} on two cores, messages of {SIZE} bytes; brokers on the same machine")
    if lines:
        print(table(HEADS, [cells(line, found[line.text]) for line in lines]))
    if waits:
        found_waits = [[text, *_padded(wait)] for text, wait in waits.items()]
        print("\n" + table(LATENCY_HEADS, found_waits))
    print(f"\nthe least of {arguments.runs} runs; {time.monotonic() - begun:.0f} s in all")
    if arguments.figures:
        arguments.figures.write_text(json.dumps(figures(lines, found, waits)))


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    beside = Path(sys.executable).parent / "warren"
    parser.add_argument("--warren", type=Path, default=beside, help="the command whose broker is measured")
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of a batch over Arrow")
    parser.add_argument("--runs", type=int, default=3, help="how often each batch is made")
    parser.add_argument("--only", default="", help="the lines that have this in their names")
    parser.add_argument("--no-rabbitmq", action="store_true", help="do not measure RabbitMQ")
    parser.add_argument("--figures", type=Path, help="a file for the figures, as JSON")
    return parser.parse_args()


@contextlib.contextmanager
def started(arguments: argparse.Namespace) -> Iterator[dict[str, SparkBroker]]:
    """Start the brokers of the comparison."""
    with contextlib.ExitStack() as stack:
        management = free_port()
        ours = stack.enter_context(warren(arguments.warren, http=(management, 0)))
        places = {"warren": SparkBroker(ours, management)}
        if has_rabbitmq() and not arguments.no_rabbitmq:
            places["rabbitmq"] = SparkBroker(stack.enter_context(rabbitmq()), None)
        yield places


class Bench:
    """Creates the batches."""

    def __init__(self, spark: SparkSession, folder: Path, arguments: argparse.Namespace) -> None:
        self._spark = spark
        self._folder = folder
        self._rows: int = arguments.rows
        # The numbers of rows for batches that cost several times as much, or many times.
        self._fewer: int = max(arguments.rows // 5, 1)
        self._few: int = max(arguments.rows // 50, 1)
        self._runs: int = arguments.runs
        self._watch = Watch(spark)
        spark.dataSource.register(ReadyRows)
        self._filled: set[tuple[str, str]] = set()

    def lines(self, places: dict[str, SparkBroker]) -> Iterator[SparkBatch]:
        """Yield all batches, the most expensive last."""
        yield from self._floor(places["warren"])
        yield from self._arrow(places["warren"])
        for place in places.values():
            yield from self._amqp(place)
        for place in places.values():
            yield from self._sinks(place)

    def streaming(self, places: dict[str, SparkBroker]) -> dict[str, Callable[[], list[float]]]:
        """Return the latency measurements of streaming queries: batch and message, p50 and p95 in ms."""
        found: dict[str, Callable[[], list[float]]] = {
            "micro-batch, rate source": lambda: rate_latencies(self._spark, self._folder)
        }
        for name, place in places.items():
            for transport in ("arrow", "amqp") if place.management else ("amqp",):
                found[f"micro-batch, {name} over {transport}"] = lambda place=place, transport=transport: (
                    latencies(self._spark, place, self._folder, transport)
                )
        return found

    def measured(self, line: SparkBatch) -> Spent:
        """Return the minimum over the runs, without a first one, in which the JVM compiles hot code."""
        runs = []
        for _ in range(1 + self._runs):
            line.prepare()
            runs.append(self._watch.spent(line.work, line.broker))
        del runs[0]
        best = min(runs, key=lambda spent: spent.cpu_s)
        seconds = statistics.median(spent.seconds for spent in runs)
        print(f"{line.text}: {line.rows / seconds:,.0f}/s", file=sys.stderr, flush=True)
        return Spent(
            broker_s=min(spent.broker_s for spent in runs),
            python_s=best.python_s,
            jvm_s=best.jvm_s,
            seconds=seconds,
        )

    def _floor(self, place: SparkBroker) -> Iterator[SparkBatch]:
        """Yield batches without the connector: the same rows read from a file."""
        file = str(self._folder / "same")

        def same() -> DataFrame:
            if not Path(file).exists():
                self._read(place, "equal", "arrow").write.parquet(file)
            return self._spark.read.parquet(file)

        yield SparkBatch(text="spark: file read", rows=self._rows, work=lambda: self._touch(same()))
        yield SparkBatch(text="spark: file to parquet", rows=self._rows, work=lambda: self._parquet(same()))
        ready = self._spark.read.format(ReadyRows.name()).option("rows", self._rows)
        yield SparkBatch(text="spark: ready batches", rows=self._rows, work=lambda: self._touch(ready.load()))

    def _arrow(self, place: SparkBroker) -> Iterator[SparkBatch]:
        broker, rows = place.broker, self._rows

        def read(kind: str = "equal", **given: str) -> DataFrame:
            return self._read(place, kind, "arrow", **given)

        few = {"columns": "offset,routing_key,body"}
        works = {
            "arrow read": lambda: self._touch(read()),
            "arrow read, three columns": lambda: self._touch(read(**few)),
            "arrow to parquet": lambda: self._parquet(read()),
            f"arrow read, {PARTITIONS} parts": lambda: self._touch(read(minPartitions=str(PARTITIONS))),
            f"arrow read, {PARTITIONS} partitions": lambda: self._touch(self._read_super_stream(place, rows)),
        }
        for text, work in works.items():
            yield SparkBatch(text=text, rows=rows, work=work, broker=broker)
        yield SparkBatch(
            text=f"arrow read, {PARTITIONS} partitions, small chunks",
            rows=self._fewer,
            work=lambda: self._touch(self._read_super_stream(place, self._fewer, CONFIRMED_AT_ONCE)),
            broker=broker,
        )
        yield SparkBatch(
            text="arrow read, all different",
            rows=self._fewer,
            work=lambda: self._touch(read("mixed")),
            broker=broker,
        )
        for kind in PROPERTIES:
            yield SparkBatch(
                text="leases" + (", all different" if kind == "mixed" else ""),
                rows=self._fewer,
                work=lambda: self._lease(place),
                broker=broker,
                prepare=lambda kind=kind: self._fill_queue(place, kind),
            )

    def _amqp(self, place: SparkBroker) -> Iterator[SparkBatch]:
        for kind in PROPERTIES:

            def read(kind: str = kind) -> None:
                self._touch(self._read(place, kind, "amqp"))

            text = f"{place.broker.name}: amqp read" + (", all different" if kind == "mixed" else "")
            yield SparkBatch(text=text, rows=self._few, work=read, broker=place.broker)

    def _sinks(self, place: SparkBroker) -> Iterator[SparkBatch]:
        name = place.broker.name
        for kind in PROPERTIES:
            rest = ", all different" if kind == "mixed" else ""

            def publish(transaction: str, kind: str = kind) -> None:
                place.declare("out", is_stream=True)
                rows = messages(self._spark, kind, self._few)
                writer = rows.write.format("warren").options(**place.options()).option("txn", transaction)
                writer.mode("append").save("out")

            yield SparkBatch(
                text=f"{name}: amqp publish{rest}",
                rows=self._few,
                work=lambda publish=publish: publish("none"),
                broker=place.broker,
            )
            if place.management:
                yield SparkBatch(
                    text=f"staged publish{rest}",
                    rows=self._few,
                    work=lambda publish=publish: publish("staged"),
                    broker=place.broker,
                )

    def _read(self, place: SparkBroker, kind: str, transport: str, **given: str) -> DataFrame:
        """Read the stream with messages of a kind, which is filled before the first read."""
        queue = f"{kind}-{transport}"
        if (place.broker.name, queue) not in self._filled:
            rows = self._few if transport == "amqp" else self._rows if kind == "equal" else self._fewer
            fill(self._spark, place, queue, kind=kind, count=rows)
            self._filled.add((place.broker.name, queue))
        wanted = place.options() | {"transport": transport, "mode": "stream", "minPartitions": "2"} | given
        return self._spark.read.format("warren").options(**wanted).load(queue)

    def _read_super_stream(self, place: SparkBroker, rows: int, at_once: int = SENT_AGAIN) -> DataFrame:
        """Read a super stream with `rows` rows, which is filled before the first read."""
        name = f"spread-{at_once}"
        if (place.broker.name, name) not in self._filled:
            fill_super_stream(self._spark, place, name, count=rows, at_once=at_once)
            self._filled.add((place.broker.name, name))
        wanted = place.options() | {"transport": "arrow", "mode": "stream", "superStream": name}
        return self._spark.read.format("warren").options(**wanted).load()

    def _fill_queue(self, place: SparkBroker, kind: str) -> None:
        """Fill a durable classic queue with persistent messages, for `_lease`."""
        place.declare("leased", is_stream=False)
        writer = messages(self._spark, kind, self._fewer).write.format("warren").options(**place.options())
        writer.option("txn", "none").mode("append").save("leased")

    def _lease(self, place: SparkBroker) -> None:
        """Consume all ready messages with a streaming query that ends."""
        wanted = place.options() | {"mode": "lease", "minPartitions": "2"}
        rows = touched(self._spark.readStream.format("warren").options(**wanted).load("leased"))
        with tempfile.TemporaryDirectory(dir=self._folder) as checkpoint:
            writer = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
            writer.trigger(availableNow=True).start().awaitTermination()

    def _touch(self, frame: DataFrame) -> None:
        touched(frame).write.format("noop").mode("overwrite").save()

    def _parquet(self, frame: DataFrame) -> None:
        frame.write.mode("overwrite").parquet(str(self._folder / "out"))


def touched(frame: DataFrame) -> DataFrame:
    """Return the rows with each value read, and a result of minimal size."""
    looked_at = [TOUCH[COLUMNS[name]].format(f"`{name}`") for name in frame.columns]
    return frame.selectExpr(" + ".join(looked_at) + " as total")


def cells(line: SparkBatch, spent: Spent) -> list[str]:
    """Return a row under HEADS."""

    def each(seconds: float) -> str:
        return figure(seconds / line.rows * 1e6)

    promised = PROMISED.get(line.text)
    return [
        line.text, f"{line.rows:,}", f"{line.rows / spent.seconds:,.0f}", f"{promised:,}" if promised else "",
        each(spent.broker_s) if line.broker else "", each(spent.python_s), each(spent.jvm_s),
        each(spent.cpu_s),
    ]  # fmt: skip


def _padded(wait: list[float]) -> list[str]:
    return [figure(value) for value in (*wait, None, None, None, None)[: len(LATENCY_HEADS) - 1]]


def figures(
    lines: list[SparkBatch], found: dict[str, Spent], waits: dict[str, list[float]]
) -> dict[str, dict[str, float]]:
    """Return the figures to be saved, by line."""
    saved = {line.text: found[line.text].per_row(line.rows) for line in lines}
    for text, values in waits.items():
        saved[text] = dict(zip(LATENCY_HEADS[1:], values, strict=False))
    return saved


if __name__ == "__main__":
    main()
