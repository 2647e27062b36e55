"""Options that select what is read, and in which batches, with a real Warren."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.brokers import STREAM, BrokerUnderTest
from tests.warren_process import free_port, running_warren

from pyspark_warren.amqp import CHANNEL
from pyspark_warren.arrow import ArrowStreams
from pyspark_warren.filters import NO_FILTERS
from pyspark_warren.http import HttpApi, HttpApiError, path
from pyspark_warren.mode_detection import detect_strategy
from pyspark_warren.options import ReadOptions, read_options
from pyspark_warren.partitions import ReadPartition, StreamPartition
from pyspark_warren.stream_source import StreamSource
from pyspark_warren.streams import DataLoss, OffsetRange, StreamBounds
from warren.client.errors import BrokerRefused
from warren.wire.methods import ExchangeDeclare, ExchangeDeclareOk, QueueBind, QueueBindOk

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
SHOW_ONE = r"set it with 'tls\.certFile' and 'tls\.keyFile'"
SHORT = STREAM | {"x-max-length-bytes": 20_000, "x-stream-max-segment-size-bytes": 10_000}


def source(options: ReadOptions) -> StreamSource:
    """A query over streams, as a driver has it."""
    return StreamSource(options, detect_strategy(options, is_streaming=True))


def bodies(partitions: list[ReadPartition], options: ReadOptions) -> list[bytes]:
    """The bodies that the tasks of a batch read."""
    return [
        row["body"]
        for part in partitions
        for batch in part.read(options, ("offset", "body"))
        for row in batch.to_pylist()
    ]


def ranges(partitions: list[ReadPartition]) -> list[tuple[str, int, int]]:
    """The ranges of offsets of the tasks."""
    found = [part.range for part in partitions if isinstance(part, StreamPartition)]
    return [(one.queue, one.start, one.end) for one in found]


@pytest.fixture(scope="module")
def super_stream(warren: BrokerUnderTest) -> str:
    """Three streams behind one exchange, with ten, twenty and thirty messages."""
    with warren.link() as link:
        link.call(CHANNEL, ExchangeDeclare(exchange="visits", durable=True), ExchangeDeclareOk)
    for number in range(3):
        name = f"visits-{number}"
        warren.declare(name, STREAM)
        with warren.link() as link:
            bind = QueueBind(queue=name, exchange="visits", routing_key=str(number))
            link.call(CHANNEL, bind, QueueBindOk)
        warren.publish(name, [b"%d:%d" % (number, at) for at in range(10 * (number + 1))])
    return "visits"


@pytest.mark.versions
def test_a_super_stream_is_read_as_one(
    spark: SparkSession, warren: BrokerUnderTest, super_stream: str
) -> None:
    reader = spark.read.format("warren").options(**warren.options).option("superStream", super_stream)
    counts = {row.queue: row["count"] for row in reader.load().groupBy("queue").count().collect()}
    assert counts == {"visits-0": 10, "visits-1": 20, "visits-2": 30}


def test_batches_of_several_streams_take_a_proportional_share_of_each(
    warren: BrokerUnderTest, super_stream: str
) -> None:
    options = read_options(warren.options | {"superStream": super_stream, "minPartitions": "6"})
    query = source(options)
    end = query.latest_offset(query.initial_offset(), 30, None)
    assert {key: place["next"] for key, place in end["s"].items()} == {
        "//visits-0": 5, "//visits-1": 10, "//visits-2": 15,
    }  # fmt: skip
    partitions = query.partitions(query.initial_offset(), end)
    assert len(partitions) == 6
    assert len(bodies(partitions, options)) == 30


def test_planning_a_batch_takes_one_request_per_stream(
    warren: BrokerUnderTest, super_stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    look = ArrowStreams.bounds

    def counting_bounds(streams: ArrowStreams, queue: str, expected: int = 0) -> StreamBounds:
        looked.append(queue)
        return look(streams, queue, expected)

    monkeypatch.setattr(ArrowStreams, "bounds", counting_bounds)
    options = read_options(warren.options | {"superStream": super_stream, "transport": "arrow"})
    query = source(options)
    assert len(bodies(query.batch(NO_FILTERS), options)) == 60
    assert sorted(looked) == ["visits-0", "visits-1", "visits-2"]
    query.batch(NO_FILTERS)
    assert len(looked) == 6


def test_a_missing_super_stream_is_reported(warren: BrokerUnderTest) -> None:
    with pytest.raises(ValueError, match="no super stream 'nothing-there' in vhost '/'"):
        source(read_options(warren.options | {"superStream": "nothing-there"}))


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"mode": "stream"}, "'plain-queue' is a classic queue, not a stream"),
        ({"startingOffsets": "latest"}, "need a stream: with mode=lease a queue is read from its head"),
        ({"endingTimestamp": "2026-01-01"}, "need a stream"),
    ],
)
def test_a_queue_is_not_read_as_a_stream(
    warren: BrokerUnderTest, given: dict[str, str], reported: str
) -> None:
    warren.declare("plain-queue")
    with pytest.raises(ValueError, match=reported):
        detect_strategy(read_options(warren.options | {"queue": "plain-queue"} | given), is_streaming=True)


def test_a_streaming_query_refuses_options_for_an_end(warren: BrokerUnderTest) -> None:
    warren.declare("endless", STREAM)
    with pytest.raises(ValueError, match="decides when the query ends"):
        source(read_options(warren.options | {"queue": "endless", "endingTimestamp": "2026-01-01"}))


def test_a_user_without_access_to_the_http_api_gets_advice(warren: BrokerUnderTest) -> None:
    warren.declare("orders-of-many")
    warren.put("/api/users/untagged", {"password": "secret", "tags": ""})
    warren.put("/api/permissions/%2F/untagged", {"configure": "", "write": "", "read": ".*"})
    options = read_options(warren.options | {"queue": "orders-of-many", "mode": "lease"})
    target = replace(options.broker.target, user="untagged", password="secret")
    options = replace(options, broker=replace(options.broker, target=target))
    with pytest.raises(ValueError, match=r"Not management user.*the tag 'management'.*transport=amqp"):
        detect_strategy(options, is_streaming=True)


def test_a_read_begins_and_ends_at_given_times(warren: BrokerUnderTest) -> None:
    warren.declare("timed", STREAM)
    warren.publish("timed", [b"before"] * 5)
    since = int(time.time() * 1000) + 1
    _pass(since)
    warren.publish("timed", [b"within"] * 7)
    until = int(time.time() * 1000) + 1
    _pass(until)
    warren.publish("timed", [b"behind"] * 9)
    given = {"queue": "timed", "startingTimestamp": str(since), "endingTimestamp": str(until)}
    for transport in ("arrow", "amqp"):
        options = read_options(warren.options | given | {"transport": transport, "mode": "stream"})
        query = StreamSource(options, detect_strategy(options, is_streaming=False))
        found = bodies(query.batch(NO_FILTERS), options)
        # Over AMQP times are whole seconds: there may be more rows at both ends.
        assert found.count(b"within") == 7 if transport == "arrow" else set(found) <= {b"before", b"within"}
        assert transport == "amqp" or len(found) == 7


def _pass(moment: int) -> None:
    """Return when the clock has passed `moment` (ms)."""
    while time.time() * 1000 <= moment:
        time.sleep(0.001)


def test_batches_have_approximately_the_requested_size(warren: BrokerUnderTest) -> None:
    warren.declare("weighed", STREAM)
    warren.publish("weighed", [b"x" * 1_000] * 500)
    options = read_options(warren.options | {"queue": "weighed", "maxBytesPerTrigger": "100000"})
    query = source(options)
    at, sizes = query.initial_offset(), []
    while (end := query.latest_offset(at, None, options.bytes_max)) != at:
        sizes.append(sum(map(len, bodies(query.partitions(at, end), options))))
        at = end
    assert sum(sizes) == 500_000
    assert all(80_000 <= size <= 100_000 for size in sizes[:-1])


def test_a_batch_has_the_requested_number_of_tasks_and_none_is_empty(warren: BrokerUnderTest) -> None:
    warren.declare("shared", STREAM)
    warren.publish("shared", [b"%d" % number for number in range(10)])
    query = source(read_options(warren.options | {"queue": "shared", "minPartitions": "4"}))
    end = query.latest_offset(query.initial_offset(), None, None)
    assert ranges(query.partitions(query.initial_offset(), end)) == [
        ("shared", 0, 2), ("shared", 2, 5), ("shared", 5, 7), ("shared", 7, 10),
    ]  # fmt: skip
    one = query.latest_offset(query.initial_offset(), 1, None)
    assert ranges(query.partitions(query.initial_offset(), one)) == [("shared", 0, 1)]


def test_messages_lost_to_retention_end_the_query_or_are_left_out(warren: BrokerUnderTest) -> None:
    warren.declare("short", SHORT)
    # Retention removes whole segments, at the next maintenance.
    for number in range(200):
        warren.publish("short", [b"%d" % number * 200] * 100)
        bounds = ArrowStreams(warren.broker).bounds("short")
        if bounds.first and number > 10:
            break
    before = None
    while before != bounds:
        before, bounds = bounds, ArrowStreams(warren.broker).bounds("short")
    assert 0 < bounds.first < bounds.committed
    start = '{"v":1,"s":{"//short":{"next":0}}}'
    given = {"queue": "short", "startingOffsets": start}
    strict = read_options(warren.options | given)
    query = source(strict)
    lost = f"0 to {bounds.first - 1} of the stream 'short'"
    with pytest.raises(DataLoss, match=lost):
        query.partitions(query.initial_offset(), query.committed())
    # Planned before retention removed it: the broker answers 410, which the task reports as lost data.
    late = OffsetRange(queue="short", epoch=bounds.epoch, start=0, end=bounds.committed, is_loss_fatal=True)
    with pytest.raises(DataLoss, match=lost):
        list(ArrowStreams(warren.broker).read(late, ("offset",)))
    lax = read_options(warren.options | given | {"failOnDataLoss": "false"})
    query = source(lax)
    found = bodies(query.partitions(query.initial_offset(), query.committed()), lax)
    assert len(found) == bounds.committed - bounds.first


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with filter pushdown for Python sources."""
    spark.conf.set(PUSHDOWN, "true")
    yield spark
    spark.conf.unset(PUSHDOWN)


