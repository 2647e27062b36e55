"""Charts of time series as one HTML page without scripts and network access, with light and dark themes.

Each chart is drawn in two widths, for desktops and for phones, so that its text has the same size on both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import pairwise
from math import ceil, floor, log10

# More lines cannot be distinguished by color.
SERIES_MAX = 6
_TICKS = 4
_HEIGHT = 240
_WIDTHS = (("wide", 920), ("narrow", 340))
_TOP, _RIGHT, _BOTTOM, _LEFT = 14, 12, 26, 52
# The approximate width of a label on the time axis.
_LABEL_WIDTH = 90
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartSeries:
    """A line of a chart: its name, and a value for each time of the chart; None is a gap."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart: lines over the same times."""

    title: str
    unit: str
    times: Sequence[datetime]
    series: Sequence[ChartSeries]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigure:
    """A key figure that is shown above the charts."""

    name: str
    value: str


def page(title: str, subtitle: str, figures: Sequence[KeyFigure], charts: Sequence[Chart]) -> str:
    """Return the HTML document."""
    tiles = "".join(f"<div><dt>{escape(one.name)}</dt><dd>{escape(one.value)}</dd></div>" for one in figures)
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{escape(title)}</h1><p>{escape(subtitle)}</p><dl>{tiles}</dl>"
        + "".join(map(_section, charts))
        + "</main></body></html>\n"
    )


def short(value: float) -> str:
    """Format a number with three significant digits and a metric prefix: 1.2k, 0.35."""
    for size, letter in _PREFIXES:
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _section(chart: Chart) -> str:
    shown = chart.series[:SERIES_MAX]
    names = "".join(f'<li><i class="s{place}"></i>{escape(one.name)}</li>' for place, one in enumerate(shown))
    left_out = len(chart.series) - len(shown)
    more = f"<li>and {left_out} more in the table</li>" if left_out else ""
    drawn = "".join(_svg(chart, shown, kind, width) for kind, width in _WIDTHS)
    return (
        f"<section><h2>{escape(chart.title)} <small>{escape(chart.unit)}</small></h2>"
        f"<ul>{names}{more}</ul>{drawn}{_table(chart)}</section>"
    )


def _svg(chart: Chart, shown: Sequence[ChartSeries], kind: str, width: int) -> str:
    highest = max((value for one in shown for value in one.values if value is not None), default=0)
    step = _step(highest)
    top = step * max(1, ceil(highest / step - 1e-9))
    plot = _Plot(chart.times, top, width)
    lines = "".join(
        f'<path class="grid" d="M{_LEFT} {plot.y(value):.1f}H{width - _RIGHT}"/>'
        f'<text x="{_LEFT - 8}" y="{plot.y(value) + 4:.1f}" text-anchor="end">{short(value)}</text>'
        for value in (step * number for number in range(round(top / step) + 1))
    )
    labels = "".join(
        f'<text x="{plot.x(place):.1f}" y="{_HEIGHT - 6}" text-anchor="{anchor}">{text}</text>'
        for place, text, anchor in _time_labels(chart.times, width)
    )
    curves = "".join(f'<g class="s{place}">{_curve(plot, one)}</g>' for place, one in enumerate(shown))
    return (
        f'<svg class="{kind}" viewBox="0 0 {width} {_HEIGHT}" role="img" '
        f'aria-label="{escape(chart.title)} in {escape(chart.unit)}">'
        f"{lines}{labels}{curves}{_hovers(plot, chart, shown)}</svg>"
    )


class _Plot:
    """Converts times and values to coordinates of the drawing."""

    def __init__(self, times: Sequence[datetime], top: float, width: int) -> None:
        self._top = top
        self._seconds = [(time - times[0]).total_seconds() for time in times]
        self._span = self._seconds[-1] if times and self._seconds[-1] else 1.0
        self._width = width - _LEFT - _RIGHT

    def x(self, place: int) -> float:
        """Return the x coordinate of the time number `place`; a single time is in the middle."""
        if len(self._seconds) == 1:
            return _LEFT + self._width / 2
        return _LEFT + self._width * self._seconds[place] / self._span

    def y(self, value: float) -> float:
        """Return the y coordinate of a value."""
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - value / self._top)


def _curve(plot: _Plot, series: ChartSeries) -> str:
    """Draw a line for each run of values without a gap; a single value is a dot."""
    drawn = []
    stretch: list[str] = []
    for place, value in [*enumerate(series.values), (0, None)]:
        if value is not None:
            stretch.append(f"{plot.x(place):.1f},{plot.y(value):.1f}")
            continue
        if len(stretch) == 1:
            x, y = stretch[0].split(",")
            drawn.append(f'<circle cx="{x}" cy="{y}" r="3"/>')
        elif stretch:
            drawn.append(f'<polyline points="{" ".join(stretch)}"/>')
        stretch = []
    return "".join(drawn)


