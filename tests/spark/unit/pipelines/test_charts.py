"""A page of charts is one file, escapes text of clients, and shows gaps where there is no data."""

import re
from datetime import datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from pyspark_warren.pipelines.charts import SERIES_MAX, Chart, ChartSeries, page, short
from pyspark_warren.pipelines.rollup_page import WINDOWS_MAX, rollup_page

START = datetime(2026, 1, 1, 12)
BY = ("kind",)


def row(second: int, kind: str, **given: Any) -> dict[str, Any]:
    """A row of a rollup."""
    known = dict.fromkeys(("size_p50", "size_p95", "size_p99", "size_max"), 10)
    late = dict.fromkeys(("latency_p50", "latency_p95", "latency_p99", "latency_max"))
    counted = {"messages": 20, "per_second": 2.0, "octets_per_second": 20.0}
    window = START + timedelta(seconds=second)
    return {"window": window, "kind": kind, **counted, **known, **late, **given}


class Tags(HTMLParser):
    """Records elements that are opened and not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass


def test_a_page_is_complete_and_loads_nothing() -> None:
    text = rollup_page([row(0, "published"), row(30, "published")], BY, 10, "queue.a")
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert not re.search(r"<script|src=|href=|url\(|@import", text)
    assert "12:00:00 to 2026-01-01 12:00:40 UTC" in text


def test_text_of_clients_is_escaped() -> None:
    text = rollup_page([row(0, "<script>alert(1)</script>")], BY, 10, 'queue."><b>')
    assert "<script" not in text
    assert "<b>" not in text
    assert "&lt;script&gt;" in text


def test_a_window_without_messages_is_a_rate_of_zero_and_a_gap_in_latencies() -> None:
    late = {"latency_p50": 5.0, "latency_p95": 6.0, "latency_p99": 7.0}
    text = rollup_page([row(0, "a", **late), row(10, "a", **late), row(30, "a", **late)], BY, 10, "queue.a")
    rate = text[text.index("Rate") : text.index("Volume")]
    assert "<td>0</td>" in rate
    assert rate.count("<polyline") == 2
    latency = text[text.index("<h2>Latency") : text.index("<h2>Size")]
    # Two windows are a line and a single one is a dot, for each percentile and width.
    assert latency.count("<polyline") == 3 * 2
    assert latency.count('r="3"') == 3 * 2
    assert "worst latency p99" in text


def test_too_many_windows_and_none_are_refused() -> None:
    with pytest.raises(ValueError, match="choose a longer window"):
        rollup_page([row(0, "a"), row(WINDOWS_MAX, "a")], BY, 1, "queue.a")
    with pytest.raises(ValueError, match="nothing to draw"):
        rollup_page([], BY, 1, "queue.a")


def test_indistinguishable_lines_are_in_the_table() -> None:
    lines = [ChartSeries(name=f"line {number}", values=[float(number)]) for number in range(SERIES_MAX + 2)]
    text = page("t", "s", [], [Chart(title="c", unit="u", times=[START], series=lines)])
    assert "and 2 more in the table" in text
    assert f"line {SERIES_MAX + 1}</th>" in text
    assert f'<i class="s{SERIES_MAX}">' not in text


def test_numbers_are_formatted_readably() -> None:
    assert [short(value) for value in (0, 0.123456, 12, 1234, 5e6, 2.5e9)] == [
        "0", "0.123", "12", "1.23k", "5M", "2.5G",
    ]  # fmt: skip