@pytest.mark.versions
@pytest.mark.since((4, 1), "filters")
def test_filters_reduce_what_the_broker_is_asked_for(
    pushing: SparkSession, warren: BrokerUnderTest, super_stream: str
) -> None:
    def rows(condition: str) -> DataFrame:
        # Each from a separate load: Spark 4.3 keeps the filters of one query for the next one without any.
        reader = pushing.read.format("warren").options(**warren.options).option("pushdown", "true")
        loaded = reader.option("superStream", super_stream).option("minPartitions", 3).load()
        return loaded.where(condition)

    some = rows("queue = 'visits-2' and offset >= 5 and offset < 8")
    assert some.rdd.getNumPartitions() == 3
    assert sorted(row.body for row in some.collect()) == [b"2:5", b"2:6", b"2:7"]
    assert rows("routing_key in ('visits-0', 'none') and exchange = ''").count() == 10
    assert rows("routing_key = 'none' or offset < 0").count() == 0
    assert rows("broker_timestamp > '2001-01-01' and broker_timestamp < '2101-01-01'").count() == 60
    assert rows("broker_timestamp < '2001-01-01'").count() == 0
    # Spark makes one task of an empty result.
    assert rows("broker_timestamp < '2001-01-01'").rdd.getNumPartitions() == 1
    assert rows("offset = 29 or body = cast('0:0' as binary)").count() == 2


