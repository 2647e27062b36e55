"""Results of a load as a table and as JSON."""

import json

from warren.cli.perf.report import as_json, number, table
from warren.cli.perf.result import Result

RESULT = Result(
    "throughput",
    {"size": 16},
    {"consumed_per_s": 123456.7, "broker_cpu_us_per_message": 0.0712, "delivery_p99.9_us": 12.3},
    ["a note"],
)


def test_a_table_shows_each_figure_with_its_unit() -> None:
    lines = table(RESULT).splitlines()
    assert lines[0] == "throughput  size=16"
    assert lines[1].split() == ["consumed", "123,457", "/s"]
    assert lines[2].split() == ["broker", "cpu", "0.071", "µs", "per", "message"]
    assert lines[3].split() == ["delivery", "p99.9", "12.30", "µs"]
    assert lines[4].strip() == "note: a note"


def test_json_contains_every_figure() -> None:
    (read,) = json.loads(as_json([RESULT]))
    assert read["figures"] == RESULT.figures
    assert read["notes"] == ["a note"]


def test_numbers_are_printed_with_significant_digits() -> None:
    assert [number(value) for value in (12345.6, 99.94, 0.0712)] == ["12,346", "99.94", "0.071"]
