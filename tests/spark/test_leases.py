"""Leases of Warren, as a query takes them, and what waits in a queue, looked at."""

from typing import Any

from tests.spark.brokers import Place

from pyspark_warren.choosing import choose
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
