"""What a query over streams asks of the broker, and how often."""

from pyspark_warren.choosing import Choice
from pyspark_warren.options import read_options
from pyspark_warren.stream_source import StreamSource
from pyspark_warren.streams import Bounds


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
