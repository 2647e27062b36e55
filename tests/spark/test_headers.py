"""Headers become equal columns over AMQP and Arrow, from a stream and from a queue."""

from typing import Any

import pyarrow as pa
from tests.spark.brokers import STREAM, BrokerUnderTest

from pyspark_warren.amqp import CHANNEL
from pyspark_warren.amqp_publisher import AmqpPublisher
from pyspark_warren.classic_source import ClassicSource
from pyspark_warren.encoding import PublishEncoder
from pyspark_warren.lease_source import LeaseSource
from pyspark_warren.mode_detection import detect_strategy
from pyspark_warren.options import read_options
from pyspark_warren.stream_source import StreamSource

COLUMNS = ("headers", "headers_json")
HEADERS = (
    None,
    "{}",
    '{"z":{"$I":1},"a":"text","m":{"$x":"AP8="},"list":[true,null,{"b":1,"a":{}}]," ":""}',
    '{"b":{"$T":1577923200},"a":{"$D":"3.14"},"$I":{"$I":5},"ü":"\\"\\n"}',
)
WAYS = {
    "stream over Arrow": {"queue": "headers-s", "transport": "arrow"},
    "stream over AMQP": {"queue": "headers-s", "transport": "amqp", "mode": "stream"},
    "lease": {"queue": "headers-l"},
    "classic": {"queue": "headers-c", "mode": "classic"},
}


def read(place: BrokerUnderTest, **given: str) -> list[dict[str, Any]]:
    options = read_options(place.options | given)
    choice = detect_strategy(options, is_streaming=True)
    source: StreamSource | LeaseSource | ClassicSource
    if choice.mode == "classic":
        source = ClassicSource(options, choice, COLUMNS)
    else:
        source = LeaseSource(options, choice) if choice.mode == "lease" else StreamSource(options, choice)
    source.prepare_available_now()
    start = source.initial_offset()
    partitions = source.partitions(start, source.latest_offset(start, None, None))
    found = [row for part in partitions for batch in part.read(options, COLUMNS) for row in batch.to_pylist()]
    source.stop()
    return found


def test_headers_are_equal_over_all_transports(warren: BrokerUnderTest) -> None:
    warren.fan_out("headers", {"headers-s": STREAM, "headers-l": {}, "headers-c": {}})
    rows = pa.record_batch({"body": [b""] * len(HEADERS), "headers_json": pa.array(HEADERS, pa.string())})
    with AmqpPublisher(warren.broker) as publisher:
        encoder = PublishEncoder(
            channel=CHANNEL, frame_size_max=publisher.frame_size_max, is_mandatory=True, is_persistent=True
        )
        publisher.publish(encoder.encode(rows, ("headers", ""), None))
        publisher.finish()
    found = {way: read(warren, **given) for way, given in WAYS.items()}
    assert [row["headers_json"] for row in found["classic"]] == [None, None, *HEADERS[2:]]
    assert [row["headers"] is None for row in found["classic"]] == [True, True, False, False]
    for way, given in found.items():
        assert given == found["classic"], way