@pytest.mark.versions
@pytest.mark.since((4, 1), "filters")
def test_disabled_filter_pushdown_is_reported(
    spark: SparkSession, warren: BrokerUnderTest, super_stream: str
) -> None:
    reader = spark.read.format("warren").options(**warren.options).option("pushdown", "true")
    with pytest.raises(PySparkException, match=PUSHDOWN):
        reader.option("superStream", super_stream).load().count()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerUnderTest, Path]]:
    """A Warren with TLS listeners only, and the directory with its certificate."""
    folder = tmp_path_factory.mktemp("secured")
    authority = trustme.CA()
    server, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("127.0.0.1")
    server.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    client.private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    port, management, https = free_port(), free_port(), free_port()
    settings = {
        "listeners.ssl.default": f"127.0.0.1:{port}",
        "management.ssl.port": str(https),
        "management.ssl.ip": "127.0.0.1",
    }
    for prefix in ("ssl_options", "management.ssl"):
        settings |= {
            f"{prefix}.certfile": str(folder / "server.pem"),
            f"{prefix}.keyfile": str(folder / "server.pem"),
            f"{prefix}.cacertfile": str(folder / "ca.pem"),
            f"{prefix}.verify": "verify_peer",
            f"{prefix}.fail_if_no_peer_cert": "true",
        }
    arguments = ("--data-dir", str(folder / "data"), "--management-port", str(management))
    with running_warren(folder, settings, arguments=arguments) as plain:
        BrokerUnderTest(plain.port, management).declare("secret", STREAM)
        BrokerUnderTest(plain.port, management).declare("secret-rows", {})
        BrokerUnderTest(plain.port, management).publish("secret", [b"%d" % number for number in range(100)])
        yield BrokerUnderTest(port, https), folder


