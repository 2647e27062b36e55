"""Writes the measured tables of README.md and docs/guide/benchmarks.md from the newest file of bench/history.

A file counts if it has all rows but those of links and Spark. A table stands between
`<!-- measured: NAME -->` and `<!-- /measured -->`. With `--check` nothing is written, and the exit status is
1 if a table differs from what was measured.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import idle
import links
import memory
import store
from brokers import OLDER_RABBITMQ, RABBITMQ
from measurement import RATIO, Measurement, newest
from rows import LATENCY_ROWS, RATE_ROWS, ROWS
from samples import NAMES, WARREN, Line
from table import figure

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "guide" / "benchmarks.md")
MEASURED = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- /measured -->)", re.DOTALL)
RATE, CPU, CLIENT = "consumed_per_s", "broker_cpu_us_per_message", "client_cpu_us_per_message"
SPARK = "spark"
SPARK_FIGURES = ("rows_per_s", "broker_us_per_row", "python_us_per_row", "jvm_us_per_row")
_NAMES = {RABBITMQ: "RabbitMQ", OLDER_RABBITMQ: "RabbitMQ", WARREN: "Warren"}
PERCENTILES = ("p50", "p95", "p99", "p99.9")
BUSY = (
    " The machine also did other work then: rates are too low and latencies too high for both brokers. "
    "CPU times and their ratios are more reliable."
)
NOT_MEASURED = "Not measured at this version: `make bench-compare` measures it."
QUIET = 1.5  # a fixed loop takes less than this many times its minimum on an idle machine


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of the summary, with its meaning and its unit."""

    row: str
    name: str
    text: str
    unit: str = ""
    is_rate: bool = False


SUMMARY = (
    Cell("a16", RATE, "Throughput: 16 B, transient (messages/s)", is_rate=True),
    Cell("a16", CPU, "CPU time of the broker per message", "µs"),
    Cell("b1k", RATE, "Throughput: 1 KiB, persistent, confirmed, acknowledged (messages/s)", is_rate=True),
    Cell("b1k", CPU, "CPU time of the broker per message", "µs"),
    Cell("sync50p", RATE, "Throughput: 50 publishers that wait for each confirm (messages/s)", is_rate=True),
    Cell("sync50p", CPU, "CPU time of the broker per message", "µs"),
    Cell("connections", "idle_kb_per_connection", "Memory per idle connection", "KB"),
    Cell("queues", "memory_bytes_per_queue", "Memory per queue", "B"),
    Cell("store", "waiting_memory_mib", "Memory with {messages} persistent messages of 1 KiB ready", "MiB"),
    Cell("store", "recovery_s", "Start after `kill -9` with {messages} messages on disk", "s"),
)


