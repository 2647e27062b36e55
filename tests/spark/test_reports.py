"""Reports over queues, streams and archives, as commands print them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from tests.spark.brokers import STREAM, BrokerUnderTest

from pyspark_warren.amqp import CHANNEL
from pyspark_warren.pipelines import dlx_report, rollup
from warren.cli.main import main
from warren.client.raw_frames import method_frame
from warren.wire.methods import BasicCancel, BasicCancelOk, BasicConsume, BasicConsumeOk, BasicReject

pytestmark = pytest.mark.versions
DEAD = "queue string, routing_key string, headers map<string,string>, broker_timestamp timestamp"


def reported(place: BrokerUnderTest, *arguments: str) -> Any:
    """The JSON output of a command, which uses the present session."""
    where = ["--uri", place.options["uri"], "--management-uri", place.options["managementUri"]]
    ended = CliRunner().invoke(main, ["spark", *arguments, *where, "--json", "--quiet"])
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.output)


def refused(place: BrokerUnderTest, *arguments: str) -> tuple[int, str]:
    """The status and the error of a command that fails."""
    where = ["--uri", place.options["uri"], "--management-uri", place.options["managementUri"]]
    ended = CliRunner().invoke(main, ["spark", *arguments, *where, "--quiet"])
    return ended.exit_code, ended.output


@pytest.fixture(scope="module")
def dead_letter_queue(warren: BrokerUnderTest) -> str:
    """A queue with two rejected messages, and one that is not a dead letter."""
    warren.declare("graveyard")
    arguments: dict[str, object] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graveyard"}
    warren.declare("doomed", arguments)
    warren.publish("doomed", [b"1", b"2"])
    with warren.link() as link:
        link.call(CHANNEL, BasicConsume(queue="doomed", consumer_tag="rejecting"), BasicConsumeOk)
        for tag in (1, 2):
            link.socket.sendall(method_frame(CHANNEL, BasicReject(delivery_tag=tag, requeue=False)))
        link.call(CHANNEL, BasicCancel(consumer_tag="rejecting"), BasicCancelOk)
    warren.publish("graveyard", [b"alive"])
    return "graveyard"


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def test_the_cause_of_a_dead_letter_is_its_first_death(spark: SparkSession) -> None:
    deaths = json.dumps([
        {"count": {"$I": 3}, "reason": "rejected", "queue": "retry", "exchange": "x", "time": {"$T": 2000}},
        {"count": 1, "reason": "expired", "queue": "first", "exchange": "y", "time": {"$T": 500},
         "routing-keys": ["key"]},
    ])  # fmt: skip
    again = {"x-death": deaths, "x-first-death-queue": "retry", "x-first-death-reason": "rejected"}
    lost = {"x-first-death-queue": "lost", "x-first-death-reason": "maxlen"}
    headers = [{"x-death": deaths, "tenant": "acme"}, again, lost, {}, None]
    messages = spark.createDataFrame([("dead", "dlx", one, None) for one in headers], DEAD)
    found = {row["queue"]: row for row in rows(dlx_report.report(messages))}
    first = found["first"]
    assert (first["reason"], first["exchange"], first["deaths"]) == ("expired", "y", 4)
    assert (first["first_death"].second, first["routing_keys"]) == (20, ["key"])
    assert (found["retry"]["reason"], found["retry"]["first_death"].minute) == ("rejected", 33)
    assert (found["lost"]["deaths"], found["lost"]["exchange"]) == (1, None)
    assert (found[None]["messages"], found[None]["deaths"]) == (2, None)
    windows = rows(dlx_report.report(messages, ["headers.tenant"], "30 minutes"))
    assert [(row["window"].minute, row["headers.tenant"]) for row in windows] == [(0, "acme"), (30, None)]
    with pytest.raises(ValueError, match=r"cannot group by 'tenant': use queue, .* or headers.NAME"):
        dlx_report.report(messages, ["tenant"])


def test_dead_letters_are_counted_and_left_in_place(
    spark: SparkSession, warren: BrokerUnderTest, dead_letter_queue: str
) -> None:
    (found,) = reported(warren, "dlx-report", "--queue", dead_letter_queue)
    assert (found["queue"], found["reason"], found["exchange"]) == ("doomed", "rejected", "")
    assert (found["messages"], found["deaths"], found["routing_keys"]) == (2, 2, ["doomed"])
    assert warren.count(dead_letter_queue) == 3
    assert refused(warren, "dlx-report", "--queue", dead_letter_queue, "--by", "tenant")[0] == 2
    assert refused(warren, "dlx-report") == (2, "warren: give at least one of --queue, --stream and --lake\n")
    status, said = refused(warren, "dlx-report", "--queue", "nowhere")
    assert (status, said) == (1, "warren: there is no queue 'nowhere' in vhost '/'\n")


def test_a_query_joins_a_queue_a_stream_and_a_lake_and_consumes_nothing(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    for name, arguments in (("orders.new", None), ("customers", STREAM)):
        warren.declare(name, arguments)
    warren.publish("orders.new", [b'{"id": %d, "customer": %d}' % (id, id % 2) for id in range(6)])
    warren.publish("customers", [b'{"id": 0, "name": "Ada"}', b'{"id": 1, "name": "Bo"}'])
    spark.sql("select '007' as customer, 'x' as queue").write.partitionBy("queue").parquet(f"{tmp_path}/lake")
    query = """
        select c.body:name as name, count(*) as orders, any_value(l.customer) as seen, 'queue.x' as text
        from queue.`orders.new` o -- not queue.this
        join stream.customers c on get_json_object(o.body, '$.customer') = get_json_object(c.body, '$.id')
        cross join past l where l.queue = 'x' group by 1 order by 1
    """.replace("c.body:name", "get_json_object(c.body, '$.name')")
    found = reported(warren, "sql", query, "--table", f"past=lake.{tmp_path}/lake")
    assert found == [
        {"name": "Ada", "orders": 3, "seen": "007", "text": "queue.x"},
        {"name": "Bo", "orders": 3, "seen": "007", "text": "queue.x"},
    ]
    assert warren.count("orders.new") == 6


def mapped(table: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a table whose column has another name in its files."""
    schema = json.loads(table["schemaString"])
    name = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    schema["fields"][0]["metadata"] = name
    return {
        **table,
        "schemaString": json.dumps(schema),
        "configuration": {"delta.columnMapping.mode": "name"},
    }


