"""What every version of Spark keeps, and what an older one refuses: with the reason, and nothing is taken."""

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
def refused(since: tuple[int, int], *told: str) -> Iterator[None]:
    """What is within works since that version; before, it ends with one line that says all that is `told`."""
    if since <= VERSION:
        yield
        return
    with pytest.raises(Exception, match=r".") as raised:
        yield
    line = reason(raised.value)
    for text in (*told, f"Spark {since[0]}.{since[1]} or newer"):
        assert text in line


def reading(spark: SparkSession, place: BrokerUnderTest, queue: str, **given: str) -> DataFrame:
    """What a streaming query begins with."""
    return spark.readStream.format("warren").options(**place.options).options(**given).load(queue)


def run(query: StreamingQuery) -> list[int]:
    """Wait for it; how many rows its batches had."""
    assert query.awaitTermination(200)
    return [size for one in query.recentProgress if (size := one["numInputRows"])]


def to_parquet(rows: DataFrame, folder: Path) -> list[int]:
    """Write what is there now; how many rows the batches had."""
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return run(writer.trigger(availableNow=True).start(str(folder / "out")))


def bodies(spark: SparkSession, folder: Path) -> list[int]:
    """What was written."""
    return sorted(int(row.body) for row in spark.read.parquet(str(folder / "out")).collect())


def test_a_session_that_has_found_the_source_by_itself_may_be_told_of_it(spark: SparkSession) -> None:
    for _ in range(2):
        register(spark)
        assert len(spark.read.format("warren").option("queue", "any").load().columns) == len(COLUMNS)


@pytest.mark.parametrize("transport", ["arrow", "amqp"])
def test_a_query_takes_a_stream_once_and_goes_on_where_it_was(
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
def test_a_stream_that_was_declared_again_ends_the_query_and_is_not_read_from_the_middle(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path, transport: str
) -> None:
    queue = f"versions-again-{transport}"
    warren.declare(queue, STREAM)
    warren.publish(queue, numbered(0, 100))
    rows = reading(spark, warren, queue, transport=transport)
    to_parquet(rows, tmp_path)
    warren.declare(queue, STREAM)
    # Over AMQP it is seen while it is shorter.
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


def test_a_write_that_is_run_again_publishes_nothing_a_second_time(
    spark: SparkSession, warren: BrokerUnderTest
) -> None:
    warren.declare("versions-once")
    rows = spark.range(200, numPartitions=2).selectExpr("cast(id as string) as body")
    for _ in range(2):
        writer = rows.write.format("warren").options(**warren.options, txn="staged", txnId="once")
        writer.mode("append").save("versions-once")
    assert sorted(int(row["body"]) for row in rows_of(warren, "versions-once")) == list(range(200))


@pytest.mark.parametrize("limit", [{"maxOffsetsPerTrigger": "40"}, {"maxBytesPerTrigger": "400"}])
def test_batches_have_a_size_or_are_refused(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path, limit: dict[str, str]
) -> None:
    warren.declare("versions-sized", STREAM)
    warren.publish("versions-sized", [b"0123456789"] * 100)
    with refused(BATCHES, NO_SIZE, *limit):
        sizes = to_parquet(reading(spark, warren, "versions-sized", **limit), tmp_path)
        assert sum(sizes) == 100
        # By bytes, about: a message is more than its body.
        assert max(sizes) <= 40
        assert len(sizes) >= 3


@pytest.mark.parametrize("mode", ["lease", "classic"])
def test_messages_are_taken_out_of_a_queue_once_or_not_at_all(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path, mode: str
) -> None:
    warren.declare("versions-work")
    warren.publish("versions-work", numbered(0, 100))
    rows = reading(spark, warren, "versions-work", mode=mode)
    with refused(BATCHES, NO_QUEUES, f"mode={mode}", "A stream can be read"):
        to_parquet(rows, tmp_path)
        assert bodies(spark, tmp_path) == list(range(100))
    assert warren.count("versions-work") == (0 if VERSION >= BATCHES else 100)
    waiting = spark.read.format("warren").options(**warren.options).load("versions-work")
    assert waiting.count() == warren.count("versions-work")


def test_filters_are_sent_or_refused(spark: SparkSession, warren: BrokerUnderTest) -> None:
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


def test_what_is_wrong_with_a_schema_is_told_and_not_hidden_by_spark(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("versions-schema", STREAM)
    reader = spark.readStream.format("warren").options(**warren.options).schema("offset string")
    with pytest.raises(Exception, match=r".") as raised:
        to_parquet(reader.load("versions-schema"), tmp_path)
    assert reason(raised.value) == "the column 'offset' has the type bigint, not string"


def test_an_archive_of_a_queue_or_in_batches_of_a_size_is_refused_before_it_has_a_folder(
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
    for queue, told, given in cases:
        lake = tmp_path / queue
        with refused(BATCHES, told):
            run(archive(spark, lake, queue=queue, **place, **given))
        assert lake.exists() == (VERSION >= BATCHES)
    run(archive(spark, tmp_path / "versions-long", queue="versions-long", **place))


def test_commands_say_in_one_line_what_a_version_cannot_do(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("versions-json")
    warren.publish("versions-json", [b'{"id":1}'])
    told = {"WARREN_AMQP_URI": warren.options["uri"], "WARREN_URI": warren.options["managementUri"]}

    def said(*arguments: str) -> str:
        done = CliRunner().invoke(main, ["spark", *arguments], env=told)
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
