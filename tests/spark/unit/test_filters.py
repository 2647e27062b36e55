"""Filters exclude rows that cannot match, and no others."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from pyspark_warren.filters import NO_FILTERS, PushedFilters, pushed_filters
from pyspark_warren.mode_detection import ReadStrategy
from pyspark_warren.options import read_options
from pyspark_warren.partitions import StreamPartition
from pyspark_warren.stream_source import StreamSource
from pyspark_warren.streams import ANY_ADDRESS, AddressFilter, StreamBounds

OFFSET, QUEUE, KEY, EXCHANGE = ("offset",), ("queue",), ("routing_key",), ("exchange",)
TIME = ("broker_timestamp",)
MOMENT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([GreaterThan(OFFSET, 5), LessThan(OFFSET, 9)], {"start": 6, "end": 9}),
        ([GreaterThanOrEqual(OFFSET, 5), LessThanOrEqual(OFFSET, 9)], {"start": 5, "end": 10}),
        ([EqualTo(OFFSET, 5)], {"start": 5, "end": 6}),
        ([EqualNullSafe(OFFSET, 5), IsNotNull(OFFSET)], {"start": 5, "end": 6}),
        ([In(OFFSET, (7, 3, 5))], {"start": 3, "end": 8}),
        ([GreaterThan(OFFSET, 5), GreaterThan(OFFSET, 3), LessThan(OFFSET, 9), LessThan(OFFSET, 8)],
         {"start": 6, "end": 8}),
        ([GreaterThan(TIME, MOMENT), LessThan(TIME, MOMENT)], {"since": MS, "until": MS + 1}),
        ([LessThanOrEqual(TIME, MOMENT + timedelta(microseconds=1))], {"until": MS + 1}),
        ([EqualTo(QUEUE, "a"), In(QUEUE, ("a", "b"))], {"queues": frozenset("a")}),
        ([In(KEY, ("a", "b")), EqualTo(EXCHANGE, "")],
         {"routing_keys": frozenset("ab"), "exchanges": frozenset([""])}),
    ],
)  # fmt: skip
def test_filters_reduce_the_range(filters: Sequence[Filter], left: dict[str, Any]) -> None:
    assert pushed_filters(filters) == PushedFilters(**left)


@pytest.mark.parametrize(
    "one",
    [
        Not(EqualTo(OFFSET, 5)), EqualTo(OFFSET, None), In(KEY, ("a", None)), EqualTo(("headers", "x"), "a"),
        GreaterThan(KEY, "a"), EqualTo(("body",), b"x"), GreaterThan(TIME, MOMENT.replace(tzinfo=None)),
        GreaterThan(("timestamp",), MOMENT),
    ],
)  # fmt: skip
def test_an_unsupported_filter_excludes_nothing(one: Filter) -> None:
    assert pushed_filters([one]) == NO_FILTERS


def test_names_that_a_request_cannot_contain_are_not_sent() -> None:
    assert pushed_filters([EqualTo(KEY, "a")]).address_filter == AddressFilter(routing_keys=("a",))
    assert pushed_filters([EqualTo(KEY, "a\ufffd")]).address_filter == ANY_ADDRESS
    assert (
        pushed_filters([In(KEY, tuple(f"key-{number}" for number in range(200)))]).address_filter
        == ANY_ADDRESS
    )


class Streams:
    """Streams of a hundred messages, one each second."""

    has_times = True

    def bounds(self, queue: str, expected: int = 0) -> StreamBounds:
        return StreamBounds(epoch="e", first=10, committed=100)

    def offset_at(self, queue: str, milliseconds: int) -> int:
        return min(max(-(-(milliseconds - MS) // 1_000), 10), 100)


def planned(*filters: Filter, has_times: bool = True) -> list[tuple[str, int, int]]:
    """The ranges of a batch read of two such streams."""
    options = read_options({"queuePattern": ".*", "transport": "arrow"})
    source = StreamSource(options, ReadStrategy(mode="stream", transport="arrow", queues=("a", "b")))
    source._streams = streams = Streams()  # type: ignore[assignment]
    streams.has_times = has_times
    partitions = source.batch(pushed_filters(filters))
    ranges = [part.range for part in partitions if isinstance(part, StreamPartition)]
    return [(one.queue, one.start, one.end) for one in ranges]


def test_a_batch_read_is_as_narrow_as_the_filters_allow() -> None:
    assert planned() == [("a", 10, 100), ("b", 10, 100)]
    assert planned(EqualTo(QUEUE, "b"), GreaterThan(OFFSET, 40), LessThan(OFFSET, 50)) == [("b", 41, 50)]
    since, until = (
        GreaterThanOrEqual(TIME, MOMENT + timedelta(seconds=at)) if at == 20 else
        LessThan(TIME, MOMENT + timedelta(seconds=at))
        for at in (20, 30)
    )  # fmt: skip
    assert planned(EqualTo(QUEUE, "a"), since, until) == [("a", 20, 31)]
    assert planned(EqualTo(QUEUE, "a"), since, until, has_times=False) == [("a", 10, 100)]
    assert planned(LessThan(OFFSET, 5)) == []
    assert planned(EqualTo(QUEUE, "c")) == []
