"""The transports of the connector without Spark behave equally with RabbitMQ and with Warren."""

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.brokers import STREAM, BrokerUnderTest
from tests.spark.relay import relayed

from pyspark_warren.amqp import CHANNEL, connect
from pyspark_warren.amqp_publisher import AmqpPublisher, PublishFailed
from pyspark_warren.amqp_streams import AmqpStreams
from pyspark_warren.classic_source import ClassicSource
from pyspark_warren.encoding import PublishEncoder
from pyspark_warren.mode_detection import detect_strategy
from pyspark_warren.options import ReadOptions, read_options
from pyspark_warren.partitions import ReadPartition
from pyspark_warren.schema import COLUMNS
from pyspark_warren.stream_source import StreamSource
from pyspark_warren.streams import DataLoss, OffsetRange

EVERYTHING = tuple(COLUMNS)


@pytest.fixture(params=["rabbitmq", "warren"])
def place(request: pytest.FixtureRequest) -> BrokerUnderTest:
    """Each broker that is installed."""
    found: BrokerUnderTest = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def options(place: BrokerUnderTest) -> Callable[..., ReadOptions]:
    """Options of a reader of that broker over AMQP."""
    return lambda **given: read_options(place.options | {"transport": "amqp"} | given)


def rows(partitions: list[ReadPartition], options: ReadOptions) -> list[dict[str, Any]]:
    """The rows that the tasks of a batch read."""
    return [
        row for part in partitions for batch in part.read(options, EVERYTHING) for row in batch.to_pylist()
    ]