def main() -> int:
    """Write the pages, or compare them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a table is out of date")
    is_check = parser.parse_args().check
    found = newest({*(row.name for row in ROWS), *memory.MEASUREMENTS, store.LINES[0].measurement})
    tables = {name: write(found) for name, write in TABLES.items()}
    stale = []
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = MEASURED.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n\n{found[3]}", before)
        if after != before:
            stale.append(str(page.relative_to(ROOT)))
            if not is_check:
                page.write_text(after, encoding="utf-8")
    if stale:
        print(f"{'out of date' if is_check else 'written'}: {', '.join(stale)}")
    return 1 if is_check and stale else 0


def summary(found: Measurement) -> str:
    """Return the table of README.md."""
    messages = f"{found.plan['store_messages']:,}"
    lines = []
    for cell in SUMMARY:
        cells = [_cell(found.figure(cell.row, broker, cell.name), cell.unit) for broker in _measured(found)]
        lines.append(
            [cell.text.format(messages=messages), *cells, _times(found, cell.row, cell.name, cell.is_rate)]
        )
    return _table(["", *_brokers(found), "Warren is better by"], lines)


def machine(found: Measurement) -> str:
    """Return the description of the machine, as a paragraph."""
    of, seen = found.machine, found.conditions
    brokers = " and ".join(_brokers(found, details=True))
    text = (
        f"{found.measured_at[:10]}, commit `{found.commit}`: {brokers} on "
        f"{of['cores']} cores of {of['processor']} with {of['memory_gib']} GiB, {of['system']}, "
        f"Linux {of['kernel']}, Python {of['python']}; {found.plan['pairs']} pairs of "
        f"{found.plan['duration_s']:g} s for each row."
    )
    text += " The machine was quiet." if _is_quiet(found) else BUSY
    for commit in dict.fromkeys(found.commits.values()):
        rows = ", ".join(f"`{row}`" for row, at in found.commits.items() if at == commit)
        text += f" Measured later, at commit `{commit}`: {rows}."
    if "sync_us_median" in seen:
        text += f" Its disk synced a small write in {_number(seen['sync_us_median'])} µs (median)."
    return text


def traffic(found: Measurement) -> str:
    """Return the rates, and the CPU time of brokers and of the load generator."""
    lines = []
    for row in ROWS:
        cells = [
            _cell(found.figure(row.name, broker, name))
            for name in (RATE, CPU, CLIENT)
            for broker in _measured(found)
        ]
        lines.append([f"`{row.name}`", row.text, *cells, _times(found, row.name, CPU)])
    names = [_short_name(found, broker) for broker in _measured(found)]
    heads = ["row", "load", *(f"{name}, /s" for name in names), *(f"{name}, µs" for name in names)]
    heads += [*(f"load generator, µs ({name})" for name in names), f"{names[0]} ÷ Warren, µs"]
    return _table(heads, lines, words=2)


def latency(found: Measurement) -> str:
    """Return percentiles at a fixed rate."""
    texts = {row.name: row.text for row in ROWS}
    lines = []
    for name in LATENCY_ROWS:
        for kind in ("delivery", "confirm"):
            figures = [
                [found.figure(name, broker, f"{kind}_{percent}_us") for broker in _measured(found)]
                for percent in PERCENTILES
            ]
            if any(value is not None for pair in figures for value in pair):
                cells = [" / ".join(_cell(value) for value in pair) for pair in figures]
                lines.append([f"`{name}`", f"{texts[name].removesuffix(', to its confirm')}: {kind}", *cells])
    return _table(["row", "load", *(f"{percent}, µs" for percent in PERCENTILES)], lines, words=2)


def everyday(found: Measurement) -> str:
    """Return the CPU time of brokers and the latency where each message comes alone."""
    if not {row.name for row in RATE_ROWS} <= found.figures.keys():
        return NOT_MEASURED
    lines = []
    for row in RATE_ROWS:
        cells = [_cell(found.figure(row.name, broker, CPU)) for broker in _measured(found)]
        cells.append(_times(found, row.name, CPU))
        cells += [
            " / ".join(_cell(found.figure(row.name, broker, name)) for broker in _measured(found))
            for name in ("delivery_p50_us", "delivery_p99_us")
        ]
        lines.append([f"`{row.name}`", row.text, *cells])
    names = [_short_name(found, broker) for broker in _measured(found)]
    heads = ["row", "load", *(f"{name}, µs" for name in names), f"{names[0]} ÷ Warren, µs"]
    return _table([*heads, "to delivery, p50, µs", "p99, µs"], lines, words=2)


def idling(found: Measurement) -> str:
    """Return the CPU time of a broker whose clients do nothing."""
    if not set(idle.MEASUREMENTS) <= found.figures.keys():
        return NOT_MEASURED
    return _lines(found, idle.lines(idle.IdleCounts(**found.plan["idle"])))


def memory_and_declares(found: Measurement) -> str:
    """Return the memory of connections, queues and messages."""
    return _lines(found, memory.LINES)


def backlog(found: Measurement) -> str:
    """Return the figures of a backlog of a million messages on the disk."""
    return _lines(found, store.LINES)


def shovels_and_federation(found: Measurement) -> str:
    """Return the cost of links between brokers."""
    if not links.MEASUREMENTS.keys() <= found.figures.keys():
        return NOT_MEASURED
    return _lines(found, links.LINES)


def spark(found: Measurement) -> str:
    """Return the cost of each row with Spark."""
    measured = {row: figures[SPARK] for row, figures in found.figures.items() if SPARK in figures}
    rows = [
        [row, f"{figures['rows']:,.0f}", *(_cell(figures[name]) for name in SPARK_FIGURES)]
        for row, figures in measured.items()
        if "rows" in figures
    ]
    if not rows:
        return 'Not measured at this version: `make bench-compare ARGS="--rows spark"`.'
    heads = ["", "rows", "rows/s", "broker, µs per row", "Python, µs per row", "JVM, µs per row"]
    runs = found.plan["spark_runs"]
    counted = "One run, after" if runs == 1 else f"The minimum of {runs} runs, after"
    return f"{counted} one that is not counted.\n\n" + _table(heads, rows)


def source(found: Measurement) -> str:
    """Return the origin of the figures, as a line below the table of README.md."""
    of = found.machine
    return (
        f"Measured on {found.measured_at[:10]} on {of['cores']} cores of {of['processor']}"
        f"{'' if _is_quiet(found) else ', which also did other work,'} by "
        "`make bench-compare`, which measures both brokers in turn on your machine; both sync before "
        "a confirm. [All figures, conditions and methods](docs/guide/benchmarks.md)."
    )


TABLES: dict[str, Callable[[Measurement], str]] = {
    "summary": summary,
    "source": source,
    "machine": machine,
    "traffic": traffic,
    "latency": latency,
    "everyday": everyday,
    "idle": idling,
    "memory": memory_and_declares,
    "backlog": backlog,
    "links": shovels_and_federation,
    "spark": spark,
}


def _is_quiet(found: Measurement) -> bool:
    """True if the machine was otherwise idle, as far as a fixed loop shows."""
    seen = found.conditions
    return seen.get("loop_ms_max", 0) <= QUIET * seen.get("loop_ms_min", 0)


def _lines(found: Measurement, lines: Iterable[Line]) -> str:
    cells = [
        [line.text]
        + [_cell(found.figure(line.measurement, broker, line.name)) for broker in _measured(found)]
        + [_times(found, line.measurement, line.name, line.is_rate)]
        for line in lines
    ]
    return _table(["", *_brokers(found), "Warren is better by"], cells)


def _measured(found: Measurement) -> list[str]:
    """Return the brokers that were measured, in the order of NAMES; one at least is a RabbitMQ."""
    return [name for name in NAMES if name in found.versions]


def _brokers(found: Measurement, *, details: bool = False) -> list[str]:
    """Return the brokers with their versions, in the order of NAMES; `details` are Erlang and the build."""
    versions = [(name, found.versions[name]) for name in _measured(found)]
    return [
        f"{_NAMES[name]} {version if details else version.partition(' ')[0]}" for name, version in versions
    ]


def _short_name(found: Measurement, name: str) -> str:
    """Return the name of a broker for the head of a column: with its version if two have the name."""
    is_shared = OLDER_RABBITMQ in found.versions and name != WARREN
    return f"{_NAMES[name]} {found.versions[name].partition(' ')[0]}" if is_shared else _NAMES[name]


def _times(found: Measurement, row: str, name: str, is_rate: bool = False) -> str:
    """Return by which factor Warren's figure is better."""
    ratio = found.figure(row, RATIO, name)
    if not ratio:
        return "-"
    times = 1 / ratio if is_rate else ratio
    return f"{times:.0f} x" if times >= 10 else f"{times:.2g} x"


def _cell(value: float | None, unit: str = "") -> str:
    if value is None or value < 0:  # memory that grew by less than the length of the bodies
        return "-"
    return f"{_number(value)} {unit}".rstrip()


def _number(value: float) -> str:
    """Format a number with three significant digits."""
    return figure(float(f"{value:.3g}")) if value else "0"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """Return a Markdown table with numbers aligned to the right."""
    rule = ["---" if column < words else "---:" for column in range(len(heads))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, rule, *rows])


if __name__ == "__main__":
    sys.exit(main())
