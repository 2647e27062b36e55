"""Guarantees of every supported version of Spark, and features that an older one refuses with a reason."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyspark
import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from tests.spark.brokers import STREAM, BrokerUnderTest, rows_of

from pyspark_warren.pipelines.archive import archive
from pyspark_warren.schema import COLUMNS
from pyspark_warren.versions import VERSION
from warren.cli.main import main
from warren.cli.spark.options import reason
from warren.spark import register

pytestmark = pytest.mark.versions
HERE = f"Spark {pyspark.__version__}"
BATCHES = (4, 2)
NO_SIZE = f"{HERE} does not pass the start offset of a micro-batch, and ends a query"
NO_QUEUES = f"{HERE} does not pass the start offset of a micro-batch, which tells what is committed"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def numbered(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


@contextmanager
def refused(since: tuple[int, int], *reported: str) -> Iterator[None]:
    """The block succeeds since that version; before, it fails with one line that contains `reported`."""
    if since <= VERSION:
        yield
        return
    with pytest.raises(Exception, match=r".") as raised:
        yield
    line = reason(raised.value)
    for text in (*reported, f"Spark {since[0]}.{since[1]} or newer"):
        assert text in line


def reading(spark: SparkSession, place: BrokerUnderTest, queue: str, **given: str) -> DataFrame:
    """A streaming read."""
    return spark.readStream.format("warren").options(**place.options).options(**given).load(queue)


def run(query: StreamingQuery) -> list[int]:
    """Wait for the query; returns the total number of rows of its batches."""
    assert query.awaitTermination(200)
    return [size for one in query.recentProgress if (size := one["numInputRows"])]


def to_parquet(rows: DataFrame, folder: Path) -> list[int]:
    """Write the present messages; returns the number of rows of the batches."""
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return run(writer.trigger(availableNow=True).start(str(folder / "out")))


def bodies(spark: SparkSession, folder: Path) -> list[int]:
    """The bodies that were written."""
    return sorted(int(row.body) for row in spark.read.parquet(str(folder / "out")).collect())


def test_registering_the_source_again_is_allowed(spark: SparkSession) -> None:
    for _ in range(2):
        register(spark)
        assert len(spark.read.format("warren").option("queue", "any").load().columns) == len(COLUMNS)


@pytest.mark.parametrize("transport", ["arrow", "amqp"])
def test_a_query_reads_a_stream_once_and_continues_where_it_was(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path, transport: str
) -> None:
    queue = f"versions-{transport}"
    warren.declare(queue, STREAM)
    for start in (0, 500):
        warren.publish(queue, numbered(start, start + 500))
        rows = reading(spark, warren, queue, transport=transport, minPartitions="2")
        assert to_parquet(rows, tmp_path) == [500]
    assert bodies(spark, tmp_path) == list(range(1_000))
    found = spark.read.format("warren").options(**warren.options, transport=transport).load(queue)
    assert sorted(row.offset for row in found.select("offset").collect()) == list(range(1_000))


@pytest.mark.parametrize("transport", ["arrow", "amqp"])
def test_a_redeclared_stream_ends_the_query_instead_of_being_read_from_the_middle(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path, transport: str
) -> None:
    queue = f"versions-again-{transport}"
    warren.declare(queue, STREAM)
    warren.publish(queue, numbered(0, 100))
    rows = reading(spark, warren, queue, transport=transport)
    to_parquet(rows, tmp_path)
    warren.declare(queue, STREAM)
    # Over AMQP this is detected while the stream is shorter.
    warren.publish(queue, numbered(0, 150 if transport == "arrow" else 50))
    for _ in range(2):
        with pytest.raises(Exception, match="deleted and declared again"):
            to_parquet(rows, tmp_path)
    assert bodies(spark, tmp_path) == list(range(100))


@pytest.mark.parametrize("transaction", ["staged", "dedupe"])
def test_a_query_publishes_each_row_with_its_properties(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path, transaction: str
) -> None:
    moment = datetime(2026, 7, 1, 12, tzinfo=UTC)
    for queue, arguments in (("versions-from", STREAM), ("versions-to", None)):
        warren.declare(queue, arguments)
    warren.publish("versions-from", numbered(0, 300))
    rows = reading(spark, warren, "versions-from", minPartitions="2").selectExpr(
        "queue", "offset", "body", "concat('id-', offset) as message_id", "5S as priority",
        "map('tenant', 'a') as headers", f"timestamp_seconds({int(moment.timestamp())}) as timestamp",
    )  # fmt: skip
    writer = rows.writeStream.format("warren").options(**warren.options, queue="versions-to", txn=transaction)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    run(writer.trigger(availableNow=True).start())
    found = rows_of(warren, "versions-to")
    assert sorted((int(row["body"]), row["message_id"]) for row in found) == [
        (number, f"id-{number}") for number in range(300)
    ]
    assert {(row["priority"], row["timestamp"], dict(row["headers"])["tenant"]) for row in found} == {
        (5, moment, "a")
    }


def test_a_repeated_write_publishes_nothing_a_second_time(
    spark: SparkSession, warren: BrokerUnderTest
) -> None:
    warren.declare("versions-once")
    rows = spark.range(200, numPartitions=2).selectExpr("cast(id as string) as body")
    for _ in range(2):
        writer = rows.write.format("warren").options(**warren.options, txn="staged", txnId="once")
        writer.mode("append").save("versions-once")
    assert sorted(int(row["body"]) for row in rows_of(warren, "versions-once")) == list(range(200))


@pytest.mark.parametrize("limit", [{"maxOffsetsPerTrigger": "40"}, {"maxBytesPerTrigger": "400"}])
def test_batches_have_the_requested_size_or_are_refused(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path, limit: dict[str, str]
) -> None:
    warren.declare("versions-sized", STREAM)
    warren.publish("versions-sized", [b"0123456789"] * 100)
    with refused(BATCHES, NO_SIZE, *limit):
        sizes = to_parquet(reading(spark, warren, "versions-sized", **limit), tmp_path)
        assert sum(sizes) == 100
        # By bytes, approximately: a message is more than its body.
        assert max(sizes) <= 40
        assert len(sizes) >= 3


@pytest.mark.parametrize("mode", ["lease", "classic"])
def test_messages_of_a_queue_are_consumed_once_or_not_at_all(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path, mode: str
) -> None:
    warren.declare("versions-work")
    warren.publish("versions-work", numbered(0, 100))
    rows = reading(spark, warren, "versions-work", mode=mode)
    with refused(BATCHES, NO_QUEUES, f"mode={mode}", "This Spark can read streams"):
        to_parquet(rows, tmp_path)
        assert bodies(spark, tmp_path) == list(range(100))
    assert warren.count("versions-work") == (0 if VERSION >= BATCHES else 100)
    waiting = spark.read.format("warren").options(**warren.options).load("versions-work")
    assert waiting.count() == warren.count("versions-work")


def test_filters_are_pushed_down_or_refused(spark: SparkSession, warren: BrokerUnderTest) -> None:
    warren.declare("versions-filtered", STREAM)
    warren.publish("versions-filtered", numbered(0, 100))
    reader = spark.read.format("warren").options(**warren.options, minPartitions="2")
    spark.conf.set(PUSHDOWN, "true")
    try:
        with refused((4, 1), f"{HERE} passes no filters to a data source in Python", "pushdown"):
            rows = reader.option("pushdown", "true").load("versions-filtered").where("offset >= 90")
            assert rows.rdd.getNumPartitions() == 2
            assert [row.offset for row in rows.collect()] == list(range(90, 100))
            assert (
                reader.option("pushdown", "true").load("versions-filtered").where("offset < 0").count() == 0
            )
    finally:
        spark.conf.unset(PUSHDOWN)
    assert reader.option("pushdown", "false").load("versions-filtered").where("offset >= 90").count() == 10


def test_an_invalid_schema_is_reported_and_not_hidden_by_spark(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("versions-schema", STREAM)
    reader = spark.readStream.format("warren").options(**warren.options).schema("offset string")
    with pytest.raises(Exception, match=r".") as raised:
        to_parquet(reader.load("versions-schema"), tmp_path)
    assert reason(raised.value) == "the column 'offset' has the type bigint, not string"


def test_an_unsupported_archive_is_refused_before_its_folder_is_created(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("versions-kept")
    warren.publish("versions-kept", numbered(0, 10))
    warren.declare("versions-long", STREAM)
    warren.publish("versions-long", numbered(0, 10))
    place = {"uri": warren.options["uri"], "management_uri": warren.options["managementUri"], "once": True}
    cases: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("versions-kept", NO_QUEUES, {}), ("versions-long", NO_SIZE, {"batch_rows": 5}),
    )  # fmt: skip
    for queue, reported, given in cases:
        lake = tmp_path / queue
        with refused(BATCHES, reported):
            run(archive(spark, lake, queue=queue, **place, **given))
        assert lake.exists() == (VERSION >= BATCHES)
    run(archive(spark, tmp_path / "versions-long", queue="versions-long", **place))


def test_commands_report_in_one_line_what_a_version_cannot_do(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("versions-json")
    warren.publish("versions-json", [b'{"id":1}'])
    reported = {"WARREN_AMQP_URI": warren.options["uri"], "WARREN_URI": warren.options["managementUri"]}

    def said(*arguments: str) -> str:
        done = CliRunner().invoke(main, ["spark", *arguments], env=reported)
        assert (done.exit_code == 0) == (VERSION >= BATCHES), done.output
        return done.stderr.splitlines()[-1] if done.exit_code else "warren: "

    decoding = (
        "--schema",
        "id bigint",
        "--to",
        str(tmp_path / "json"),
        "--dead-letter-queue",
        "versions-json",
    )
    taking = ("--available-now", "--consume")
    commands = {
        ("archive", "--queue", "versions-json", "--to", str(tmp_path / "lake"), *taking): NO_QUEUES,
        ("decode", "--queue", "versions-json", *decoding, *taking): NO_QUEUES,
        (
            "init",
            str(tmp_path / "project"),
            "--queue",
            "versions-json",
        ): "a pipeline over a queue needs Spark 4.2",
    }
    for command, why in commands.items():
        line = said(*command)
        assert line.startswith("warren: ")
        assert VERSION >= BATCHES or why in line
