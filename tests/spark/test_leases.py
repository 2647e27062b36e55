"""Queues of Warren: leases as a query takes them, what waits, looked at, and what is late over AMQP."""

from threading import Thread
from typing import Any

from tests.spark.brokers import Place

from pyspark_warren.choosing import choose
from pyspark_warren.classic_source import LAST_S, ClassicSource
from pyspark_warren.http import Management, path
from pyspark_warren.lease_source import LeaseSource
from pyspark_warren.options import ReadOptions, read_options
from pyspark_warren.partitions import BrowsePart, Part


def bodies(parts: list[Part], options: ReadOptions) -> list[bytes]:
    """What the tasks of a batch read."""
    rows: list[dict[str, Any]] = [
        row for part in parts for batch in part.read(options, ("body",)) for row in batch.to_pylist()
    ]
    return [row["body"] for row in rows]


def test_a_query_by_leases_reads_each_message_once_also_after_a_crash(warren: Place) -> None:
    sent = [b"%d" % number for number in range(1_000)]
    warren.declare("leased")
    warren.publish("leased", sent)
    options = read_options(warren.options | {"queue": "leased", "minPartitions": "2"})
    choice = choose(options, is_streaming=True)
    assert (choice.mode, choice.transport) == ("lease", "arrow")
    assert sorted(bodies([BrowsePart("leased")], options)) == sorted(sent)

    source = LeaseSource(options, choice)
    start = source.initial()
    first = source.latest(start, 600, None)
    source.stop()
    # As after a crash before the batch was committed: another driver makes it again.
    again = LeaseSource(options, choice)
    assert again.latest(start, 600, None) == first
    assert bodies(again.parts(start, first), options) == sent[:600]
    second = again.latest(first, 600, None)
    assert bodies(again.parts(first, second), options) == sent[600:]
    assert again.latest(second, 600, None) == second
    again.stop()
    assert warren.count("leased") == 0


def test_a_query_that_takes_what_is_there_waits_for_what_a_broker_is_late_to_send(warren: Place) -> None:
    sent = [b"%d" % number for number in range(100)]
    warren.declare("late")
    warren.publish("late", sent)
    pause = path("warren", "queues", "/", "late", "pause")
    warren.put(pause, {})
    options = read_options(warren.options | {"queue": "late", "mode": "classic"})
    source = ClassicSource(options, choose(options, is_streaming=True), ("body",))
    source.end_here()
    start = source.initial()
    ends: list[dict[str, Any]] = []
    asking = Thread(target=lambda: ends.append(source.latest(start, None, None)))
    asking.start()
    asking.join(1.5 * LAST_S)
    assert ends == []
    Management(warren.broker).delete(pause, {})
    asking.join()
    assert bodies(source.parts(start, ends[0]), options) == sent
    assert source.latest(ends[0], None, None) == ends[0]
    source.stop()
    assert warren.count("late") == 0
