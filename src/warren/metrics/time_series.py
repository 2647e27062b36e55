"""Numbers of one object over time, and what is shown of them: rates as RabbitMQ computes them, and samples.

A row of numbers is kept for each interval in which one of them has changed; in between they were what the row
before says. Whoever makes rows counts all that are kept, and says how many of one object may be.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from warren.limits import SAMPLE_INTERVAL_MS, SAMPLE_RETENTION_MS
from warren.model.samples import Samples

SampleRow = Sequence[int]
Details = dict[str, object]


class TimeSeries(Samples):
    """Rows of `width` numbers, by the time at which they were so."""

    __slots__ = ("_before", "_before_time", "_coarse", "_numbers", "_times", "_width")

    def __init__(self, before: SampleRow, coarse: "CoarseTimeSeries | None" = None) -> None:
        """`before` is what the numbers were earlier; what is too old goes to `coarse`, thinned out."""
        self._width = len(before)
        self._before = tuple(before)
        self._before_time = 0
        self._coarse = coarse
        self._times = array("q")
        self._numbers = array("q")

    def __len__(self) -> int:
        """How many rows are kept."""
        return len(self._times)

    @property
    def last_time(self) -> int:
        """Of the last row (ms); 0 without one."""
        return self._times[-1] if self._times else 0

    @property
    def last(self) -> SampleRow:
        """The last row."""
        return self._row(len(self._times) - 1)

    def add(self, time: int, row: SampleRow, rows_max: int) -> None:
        """From `time` (ms) on the numbers are `row`; no more than `rows_max` rows are kept."""
        if self._times and self._times[-1] == time:
            self._numbers[-self._width :] = array("q", row)
            return
        self._times.append(time)
        self._numbers.extend(row)
        self._drop_first(
            max(bisect_right(self._times, time - SAMPLE_RETENTION_MS), len(self._times) - rows_max)
        )

    def forget(self) -> None:
        """Keep no row but the last."""
        self._drop_first(len(self._times))

    def at(self, time: int, column: int) -> int:
        """What a number was at `time` (ms)."""
        place = bisect_right(self._times, time) - 1
        if place < 0 and self._coarse is not None and time < self._before_time:
            return self._coarse.at(time, column)
        return self._number(place, column)

    def rate(self, time: int, column: int) -> float:
        """How much a number grew each second, in the interval that ended at `time` (ms)."""
        times = self._times
        if not times or times[-1] < time:
            return 0.0
        before = self._number(len(times) - 2, column)
        return (self._number(len(times) - 1, column) - before) * 1000 / SAMPLE_INTERVAL_MS

    def _number(self, place: int, column: int) -> int:
        return self._before[column] if place < 0 else self._numbers[place * self._width + column]

    def _row(self, place: int) -> SampleRow:
        if place < 0:
            return self._before
        return self._numbers[place * self._width : (place + 1) * self._width]

    def _drop_first(self, count: int) -> None:
        """The first `count` rows are too old, or too many."""
        if count <= 0:
            return
        coarse = self._coarse
        if coarse is not None:
            for place in range(count):
                coarse.add_thinned(self._times[place], self._row(place))
        self._before_time = self._times[count - 1]
        self._before = tuple(self._row(count - 1))
        del self._times[:count]
        del self._numbers[: count * self._width]


class CoarseTimeSeries(TimeSeries):
    """Rows for long, not nearer to each other than a step."""

    __slots__ = ("_rows_max", "_step_ms")

    def __init__(self, before: SampleRow, step_ms: int, rows_max: int) -> None:
        super().__init__(before)
        self._step_ms = step_ms
        self._rows_max = rows_max

    def add_thinned(self, time: int, row: SampleRow) -> None:
        """The numbers were `row` at `time` (ms), which is noted if nothing near it is."""
        if time - self.last_time < self._step_ms:
            return
        self._times.append(time)
        self._numbers.extend(row)
        self._drop_first(len(self._times) - self._rows_max)


@dataclass(frozen=True, slots=True)
class SampleTimes:
    """The times for which samples are asked for: the last of them first."""

    last: int
    age_ms: int
    step_ms: int

    @property
    def times(self) -> range:
        """All of them (ms)."""
        return range(self.last, self.last - self.age_ms - 1, -self.step_ms)


def details(series: TimeSeries | None, time: int, column: int, times: SampleTimes | None) -> Details:
    """What is shown beside a number: its rate, and its samples if they are asked for."""
    shown: Details = {"rate": 0.0 if series is None else series.rate(time, column)}
    if times is None:
        return shown
    points = [(at, 0 if series is None else series.at(at, column)) for at in times.times]
    newest, oldest = points[0], points[-1]
    seconds = (newest[0] - oldest[0]) / 1000
    return {
        **shown,
        "samples": [{"sample": number, "timestamp": at} for at, number in points],
        "avg_rate": (newest[1] - oldest[1]) / seconds if seconds else 0.0,
        "avg": sum(number for _, number in points) / len(points),
    }