def test_a_damaged_delta_table_is_named(warren: BrokerUnderTest, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1, 2]}))
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text("{}\n{")
    status, text = refused(warren, "sql", f"select * from lake.`{tmp_path}`")
    assert status == 1
    assert f"the Delta table in '{tmp_path}' cannot be read" in text


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        ({"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}, "deletionVectors"),
        ({"readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"]}, "columnMapping"),
        ({}, "columnMapping"),
    ],
)
def test_a_delta_table_with_unsupported_features_is_refused(
    warren: BrokerUnderTest, tmp_path: Path, needed: dict[str, list[str]], said: str
) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1, 2]}))
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    for entry in entries:
        if "protocol" in entry and needed:
            entry["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **needed}
        elif "protocol" in entry:
            entry["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        elif "metaData" in entry and not needed:
            entry["metaData"] = mapped(entry["metaData"])
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    status, text = refused(warren, "sql", f"select * from lake.`{tmp_path}`")
    assert status == 1
    assert f"uses {said}, which is not supported" in text


def test_an_invalid_query_is_refused_in_one_line(spark: SparkSession, warren: BrokerUnderTest) -> None:
    assert reported(
        warren, "sql", "select struct(timestamp'2026-01-01 00:00:00' as t, 1.5 as d) as s, x'ff' as b"
    ) == [{"s": {"t": "2026-01-01 00:00:00", "d": "1.5"}, "b": "ff"}]
    status, said = refused(warren, "sql", "drop table x")
    assert status == 2
    assert "must begin with SELECT, WITH" in said
    status, said = refused(warren, "sql", "select nothing from queue.graveyard_of_nobody")
    assert status == 1
    assert said.count("\n") == 1
    assert "[UNRESOLVED_COLUMN" in said
    status, said = refused(warren, "sql", "select * from orders")
    assert status == 1
    assert said.count("\n") == 1
    assert said.endswith("Tables are queue.NAME, stream.NAME and lake.PATH\n")
    assert refused(warren, "sql", "select 1", "--table", "x=topic.y") == (
        2, "warren: a table must be queue.NAME, stream.NAME or lake.PATH, not 'topic.y'\n"
    )  # fmt: skip


COPY = {"exchange_name": "shop", "routing_keys": '["new"]'}
MESSAGE = (
    "queue string, exchange string, routing_key string, timestamp timestamp, broker_timestamp timestamp, "
    "message_id string, headers map<string,string>, body binary"
)


def test_latency_is_measured_from_the_timestamp_of_the_publisher_or_of_the_trace(
    spark: SparkSession,
) -> None:
    def at(seconds: float) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)

    milliseconds = int(at(0).timestamp() * 1000)
    known = COPY | {"properties": '{"message_id":"m1"}'}
    reported = COPY | {"properties": f'{{"headers":{{"timestamp_in_ms":{{"$L":{milliseconds}}}}}}}'}
    trace = "amq.rabbitmq.trace"
    messages = spark.createDataFrame(
        [
            ("t", trace, "publish.shop", None, at(1), None, known, b"abc"),
            ("t", trace, "deliver.a.b", None, at(1.5), None, known, b"abc"),
            ("t", trace, "deliver.a.b", None, at(3), None, reported, b"abc"),
            ("t", trace, "deliver.a.b", None, at(4), None, COPY, b"abcde"),
            ("q", "shop", "k", at(5), at(5.5), None, None, b"ab"),
            ("q", "shop", "k", at(20), at(19.5), None, None, b"ab"),
            ("q", "shop", "k", None, None, None, None, b"ab"),
        ],
        MESSAGE,
    )
    happened = rollup.events(messages).cache()
    by_queue = {row["kind"]: row for row in rows(happened)}
    assert by_queue["delivered"]["queue"] == "a.b"
    assert (by_queue["published"]["exchange"], by_queue["published"]["routing_key"]) == ("shop", "new")
    first, second, third, fourth = rows(rollup.rollup(happened, "10 seconds"))
    assert (first["kind"], first["messages"], first["per_second"]) == ("delivered", 3, 0.333)
    assert (first["latency_p50"], first["latency_p99"], first["latency_max"]) == (500.0, 3000.0, 3000.0)
    assert (first["size_p50"], first["size_max"], first["octets_per_second"]) == (3, 5, 1.2)
    assert (second["kind"], second["latency_p50"]) == ("message", 500.0)
    assert (third["kind"], third["latency_max"]) == ("published", None)
    assert (fourth["messages"], fourth["latency_max"]) == (1, 0.0)
    assert fourth["per_second"] == 0.1
    with pytest.raises(ValueError, match="cannot group by 'user': use kind, exchange, routing_key, queue"):
        rollup.rollup(happened, "10 seconds", ("user",))


def test_windows_at_the_edges_are_divided_by_their_observed_part(spark: SparkSession) -> None:
    # 100 in a second, from 0:58 to 2:03.
    moments = spark.range(6_500).selectExpr(
        "'message' as kind", "timestamp_micros(bigint(1767225658000000 + id * 10000)) as time", "10L as size",
        "null as latency_ms",
    )  # fmt: skip
    found = rows(rollup.rollup(moments, "1 minute"))
    assert [row["messages"] for row in found] == [200, 6_000, 300]
    assert [row["per_second"] for row in found] == [100.0] * 3
    assert [row["octets_per_second"] for row in found] == [1_000.0] * 3
    # The duration of a single moment is unknown.
    assert [row["per_second"] for row in rows(rollup.rollup(moments.limit(1), "10 seconds"))] == [0.1]


def test_a_rollup_of_a_stream_is_a_table_and_a_page(
    spark: SparkSession, warren: BrokerUnderTest, tmp_path: Path
) -> None:
    warren.declare("measured", STREAM)
    warren.publish("measured", [b"12345678"] * 50)
    html = tmp_path / "report.html"
    found = reported(
        warren, "rollup", "--stream", "measured", "--by", "queue", "--window", "1d", "--html", str(html)
    )
    assert sum(row["messages"] for row in found) == 50
    assert {(row["queue"], row["size_p50"], row["latency_p50"]) for row in found} == {("measured", 8, None)}
    assert "<dd>50</dd>" in html.read_text()
    assert refused(warren, "rollup", "--stream", "measured", "--window", "soon") == (
        2, "warren: a duration must be like 30s, 5m, 1h or 1d, not 'soon'\n"
    )  # fmt: skip
