"""Queues of Warren in Spark: leases in a query, batch reads, and messages that arrive late over AMQP."""

from threading import Thread
from typing import Any

import pytest
from tests.spark.brokers import BrokerUnderTest

from pyspark_warren.classic_source import LAST_S, ClassicSource
from pyspark_warren.http import HttpApi, path
from pyspark_warren.lease_source import LeaseSource
from pyspark_warren.mode_detection import detect_strategy
from pyspark_warren.options import ReadOptions, read_options
from pyspark_warren.partitions import BrowsePartition, ReadPartition


def bodies(partitions: list[ReadPartition], options: ReadOptions) -> list[bytes]:
    """The bodies that the tasks of a batch read."""
    rows: list[dict[str, Any]] = [
        row for part in partitions for batch in part.read(options, ("body",)) for row in batch.to_pylist()
    ]
    return [row["body"] for row in rows]


@pytest.mark.parametrize("queue_type", ["classic", "quorum"])
def test_a_leasing_query_reads_each_message_once_also_after_a_crash(
    warren: BrokerUnderTest, queue_type: str
) -> None:
    sent = [b"%d" % number for number in range(1_000)]
    warren.declare("leased", {"x-queue-type": queue_type})
    warren.publish("leased", sent)
    options = read_options(warren.options | {"queue": "leased", "minPartitions": "2"})
    choice = detect_strategy(options, is_streaming=True)
    assert (choice.mode, choice.transport) == ("lease", "arrow")
    assert sorted(bodies([BrowsePartition("leased")], options)) == sorted(sent)

    source = LeaseSource(options, choice)
    start = source.initial_offset()
    first = source.latest_offset(start, 600, None)
    source.stop()
    # As after a crash before the commit of the batch: another driver plans it again.
    again = LeaseSource(options, choice)
    assert again.latest_offset(start, 600, None) == first
    assert bodies(again.partitions(start, first), options) == sent[:600]
    second = again.latest_offset(first, 600, None)
    assert bodies(again.partitions(first, second), options) == sent[600:]
    assert again.latest_offset(second, 600, None) == second
    again.stop()
    assert warren.count("leased") == 0


@pytest.mark.parametrize("queue_type", ["classic", "quorum"])
def test_a_query_for_available_messages_waits_for_a_slow_broker(
    warren: BrokerUnderTest, queue_type: str
) -> None:
    sent = [b"%d" % number for number in range(100)]
    warren.declare("late", {"x-queue-type": queue_type})
    warren.publish("late", sent)
    pause = path("warren", "queues", "/", "late", "pause")
    warren.put(pause, {})
    options = read_options(warren.options | {"queue": "late", "mode": "classic"})
    source = ClassicSource(options, detect_strategy(options, is_streaming=True), ("body",))
    source.prepare_available_now()
    start = source.initial_offset()
    ends: list[dict[str, Any]] = []
    asking = Thread(target=lambda: ends.append(source.latest_offset(start, None, None)))
    asking.start()
    asking.join(1.5 * LAST_S)
    assert ends == []
    HttpApi(warren.broker).delete(pause, {})
    asking.join()
    assert bodies(source.partitions(start, ends[0]), options) == sent
    assert source.latest_offset(ends[0], None, None) == ends[0]
    source.stop()
    assert warren.count("late") == 0
