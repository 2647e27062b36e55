"""Time series of the figures of one object, with rates as RabbitMQ computes them, and samples.

A row is stored for each interval in which a figure has changed; in between the row before it applies. The
caller counts the rows of all series, and passes the maximum for each of them.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct

from warren.limits import SAMPLE_INTERVAL_MS, SAMPLE_RETENTION_MS
from warren.model.samples import Samples

SampleRow = Sequence[int]
Details = dict[str, object]


class TimeSeries(Samples):
    """Rows of figures, by the time from which they apply."""

    __slots__ = ("_before", "_before_time", "_coarse", "_numbers", "_times", "_width")

    def __init__(self, before: SampleRow, coarse: "CoarseTimeSeries | None" = None) -> None:
        """`before` contains the earlier figures; rows that are too old are thinned out into `coarse`."""
        self._width = len(before)
        self._before = tuple(before)
        self._before_time = 0
        self._coarse = coarse
        self._times = array("q")
        self._numbers = array("q")

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._times)

    @property
    def last_time(self) -> int:
        """The time of the last row (ms); 0 without one."""
        return self._times[-1] if self._times else 0

    @property
    def last(self) -> SampleRow:
        """The last row."""
        return self._row(len(self._times) - 1)

    def add(self, time: int, row: SampleRow, rows_max: int) -> None:
        """Add `row`, which applies from `time` (ms) on; older rows beyond `rows_max` are dropped."""
        if self._times and self._times[-1] == time:
            self._numbers[-self._width :] = array("q", row)
            return
        self._times.append(time)
        self._numbers.extend(row)
        self._drop_first(
            max(bisect_right(self._times, time - SAMPLE_RETENTION_MS), len(self._times) - rows_max)
        )

    def forget(self) -> None:
        """Drop all rows; the figures of the last one still apply."""
        self._drop_first(len(self._times))

    def at(self, time: int, column: int) -> int:
        """Return a figure at `time` (ms)."""
        place = bisect_right(self._times, time) - 1
        if place < 0 and self._coarse is not None and time < self._before_time:
            return self._coarse.at(time, column)
        return self._number(place, column)

    def rate(self, time: int, column: int) -> float:
        """Return the growth per second of a figure in the interval that ended at `time` (ms)."""
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
        """Drop the first `count` rows, which are too old or too many."""
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
    """Rows for a long period, at least a step apart."""

    __slots__ = ("_rows_max", "_step_ms")

    def __init__(self, before: SampleRow, step_ms: int, rows_max: int) -> None:
        super().__init__(before)
        self._step_ms = step_ms
        self._rows_max = rows_max

    def add_thinned(self, time: int, row: SampleRow) -> None:
        """Add `row` at `time` (ms), unless the last row is less than a step older."""
        if time - self.last_time < self._step_ms:
            return
        self._times.append(time)
        self._numbers.extend(row)
        self._drop_first(len(self._times) - self._rows_max)


class SampleTimes(Struct, frozen=True):
    """The times of requested samples, the last one first."""

    last: int
    age_ms: int
    step_ms: int

    @property
    def times(self) -> range:
        """All times (ms)."""
        return range(self.last, self.last - self.age_ms - 1, -self.step_ms)


def details(series: TimeSeries | None, time: int, column: int, times: SampleTimes | None) -> Details:
    """Return the details of a figure: its rate, and its samples if `times` is given."""
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
