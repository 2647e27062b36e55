"""The connector with a real RabbitMQ: streams and classic queues over AMQP."""

import json
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.brokers import STREAM, BrokerUnderTest
from tests.spark.relay import relayed

from pyspark_warren.options import write_options
from pyspark_warren.sink import checked_write_options

pytestmark = [pytest.mark.rabbitmq, pytest.mark.versions]


@pytest.fixture(scope="module")
def stream(spark: SparkSession, rabbitmq: BrokerUnderTest) -> str:
    """A stream with 2,000 messages that Spark has published."""
    rabbitmq.declare("numbers", STREAM)
    frame = spark.range(2_000, numPartitions=2).selectExpr(
        "cast(id as string) as body",
        "concat('id-', id) as message_id",
        "'text/plain' as content_type",
        "'en' as content_encoding",
        "cast(id % 10 as int) as priority",
        "timestamp_seconds(1000000000 + id) as timestamp",
        "map('n', cast(id as string)) as headers",
        """'{"count":{"$I":5}}' as headers_json""",
    )
    frame.write.format("warren").options(**rabbitmq.options).mode("append").save("numbers")
    return "numbers"


def test_written_rows_are_read_with_all_their_properties(
    spark: SparkSession, rabbitmq: BrokerUnderTest, stream: str
) -> None:
    found = spark.read.format("warren").options(**rabbitmq.options).option("minPartitions", 2).load(stream)
    assert found.rdd.getNumPartitions() == 2
    rows = found.selectExpr("*", "unix_seconds(timestamp) as seconds").collect()
    assert sorted(row.offset for row in rows) == list(range(2_000))
    assert len({row.headers["x-spark-txn"] for row in rows}) == 2_000
    row = next(row for row in rows if row.body == b"17")
    assert (row.queue, row.exchange, row.routing_key) == ("numbers", "", "numbers")
    assert (row.message_id, row.content_type, row.content_encoding) == ("id-17", "text/plain", "en")
    assert (row.priority, row.delivery_mode, row.seconds) == (7, 2, 1_000_000_017)
    assert (row.headers["n"], row.headers["count"]) == ("17", "5")
    typed = json.loads(row.headers_json)
    assert typed.pop("x-spark-txn") == row.headers["x-spark-txn"]
    assert typed == {"n": "17", "count": {"$I": 5}}
    assert row.correlation_id is None
    assert row.broker_timestamp is None


def test_a_range_and_selected_columns_are_read(
    spark: SparkSession, rabbitmq: BrokerUnderTest, stream: str
) -> None:
    reader = spark.read.format("warren").options(**rabbitmq.options).option("columns", "offset,body")
    places = [f'{{"v":1,"s":{{"//{stream}":{{"next":{next_}}}}}}}' for next_ in (100, 110)]
    found = reader.option("startingOffsets", places[0]).option("endingOffsets", places[1]).load(stream)
    assert found.columns == ["offset", "body"]
    assert [row.offset for row in found.collect()] == list(range(100, 110))


@pytest.mark.since((4, 2), "batches of a size")
def test_a_query_reads_a_stream_in_batches_and_continues_where_it_was(
    spark: SparkSession, rabbitmq: BrokerUnderTest, tmp_path: Path
) -> None:
    rabbitmq.declare("growing", STREAM)
    reader = spark.readStream.format("warren").options(**rabbitmq.options).option("maxOffsetsPerTrigger", 400)
    for start in (0, 1_000):
        rabbitmq.publish("growing", [b"%d" % number for number in range(start, start + 1_000)])
        query = (
            reader.load("growing")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        assert query.awaitTermination(90)
        sizes = [progress["numInputRows"] for progress in query.recentProgress]
        assert [size for size in sizes if size] == [400, 400, 200]
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.offset for row in found) == list(range(2_000))
    assert {row.body for row in found} == {b"%d" % number for number in range(2_000)}


@pytest.mark.since((4, 2), "queries over queues")
def test_a_query_acknowledges_committed_messages_only(
    spark: SparkSession, rabbitmq: BrokerUnderTest, tmp_path: Path
) -> None:
    rabbitmq.declare("work")
    rabbitmq.publish("work", [b"%d" % number for number in range(1_000)])
    reader = spark.readStream.format("warren").options(**rabbitmq.options).option("maxOffsetsPerTrigger", 600)
    query = (
        reader.load("work")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    assert query.awaitTermination(90)
    assert rabbitmq.count("work") == 0
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(int(row.body) for row in found) == list(range(1_000))
    assert sorted(row.offset for row in found) == list(range(1_000))


def test_an_unroutable_message_fails_the_write(spark: SparkSession, rabbitmq: BrokerUnderTest) -> None:
    frame = spark.createDataFrame([("x",)], "body string")
    writer = frame.write.format("warren").options(**rabbitmq.options).option("exchange", "amq.direct")
    with pytest.raises(PySparkException, match="312 NO_ROUTE"):
        writer.option("routingKey", "nobody").mode("append").save()
    writer.option("routingKey", "nobody").option("mandatory", "false").mode("append").save()


@pytest.mark.since((4, 2), "queries over queues")
def test_a_run_reads_all_ready_messages_although_its_connection_breaks(
    spark: SparkSession, rabbitmq: BrokerUnderTest, tmp_path: Path
) -> None:
    rabbitmq.declare("breaking")
    rabbitmq.publish("breaking", [b"%d" % number for number in range(2_000)])
    found: list[bytes] = []
    with relayed(rabbitmq.port) as relay:

        def keep(rows: DataFrame, batch: int) -> None:
            found.extend(row.body for row in rows.select("body").collect())
            if batch in (1, 3):
                relay.cut()

        uri = f"amqp://guest:guest@127.0.0.1:{relay.port}/%2f"
        reader = spark.readStream.format("warren").options(**rabbitmq.options | {"uri": uri})
        query = (
            reader.option("maxOffsetsPerTrigger", 400)
            .load("breaking")
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(90)
    assert set(found) == {b"%d" % number for number in range(2_000)}
    # Messages that were not acknowledged when the connection broke are read again.
    assert len(found) >= 2_800
    assert rabbitmq.count("breaking") == 0


def test_staged_publish_is_refused_with_the_alternatives(rabbitmq: BrokerUnderTest) -> None:
    options = write_options(rabbitmq.options | {"queue": "numbers", "txn": "staged"})
    with pytest.raises(ValueError, match=r"txn=staged needs Warren: RabbitMQ 3\.\S+ at .* txn=dedupe"):
        checked_write_options(options)
