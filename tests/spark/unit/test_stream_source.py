"""What a query over streams asks of the broker, and how often."""

import re
from typing import Any

import pytest

from pyspark_warren.choosing import Choice
from pyspark_warren.filters import EVERYTHING
from pyspark_warren.options import read_options
from pyspark_warren.partitions import StreamPart
from pyspark_warren.stream_source import StreamSource
from pyspark_warren.streams import Bounds, DataLoss


class Growing:
    """A stream that has a hundred messages more each time that somebody looks."""

    has_times = True

    def __init__(self) -> None:
        self.looked = 0

    def bounds(self, queue: str, expected: int = 0) -> Bounds:
        self.looked += 1
        return Bounds(epoch="e", first=0, committed=100 * self.looked)


def test_the_end_that_progress_shows_is_the_one_that_the_last_batch_was_planned_by() -> None:
    options = read_options({"queue": "q", "mode": "stream", "transport": "arrow"})
    source = StreamSource(options, Choice(mode="stream", transport="arrow", queues=("q",)))
    source._streams = streams = Growing()  # type: ignore[assignment]
    end = source.latest({"v": 1, "s": {}}, 30, None)
    assert end["s"]["//q"]["next"] == 30
    assert source.committed()["s"]["//q"]["next"] == 100
    assert streams.looked == 1


class Streams:
    """Streams with fixed bounds."""

    has_times = True

    def __init__(self, **bounds: Bounds) -> None:
        self._bounds = bounds

    def bounds(self, queue: str, expected: int = 0) -> Bounds:
        return self._bounds[queue]


def reading(*queues: str, streams: Streams, **given: str) -> StreamSource:
    options = read_options({"queuePattern": ".*", "mode": "stream", "transport": "arrow"} | given)
    source = StreamSource(options, Choice(mode="stream", transport="arrow", queues=queues))
    source._streams = streams  # type: ignore[assignment]
    return source


def at(**places: int) -> dict[str, Any]:
    return {"v": 1, "s": {f"//{queue}": {"epoch": "e", "next": place} for queue, place in places.items()}}


def ends(offset: dict[str, Any]) -> dict[str, int]:
    return {key.removeprefix("//"): place["next"] for key, place in offset["s"].items()}


SOME = Bounds(epoch="e", first=0, committed=100)


def test_a_checkpoint_of_other_streams_ends_the_query_instead_of_forgetting_them() -> None:
    before = at(a=50, gone=70)
    with pytest.raises(DataLoss, match=r"offsets of //gone, which the query does not read.*failOnDataLoss"):
        reading("a", streams=Streams(a=SOME)).latest(before, None, None)
    lax = reading("a", streams=Streams(a=SOME), failOnDataLoss="false")
    assert ends(lax.latest(before, None, None)) == {"a": 100}
    assert len(lax.parts(before, at(a=100))) == 1


def test_a_stream_that_is_new_to_a_query_is_read_from_its_first_message() -> None:
    source = reading("a", "new", streams=Streams(a=SOME, new=Bounds(epoch="e", first=1_000, committed=1_020)))
    end = source.latest(at(a=100), 10, None)
    assert ends(end) == {"a": 100, "new": 1_010}
    (part,) = source.parts(at(a=100), end)
    assert isinstance(part, StreamPart)
    assert (part.range.start, part.range.end) == (1_000, 1_010)


def test_a_batch_of_limited_size_does_not_count_what_retention_took() -> None:
    late = Streams(a=Bounds(epoch="e", first=1_000, committed=1_020))
    source = reading("a", streams=late, failOnDataLoss="false")
    assert ends(source.latest(at(a=5), 10, None)) == {"a": 1_010}


@pytest.mark.parametrize(
    ("places", "told"),
    [
        ('{"v":1,"s":{"//a":{"next":1},"//b":{"next":1}}}', "'startingOffsets' names //b, which is not read"),
        ('{"v":1,"s":{"//b":{"next":1}}}', "'startingOffsets' must name '//a', and names //b"),
        (
            '{"v":1,"s":{"//a":{"next":101}}}',
            "'startingOffsets' names the offset 101 of '//a', which ends at 100",
        ),
    ],
)
def test_offsets_that_are_given_must_fit_the_streams(places: str, told: str) -> None:
    source = reading("a", streams=Streams(a=SOME), startingOffsets=places)
    with pytest.raises(ValueError, match=re.escape(told)):
        source.initial()
    with pytest.raises(ValueError, match=re.escape(told.replace("starting", "ending"))):
        reading("a", streams=Streams(a=SOME), endingOffsets=places).batch(EVERYTHING)


def test_offsets_of_a_stream_that_was_declared_again_are_told() -> None:
    places = '{"v":1,"s":{"//a":{"next":1,"epoch":"other"}}}'
    with pytest.raises(DataLoss, match="deleted and declared again"):
        reading("a", streams=Streams(a=SOME), startingOffsets=places).initial()
