"""The HTML page with charts of a rollup."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pyspark_warren.pipelines.charts import Chart, ChartSeries, KeyFigure, page, short
from pyspark_warren.pipelines.rollup import percentile_names

Row = Mapping[str, Any]
# Returns the lines of a column for groups: (column, groups, value of empty windows, suffix of the names).
_Lines = Callable[[str, Sequence[str], float | None, str], list[ChartSeries]]
# More windows cannot be drawn legibly.
WINDOWS_MAX = 1_000
_GROUPS_SHOWN = 2
_LATENCIES = percentile_names("latency")
_SIZES = percentile_names("size")


def rollup_page(rows: Sequence[Row], by: Sequence[str], window_s: int, source: str) -> str:
    """Return the HTML document for rows of a rollup. Raises ValueError for no rows or too many windows."""
    if not rows:
        raise ValueError("there is nothing to draw, since no message has a time")
    times = _times(rows, window_s)
    groups, late = _groups(rows, by), _measured(rows, by, _LATENCIES[0])
    at = {(row["window"], _name(row, by)): row for row in rows}

    def series(column: str, names: Sequence[str], empty: float | None, label: str = "") -> list[ChartSeries]:
        return [
            ChartSeries(
                name=f"{name} {label}".strip(),
                values=[at[time, name][column] if (time, name) in at else empty for time in times],
            )
            for name in names
        ]

    charts = [
        Chart(title="Rate", unit="messages/s", times=times, series=series("per_second", groups, 0.0)),
        Chart(title="Volume", unit="bytes/s", times=times, series=series("octets_per_second", groups, 0.0)),
        Chart(title="Latency", unit="ms", times=times, series=_spread(series, late, _LATENCIES)),
        Chart(title="Size", unit="bytes", times=times, series=_spread(series, groups, _SIZES)),
    ]
    span = f"{times[0]:%Y-%m-%d %H:%M:%S} to {times[-1] + timedelta(seconds=window_s):%Y-%m-%d %H:%M:%S} UTC"
    subtitle = f"{source} · {span} · windows of {window_s} s"
    return page("Messages over time", subtitle, _figures(rows, by), [one for one in charts if one.series])


def _spread(lines: _Lines, names: Sequence[str], columns: Sequence[str]) -> list[ChartSeries]:
    """Return all percentiles of a single group; of several groups the p95 of each."""
    chosen = columns if len(names) == 1 else columns[1:2]
    return [one for column in chosen for one in lines(column, names, None, column.rpartition("_")[2])]


def _figures(rows: Sequence[Row], by: Sequence[str]) -> list[KeyFigure]:
    """Return the counts of the largest groups, the highest rate and latency, and the largest size."""
    groups = _groups(rows, by)[:_GROUPS_SHOWN]
    counts = {name: sum(row["messages"] for row in rows if _name(row, by) == name) for name in groups}
    figures = [KeyFigure(name=name, value=f"{count:,}") for name, count in counts.items()]
    figures.append(KeyFigure(name="highest rate", value=f"{short(max(row['per_second'] for row in rows))}/s"))
    worst = [row[_LATENCIES[-1]] for row in rows if row[_LATENCIES[-1]] is not None]
    if worst:
        figures.append(KeyFigure(name="worst latency p99", value=f"{short(max(worst))} ms"))
    sizes = [row["size_max"] for row in rows if row["size_max"] is not None]
    if sizes:
        figures.append(KeyFigure(name="largest message", value=f"{short(max(sizes))} bytes"))
    return figures


def _times(rows: Sequence[Row], window_s: int) -> list[datetime]:
    """Return the start of every window from the first to the last, also of empty ones."""
    first, last = (edge(row["window"] for row in rows) for edge in (min, max))
    step = timedelta(seconds=window_s)
    count = (last - first) // step + 1
    if count > WINDOWS_MAX:
        raise ValueError(
            f"{count} windows are too many for a page, which can have {WINDOWS_MAX}: choose a longer window"
        )
    return [first + step * number for number in range(count)]


def _groups(rows: Sequence[Row], by: Sequence[str]) -> list[str]:
    """Return the names of the groups, the largest first."""
    counted: dict[str, int] = {}
    for row in rows:
        name = _name(row, by)
        counted[name] = counted.get(name, 0) + row["messages"]
    return sorted(counted, key=lambda name: (-counted[name], name))


def _measured(rows: Sequence[Row], by: Sequence[str], column: str) -> list[str]:
    known = {_name(row, by) for row in rows if row[column] is not None}
    return [name for name in _groups(rows, by) if name in known]


def _name(row: Row, by: Sequence[str]) -> str:
    return " ".join(str(row[name]) if row[name] not in (None, "") else "(none)" for name in by) or "all"