def _hovers(plot: _Plot, chart: Chart, shown: Sequence[ChartSeries]) -> str:
    """Draw a strip for each time that shows its values as a tooltip."""
    centres = [plot.x(place) for place in range(len(chart.times))]
    edges = [_LEFT, *((left + right) / 2 for left, right in pairwise(centres)), centres[-1] + _RIGHT]
    drawn = []
    for place, time in enumerate(chart.times):
        values = [(one.name, one.values[place]) for one in shown]
        said = "\n".join(f"{name}: {short(value)}" for name, value in values if value is not None)
        dots = "".join(
            f'<circle class="s{number}" cx="{centres[place]:.1f}" cy="{plot.y(value):.1f}" r="4"/>'
            for number, (_, value) in enumerate(values)
            if value is not None
        )
        drawn.append(
            f'<g class="at"><rect x="{edges[place]:.1f}" y="{_TOP}" '
            f'width="{max(edges[place + 1] - edges[place], 0.1):.1f}" height="{_HEIGHT - _TOP - _BOTTOM}"/>'
            f"{dots}<title>{time:%Y-%m-%d %H:%M:%S}\n{escape(said)}</title></g>"
        )
    return "".join(drawn)


def _table(chart: Chart) -> str:
    head = "".join(f"<th>{escape(one.name)}</th>" for one in chart.series)
    rows = "".join(
        f"<tr><th>{time:%Y-%m-%d %H:%M:%S}</th>"
        + "".join(f"<td>{_cell(one.values[place])}</td>" for one in chart.series)
        + "</tr>"
        for place, time in enumerate(chart.times)
    )
    return (
        f"<details><summary>Table</summary><div><table><thead><tr><th>UTC</th>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div></details>"
    )


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:,.3f}".rstrip("0").rstrip(".")


def _step(highest: float) -> float:
    """Return the distance of grid lines: 1, 2 or 5 times a power of ten."""
    if highest <= 0:
        return 1.0
    rough = highest / _TICKS
    power = 10.0 ** floor(log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if rough <= power * factor * (1 + 1e-9))


def _time_labels(times: Sequence[datetime], width: int) -> list[tuple[int, str, str]]:
    """Return the labels of the time axis: the number of the time, the text and its anchor."""
    form = "%H:%M:%S" if times[-1].timestamp() - times[0].timestamp() < 3600 else "%H:%M"
    if times[0].date() != times[-1].date():
        form = "%m-%d %H:%M"
    if len(times) == 1:
        return [(0, times[0].strftime(form), "middle")]
    count = min(len(times), max(2, (width - _LEFT - _RIGHT) // _LABEL_WIDTH))
    places = sorted({round(number * (len(times) - 1) / (count - 1)) for number in range(count)})
    anchors = {0: "start", len(times) - 1: "end"}
    return [(place, times[place].strftime(form), anchors.get(place, "middle")) for place in places]


_STYLE = """
:root { color-scheme: light dark; --back: #fbfbfa; --card: #fff; --text: #1d2125; --soft: #626b75;
  --grid: #e6e8ea; --c0: #2563c9; --c1: #c2540a; --c2: #0f8a5f; --c3: #8b3fc4; --c4: #b8860b; --c5: #c2255c; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --card: #1c2024; --text: #e8eaed;
  --soft: #98a2ad; --grid: #2d333a; --c0: #6ea8fe; --c1: #ff9a5c; --c2: #4fd1a1; --c3: #c792ea;
  --c4: #e6c14b; --c5: #ff7eb0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 28px 20px 48px; }
h1 { font-size: 24px; margin: 0; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 0 0 4px; }
small, p, dt, summary { color: var(--soft); font-weight: 400; font-size: 14px; }
p { margin: 4px 0 20px; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px;
  margin: 0 0 12px; }
dl div, section { background: var(--card); border: 1px solid var(--grid); border-radius: 10px;
  padding: 14px 16px; }
dd { margin: 0; font-size: 24px; font-weight: 600; font-variant-numeric: tabular-nums; }
section { margin-top: 12px; }
ul { display: flex; flex-wrap: wrap; gap: 2px 16px; list-style: none; margin: 0 0 4px; padding: 0;
  color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
li { display: flex; align-items: center; gap: 6px; }
i { width: 12px; height: 3px; border-radius: 2px; background: currentColor; flex: none; }
svg { display: block; width: 100%; height: auto; }
svg.narrow { display: none; }
text { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
.grid { stroke: var(--grid); }
.s0 { color: var(--c0); } .s1 { color: var(--c1); } .s2 { color: var(--c2); }
.s3 { color: var(--c3); } .s4 { color: var(--c4); } .s5 { color: var(--c5); }
polyline { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
/* Dashes keep both lines visible where they coincide, as publications and deliveries often do. */
.s1 polyline { stroke-dasharray: 7 5; } .s3 polyline { stroke-dasharray: 2 5; }
circle { fill: currentColor; }
.at rect { fill: transparent; }
.at circle { opacity: 0; }
.at:hover rect { fill: var(--soft); opacity: 0.12; }
.at:hover circle { opacity: 1; }
details { margin-top: 6px; }
summary { cursor: pointer; font-size: 13px; }
details div { overflow-x: auto; max-height: 320px; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: 3px 12px 3px 0; text-align: right; border-bottom: 1px solid var(--grid); }
th { font-weight: 500; color: var(--soft); }
th:first-child { text-align: left; }
@media (max-width: 620px) { main { padding: 20px 12px 32px; } svg.wide { display: none; }
  svg.narrow { display: block; } dl { grid-template-columns: 1fr 1fr; gap: 8px; } dd { font-size: 20px; }
  dl div, section { padding: 12px; } }
@media print { details { display: none; } section { break-inside: avoid; } }
"""
