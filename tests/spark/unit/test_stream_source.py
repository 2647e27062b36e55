"""Which requests a query over streams makes, and how often."""

import re
from typing import Any

import pytest

from pyspark_warren.filters import NO_FILTERS
from pyspark_warren.mode_detection import ReadStrategy
from pyspark_warren.options import read_options
from pyspark_warren.partitions import StreamPartition
from pyspark_warren.stream_source import StreamSource
from pyspark_warren.streams import DataLoss, StreamBounds


class Growing:
    """A stream that grows by a hundred messages at each request for its bounds."""

    has_times = True

    def __init__(self) -> None:
        self.looked = 0
        self.expected: list[int] = []

    def bounds(self, queue: str, expected: int = 0) -> StreamBounds:
        self.looked += 1
        self.expected.append(expected)
        return StreamBounds(epoch="e", first=0, committed=100 * self.looked)


def growing() -> tuple[StreamSource, Growing]:
    """A query over such a stream."""
    options = read_options({"queue": "q", "mode": "stream", "transport": "arrow"})
    source = StreamSource(options, ReadStrategy(mode="stream", transport="arrow", queues=("q",)))
    source._streams = streams = Growing()  # type: ignore[assignment]
    return source, streams


def grown(next_: int, epoch: str = "e") -> dict[str, Any]:
    """An offset of it."""
    return {"v": 1, "s": {"//q": {"epoch": epoch, "next": next_}}}


def test_progress_shows_the_end_by_which_the_last_batch_was_planned() -> None:
    source, streams = growing()
    end = source.latest_offset({"v": 1, "s": {}}, 30, None)
    assert end["s"]["//q"]["next"] == 30
    assert source.committed()["s"]["//q"]["next"] == 100
    assert streams.looked == 1


class Streams:
    """Streams with fixed bounds."""

    has_times = True

    def __init__(self, **bounds: StreamBounds) -> None:
        self._bounds = bounds

    def bounds(self, queue: str, expected: int = 0) -> StreamBounds:
        return self._bounds[queue]


def reading(*queues: str, streams: Streams, **given: str) -> StreamSource:
    options = read_options({"queuePattern": ".*", "mode": "stream", "transport": "arrow"} | given)
    source = StreamSource(options, ReadStrategy(mode="stream", transport="arrow", queues=queues))
    source._streams = streams  # type: ignore[assignment]
    return source


def at(**places: int) -> dict[str, Any]:
    return {"v": 1, "s": {f"//{queue}": {"epoch": "e", "next": place} for queue, place in places.items()}}


def ends(offset: dict[str, Any]) -> dict[str, int]:
    return {key.removeprefix("//"): place["next"] for key, place in offset["s"].items()}


SOME = StreamBounds(epoch="e", first=0, committed=100)


def test_a_checkpoint_of_other_streams_ends_the_query_instead_of_forgetting_them() -> None:
    before = at(a=50, gone=70)
    with pytest.raises(DataLoss, match=r"offsets of //gone, which the query does not read.*failOnDataLoss"):
        reading("a", streams=Streams(a=SOME)).latest_offset(before, None, None)
    lax = reading("a", streams=Streams(a=SOME), failOnDataLoss="false")
    assert ends(lax.latest_offset(before, None, None)) == {"a": 100}
    assert len(lax.partitions(before, at(a=100))) == 1


def test_a_new_stream_of_a_query_is_read_from_its_first_message() -> None:
    source = reading(
        "a", "new", streams=Streams(a=SOME, new=StreamBounds(epoch="e", first=1_000, committed=1_020))
    )
    end = source.latest_offset(at(a=100), 10, None)
    assert ends(end) == {"a": 100, "new": 1_010}
    (part,) = source.partitions(at(a=100), end)
    assert isinstance(part, StreamPartition)
    assert (part.range.start, part.range.end) == (1_000, 1_010)


def test_a_batch_of_limited_size_does_not_count_removed_messages() -> None:
    late = Streams(a=StreamBounds(epoch="e", first=1_000, committed=1_020))
    source = reading("a", streams=late, failOnDataLoss="false")
    assert ends(source.latest_offset(at(a=5), 10, None)) == {"a": 1_010}


@pytest.mark.parametrize(
    ("places", "reported"),
    [
        (
            '{"v":1,"s":{"//a":{"next":1},"//b":{"next":1}}}',
            "'startingOffsets' has an offset for //b, which is not read",
        ),
        ('{"v":1,"s":{"//b":{"next":1}}}', "'startingOffsets' has no offset for '//a'; it has //b"),
        (
            '{"v":1,"s":{"//a":{"next":101}}}',
            "'startingOffsets' has the offset 101 for '//a', which ends at 100",
        ),
    ],
)
def test_given_offsets_must_match_the_streams(places: str, reported: str) -> None:
    source = reading("a", streams=Streams(a=SOME), startingOffsets=places)
    with pytest.raises(ValueError, match=re.escape(reported)):
        source.initial_offset()
    with pytest.raises(ValueError, match=re.escape(reported.replace("starting", "ending"))):
        reading("a", streams=Streams(a=SOME), endingOffsets=places).batch(NO_FILTERS)


def test_offsets_of_a_redeclared_stream_are_reported() -> None:
    places = '{"v":1,"s":{"//a":{"next":1,"epoch":"other"}}}'
    with pytest.raises(DataLoss, match="deleted and declared again"):
        reading("a", streams=Streams(a=SOME), startingOffsets=places).initial_offset()


def test_a_source_without_a_start_offset_uses_that_of_the_last_batch() -> None:
    source, streams = growing()
    nowhere: dict[str, Any] = {"v": 1, "s": {}}
    first = source.latest_offset(nowhere, None, None)
    # After a restart it is unknown: the longest wait is used, so as not to end before the last batch.
    assert streams.expected == [2**63 - 1]
    source.partitions(grown(0), first)
    source.latest_offset(nowhere, None, None)
    assert streams.expected[-1] == 100


@pytest.mark.parametrize(
    ("before", "after"),
    [(grown(5), grown(90, "other")), (grown(95), grown(90, "other")), (grown(95, ""), grown(90, ""))],
    ids=["longer", "shorter", "without epochs"],
)
def test_a_batch_across_a_redeclared_stream_is_not_planned(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    source, _ = growing()
    with pytest.raises(DataLoss, match="deleted and declared again"):
        source.partitions(before, after)


def test_a_new_empty_stream_of_a_query_has_no_tasks() -> None:
    source = reading("a", "new", streams=Streams(a=SOME, new=StreamBounds(epoch="e", first=0, committed=0)))
    assert source.partitions(at(a=100), source.latest_offset(at(a=100), None, None)) == []
