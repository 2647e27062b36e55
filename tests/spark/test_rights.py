"""The least rights, as the guide has them, are enough for all that the connector finds out."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.spark.brokers import STREAM, Place

from pyspark_warren.choosing import choose
from pyspark_warren.http import Management, path
from pyspark_warren.lease_source import LeaseSource
from pyspark_warren.options import read_options, write_options
from pyspark_warren.sink import BatchWriter, Task, checked_writer, publish
from pyspark_warren.stream_source import StreamSource

# What the guide says: docs/guide/spark.md, "The least rights".
READER = {"configure": "^$", "write": "^$", "read": "^(orders|events)$"}
WRITER = {"configure": "^$", "write": "^amq\\.default$", "read": "^$"}


@pytest.fixture
def least(warren: Place) -> Iterator[Place]:
    for user, permissions in (("reader", READER), ("writer", WRITER)):
        warren.put(path("users", user), {"password": "p", "tags": "management"})
        warren.put(path("permissions", "/", user), permissions)
    warren.declare("orders")
    warren.declare("events", STREAM)
    yield warren
    for user in ("reader", "writer"):
        Management(warren.broker).delete(path("users", user), {})


def as_user(place: Place, user: str) -> dict[str, str]:
    """Options without a word about transport, mode or transactions."""
    return place.options | {"uri": f"amqp://{user}:p@127.0.0.1:{place.port}/%2f"}


def test_a_reader_reads_streams_and_queues(least: Place) -> None:
    sent = [b"%d" % number for number in range(100)]
    for queue in ("orders", "events"):
        least.publish(queue, sent)
        options = read_options(as_user(least, "reader") | {"queue": queue})
        choice = choose(options, is_streaming=True)
        assert (choice.mode, choice.transport) == ("lease" if queue == "orders" else "stream", "arrow")
        source = LeaseSource(options, choice) if queue == "orders" else StreamSource(options, choice)
        source.end_here()
        start = source.initial()
        end = source.latest(start, None, None)
        found = [
            body
            for part in source.parts(start, end)
            for batch in part.read(options, ("body",))
            for body in batch.column("body").to_pylist()
        ]
        assert found == sent
        assert source.latest(end, None, None) == end
        source.stop()
        assert choose(options, is_streaming=False).mode == ("browse" if queue == "orders" else "stream")
    pattern = read_options(as_user(least, "reader") | {"queuePattern": "ev.*"})
    assert choose(pattern, is_streaming=True).queues == ("events",)


@pytest.mark.parametrize("txn", ["auto", "staged", "dedupe"])
def test_a_writer_writes(least: Place, txn: str) -> None:
    options = checked_writer(write_options(as_user(least, "writer") | {"queue": "orders", "txn": txn}))
    published = publish(
        iter([pa.record_batch({"body": [b"1", b"2"]})]), options, Task(f"least-{txn}", 0, 0, 0)
    )
    assert published.is_staged == (txn != "dedupe")
    BatchWriter(options).commit([published])
    BatchWriter(options).abort([published])
    assert least.count("orders") == 2