def test_tls_verifies_the_broker_and_presents_a_certificate(secured: tuple[BrokerUnderTest, Path]) -> None:
    place, folder = secured
    known = {
        "uri": f"amqps://guest:guest@127.0.0.1:{place.port}/%2f",
        "managementUri": place.options["managementUri"].replace("http:", "https:"),
        "queue": "secret",
        "mode": "stream",
        "retries": "0",
        "tls.caFile": str(folder / "ca.pem"),
    }
    shown = {"tls.certFile": str(folder / "client.pem"), "tls.keyFile": str(folder / "client.pem")}
    for transport in ("amqp", "auto"):
        options = read_options(known | shown | {"transport": transport})
        query = source(options)
        assert len(bodies(query.partitions(query.initial_offset(), query.committed()), options)) == 100
    with pytest.raises(BrokerRefused, match=SHOW_ONE):
        source(read_options(known | {"transport": "amqp", "retries": "16"})).initial_offset()
    with pytest.raises(HttpApiError, match=SHOW_ONE) as refused:
        HttpApi(read_options(known | {"retries": "16"}).broker).get(path("whoami"))
    # Retrying would not help.
    assert refused.value.status == -1
    stranger = folder / "other.pem"
    trustme.CA().cert_pem.write_to_path(stranger)
    with pytest.raises(
        BrokerRefused, match=r"certificate verify failed.*trusted certificates with 'tls\.caFile'"
    ):
        source(
            read_options(known | shown | {"tls.caFile": str(stranger), "transport": "amqp"})
        ).initial_offset()
    unchecked = known | shown | {"tls.caFile": str(stranger), "tls.verify": "false", "transport": "amqp"}
    assert source(read_options(unchecked)).initial_offset()["s"]["//secret"]["next"] == 0


def test_rows_are_read_and_written_over_https_with_a_private_authority_and_a_certificate(
    spark: SparkSession, secured: tuple[BrokerUnderTest, Path]
) -> None:
    place, folder = secured
    known = {
        "uri": f"amqps://guest:guest@127.0.0.1:{place.port}/%2f",
        "managementUri": place.options["managementUri"].replace("http:", "https:"),
        "tls.caFile": str(folder / "ca.pem"),
        "tls.certFile": str(folder / "client.pem"),
    }
    rows = spark.range(10, numPartitions=2).selectExpr("cast(id as string) as body")
    writer = rows.write.format("warren").options(**known).option("txn", "staged").mode("append")
    writer.save("secret-rows")
    read = spark.read.format("warren").options(**known).option("transport", "arrow").load("secret-rows")
    assert {int(row.body) for row in read.collect()} == set(range(10))
