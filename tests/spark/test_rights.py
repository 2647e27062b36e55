"""The minimal permissions of the guide suffice for every strategy that the connector detects."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.spark.brokers import STREAM, BrokerUnderTest

from pyspark_warren.http import HttpApi, path
from pyspark_warren.lease_source import LeaseSource
from pyspark_warren.mode_detection import detect_strategy
from pyspark_warren.options import read_options, write_options
from pyspark_warren.sink import BatchWriter, WriteTask, checked_write_options, publish
from pyspark_warren.stream_source import StreamSource

# From the guide: docs/guide/spark.md, "Permissions".
READER = {"configure": "^$", "write": "^$", "read": "^(orders|events)$"}
WRITER = {"configure": "^$", "write": "^amq\\.default$", "read": "^$"}


@pytest.fixture
def least(warren: BrokerUnderTest) -> Iterator[BrokerUnderTest]:
    for user, permissions in (("reader", READER), ("writer", WRITER)):
        warren.put(path("users", user), {"password": "p", "tags": "management"})
        warren.put(path("permissions", "/", user), permissions)
    warren.declare("orders")
    warren.declare("events", STREAM)
    yield warren
    for user in ("reader", "writer"):
        HttpApi(warren.broker).delete(path("users", user), {})


def as_user(place: BrokerUnderTest, user: str) -> dict[str, str]:
    """Options without transport, mode or transactions."""
    return place.options | {"uri": f"amqp://{user}:p@127.0.0.1:{place.port}/%2f"}


def test_a_reader_with_minimal_permissions_reads_streams_and_queues(least: BrokerUnderTest) -> None:
    sent = [b"%d" % number for number in range(100)]
    for queue in ("orders", "events"):
        least.publish(queue, sent)
        options = read_options(as_user(least, "reader") | {"queue": queue})
        choice = detect_strategy(options, is_streaming=True)
        assert (choice.mode, choice.transport) == ("lease" if queue == "orders" else "stream", "arrow")
        source = LeaseSource(options, choice) if queue == "orders" else StreamSource(options, choice)
        source.prepare_available_now()
        start = source.initial_offset()
        end = source.latest_offset(start, None, None)
        found = [
            body
            for part in source.partitions(start, end)
            for batch in part.read(options, ("body",))
            for body in batch.column("body").to_pylist()
        ]
        assert found == sent
        assert source.latest_offset(end, None, None) == end
        source.stop()
        assert detect_strategy(options, is_streaming=False).mode == (
            "browse" if queue == "orders" else "stream"
        )
    pattern = read_options(as_user(least, "reader") | {"queuePattern": "ev.*"})
    assert detect_strategy(pattern, is_streaming=True).queues == ("events",)


@pytest.mark.parametrize("txn", ["auto", "staged", "dedupe"])
def test_a_writer_with_minimal_permissions_writes(least: BrokerUnderTest, txn: str) -> None:
    options = checked_write_options(write_options(as_user(least, "writer") | {"queue": "orders", "txn": txn}))
    published = publish(
        iter([pa.record_batch({"body": [b"1", b"2"]})]), options, WriteTask(f"least-{txn}", 0, 0, 0)
    )
    assert published.is_staged == (txn != "dedupe")
    BatchWriter(options).commit([published])
    BatchWriter(options).abort([published])
    assert least.count("orders") == 2