def numbered(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def test_a_stream_is_read_by_offsets_in_any_number_of_tasks(
    place: BrokerUnderTest, options: Callable[..., ReadOptions]
) -> None:
    place.declare("stream", STREAM)
    place.publish("stream", numbered(0, 5_000))
    wanted = options(queue="stream", minPartitions="3")
    source = StreamSource(wanted, detect_strategy(wanted, is_streaming=True))
    start = source.initial_offset()
    assert start == {"v": 1, "s": {"//stream": {"epoch": "", "next": 0}}}
    end = source.latest_offset(start, None, None)
    assert end["s"]["//stream"]["next"] == 5_000
    partitions = source.partitions(start, end)
    assert len(partitions) == 3
    found = rows(partitions, wanted)
    assert [row["offset"] for row in found] == list(range(5_000))
    assert [row["body"] for row in found] == numbered(0, 5_000)
    assert {(row["queue"], row["exchange"], row["routing_key"]) for row in found} == {
        ("stream", "", "stream")
    }


def test_batches_have_the_requested_size_and_end_where_they_were_planned(
    place: BrokerUnderTest, options: Callable[..., ReadOptions]
) -> None:
    place.declare("sized", STREAM)
    place.publish("sized", numbered(0, 1_000))
    wanted = options(queue="sized")
    source = StreamSource(wanted, detect_strategy(wanted, is_streaming=True))
    source.prepare_available_now()
    place.publish("sized", numbered(1_000, 1_500))
    at = source.initial_offset()
    ends = []
    while (end := source.latest_offset(at, 300, None)) != at:
        assert len(source.partitions(at, end)) == 1
        ends.append(end["s"]["//sized"]["next"])
        at = end
    assert ends == [300, 600, 900, 1_000]
    assert source.partitions(at, at) == []


def test_a_redeclared_stream_ends_the_query(
    place: BrokerUnderTest, options: Callable[..., ReadOptions]
) -> None:
    place.declare("again", STREAM)
    place.publish("again", numbered(0, 100))
    wanted = options(queue="again")
    source = StreamSource(wanted, detect_strategy(wanted, is_streaming=True))
    end = source.latest_offset(source.initial_offset(), None, None)
    place.declare("again", STREAM)
    place.publish("again", numbered(0, 10))
    with pytest.raises(DataLoss, match="deleted and declared again"):
        source.latest_offset(end, None, None)


def test_messages_lost_to_retention_are_reported(rabbitmq: BrokerUnderTest) -> None:
    small = STREAM | {"x-max-length-bytes": 20_000, "x-stream-max-segment-size-bytes": 10_000}
    rabbitmq.declare("short", small)
    for _ in range(20):
        rabbitmq.publish("short", [b"x" * 200] * 100)
    streams = AmqpStreams(rabbitmq.broker, None)
    bounds = streams.bounds("short")
    # RabbitMQ stores records of its own in a stream as well: offsets have gaps.
    assert 0 < bounds.first < bounds.committed
    lost = OffsetRange(queue="short", epoch="", start=0, end=bounds.committed, is_loss_fatal=True)
    with pytest.raises(DataLoss, match=f"0 to {bounds.first - 1} of the stream 'short'"):
        list(streams.read(lost, ("offset",)))
    rest = OffsetRange(queue="short", epoch="", start=0, end=bounds.committed, is_loss_fatal=False)
    found = [row["offset"] for batch in streams.read(rest, ("offset",)) for row in batch.to_pylist()]
    assert (found[0], found[-1], found) == (bounds.first, bounds.committed - 1, sorted(set(found)))


def test_the_end_of_a_stream_is_found_on_a_broker_that_answers_slowly(rabbitmq: BrokerUnderTest) -> None:
    rabbitmq.declare("slow", STREAM)
    rabbitmq.publish("slow", [b"x" * 500] * 2_000)
    with relayed(rabbitmq.port, delay_s=0.2) as relay:
        broker = replace(rabbitmq, port=relay.port).broker
        assert AmqpStreams(broker, None).bounds("slow").committed == 2_000


def test_messages_of_a_queue_are_acknowledged_when_the_next_batch_is_planned(
    place: BrokerUnderTest, options: Callable[..., ReadOptions]
) -> None:
    place.declare("work")
    place.publish("work", numbered(0, 1_000))
    wanted = options(queue="work", mode="classic")
    source = ClassicSource(wanted, detect_strategy(wanted, is_streaming=True), EVERYTHING)
    source.prepare_available_now()
    first = source.latest_offset(source.initial_offset(), 600, None)
    assert first == {"v": 1, "n": 600}
    assert source.latest_offset(source.initial_offset(), 600, None) == first
    assert [
        row["body"] for row in rows(source.partitions(source.initial_offset(), first), wanted)
    ] == numbered(0, 600)
    second = source.latest_offset(first, 600, None)
    found = rows(source.partitions(first, second), wanted)
    assert [row["offset"] for row in found] == list(range(600, 1_000))
    assert [row["body"] for row in found] == numbered(600, 1_000)
    assert source.partitions(source.initial_offset(), first) == []
    source.stop()
    assert place.count("work") == 400

    again = ClassicSource(wanted, detect_strategy(wanted, is_streaming=True), EVERYTHING)
    again.prepare_available_now()
    assert again.partitions(first, second) == []
    third = again.latest_offset(second, None, None)
    assert third == {"v": 1, "n": 1_400}
    assert {row["redelivered"] for row in rows(again.partitions(second, third), wanted)} == {True}
    assert again.latest_offset(third, None, None) == third
    again.stop()
    assert place.count("work") == 0


@pytest.mark.parametrize("prefetch", [20_000, 150])
@pytest.mark.parametrize("cuts", [{1}, {2, 4}, {1, 2, 3}])
def test_all_ready_messages_are_read_although_connections_break(
    place: BrokerUnderTest, prefetch: int, cuts: set[int]
) -> None:
    place.declare("cut")
    place.publish("cut", numbered(0, 1_000))
    found: list[bytes] = []
    again = 0
    with relayed(place.port) as relay:
        options = place.options | {"uri": f"amqp://guest:guest@127.0.0.1:{relay.port}/%2f"}
        wanted = read_options(options | {"queue": "cut", "mode": "classic", "prefetch": str(prefetch)})
        source = ClassicSource(wanted, detect_strategy(wanted, is_streaming=True), EVERYTHING)
        source.prepare_available_now()
        # Later messages belong to another run.
        place.publish("cut", numbered(1_000, 1_010))
        at, batch = source.initial_offset(), 0
        while (end := source.latest_offset(at, 200, None)) != at:
            bodies = [row["body"] for row in rows(source.partitions(at, end), wanted)]
            found += bodies
            at, batch = end, batch + 1
            if batch in cuts:
                # The batch is not acknowledged yet, and will be read again.
                relay.cut()
                assert source._consumer is not None
                source._consumer._thread.join()
                again += len(bodies)
        source.stop()
    assert set(numbered(0, 1_000)) - set(found) == set()
    # A batch is repeated for each cut, and the one before if its acknowledgement was in flight.
    assert 1_000 + again <= len(found) <= 1_010 + 2 * again


def test_headers_are_read_with_their_types(
    place: BrokerUnderTest, options: Callable[..., ReadOptions]
) -> None:
    place.declare("typed")
    typed = '{"n":{"$I":5},"x-death":[{"count":2,"queue":"q"}],"t":{"$T":7},"x":{"$x":"/w=="}}'
    with AmqpPublisher(place.broker) as publisher:
        encoder = PublishEncoder(
            channel=CHANNEL, frame_size_max=publisher.frame_size_max, is_mandatory=True, is_persistent=True
        )
        batch = pa.record_batch({"body": [b"x" * 300_000], "headers_json": [typed]})
        publisher.publish(encoder.encode(batch, ("", "typed"), None))
        publisher.finish()
    wanted = options(queue="typed", mode="classic")
    source = ClassicSource(wanted, detect_strategy(wanted, is_streaming=True), EVERYTHING)
    source.prepare_available_now()
    end = source.latest_offset(source.initial_offset(), None, None)
    (row,) = rows(source.partitions(source.initial_offset(), end), wanted)
    source.stop()
    assert json.loads(row["headers_json"]) == json.loads(typed)
    assert dict(row["headers"])["n"] == "5"
    assert len(row["body"]) == 300_000


@pytest.mark.parametrize("address", [("amq.direct", "nobody"), ("nothing", "x")])
def test_an_unroutable_message_is_reported(place: BrokerUnderTest, address: tuple[str, str]) -> None:
    with AmqpPublisher(place.broker) as publisher:
        size = publisher.frame_size_max
        encoder = PublishEncoder(channel=CHANNEL, frame_size_max=size, is_mandatory=True, is_persistent=True)
        publisher.publish(encoder.encode(pa.record_batch({"body": [b"x"]}), address, None))
        with pytest.raises(PublishFailed, match=r"312 NO_ROUTE|404 NOT_FOUND"):
            publisher.finish()


def test_a_silently_lost_broker_is_detected_within_a_minute(place: BrokerUnderTest) -> None:
    link = connect(place.broker)
    names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    idle, interval, count = (link.socket.getsockopt(socket.IPPROTO_TCP, name) for name in names)
    assert link.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert idle + interval * count <= 60
    link.close()


def test_the_type_of_a_queue_is_detected(place: BrokerUnderTest) -> None:
    place.declare("kind-stream", STREAM)
    place.declare("kind-classic")
    for queue, mode in (("kind-stream", "stream"), ("kind-classic", "classic")):
        wanted = read_options(place.options | {"queue": queue, "transport": "amqp"})
        assert detect_strategy(wanted, is_streaming=True).mode == mode
    with pytest.raises(ValueError, match="there is no queue 'kind-none'"):
        detect_strategy(
            read_options(place.options | {"queue": "kind-none", "transport": "amqp"}), is_streaming=True
        )
    pattern = read_options(place.options | {"queuePattern": "kind-.*", "transport": "amqp"})
    assert detect_strategy(pattern, is_streaming=True).queues == ("kind-stream",)
    taken = read_options(place.options | {"queue": "kind-classic", "mode": "classic", "transport": "amqp"})
    with pytest.raises(ValueError, match=r"trigger\(availableNow=True\)"):
        detect_strategy(taken, is_streaming=False)


def test_the_available_transport_of_a_broker_is_detected(place: BrokerUnderTest) -> None:
    place.declare("auto-stream", STREAM)
    place.publish("auto-stream", numbered(0, 10))
    wanted = read_options(place.options | {"queue": "auto-stream"})
    choice = detect_strategy(wanted, is_streaming=True)
    assert choice.mode == "stream"
    source = StreamSource(wanted, choice)
    end = source.latest_offset(source.initial_offset(), None, None)
    assert [row["body"] for row in rows(source.partitions(source.initial_offset(), end), wanted)] == numbered(
        0, 10
    )
