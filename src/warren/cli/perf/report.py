"""Prints progress lines during a run, and the result as a table or as JSON."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from warren.cli.perf.result import Result
from warren.cli.perf.worker_group import LoadSnapshot

UNITS = {
    "_per_s": "/s",
    "_us": "µs",
    "_us_per_message": "µs per message",
    "_us_per_connection": "µs per connection",
    "_us_per_queue": "µs per queue",
    "_bytes": "bytes",
    "_bytes_per_queue": "bytes per queue",
    "_bytes_per_message": "bytes per message",
    "_kb_per_connection": "KB per connection",
    "_cores": "cores",
    "_s": "s",
}


def table(result: Result) -> str:
    """Format a result as a table of figures, followed by notes."""
    rows = [_row(name, value) for name, value in result.figures.items()]
    label_width = max(len(row[0]) for row in rows)
    value_width = max(len(row[1]) for row in rows)
    settings = " ".join(f"{name}={value}" for name, value in result.settings.items())
    lines = [f"{result.scenario}  {settings}"]
    lines += [f"  {label:<{label_width}}  {value:>{value_width}} {unit}" for label, value, unit in rows]
    lines += [f"  note: {note}" for note in result.notes]
    return "\n".join(lines)


def as_json(results: Sequence[Result]) -> str:
    """Format results as one JSON array."""
    return json.dumps([asdict(result) for result in results], indent=2)


def number(value: float) -> str:
    """Format a figure with a number of digits that depends on its size."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def print_progress(before: LoadSnapshot, now: LoadSnapshot) -> None:
    """Print the rates between two snapshots as a line on standard error."""
    elapsed_s = now.at_s - before.at_s
    published = (now.totals.published - before.totals.published) / elapsed_s
    consumed = (now.totals.consumed - before.totals.consumed) / elapsed_s
    settled = (now.totals.settled - before.totals.settled) / elapsed_s
    cores = (now.broker.cpu_s - before.broker.cpu_s) / elapsed_s
    parts = [f"published {published:,.0f}/s"]
    parts += [f"consumed {consumed:,.0f}/s"] if consumed else []
    parts += [f"confirmed {settled:,.0f}/s"] if settled else []
    parts += [f"broker {cores:.2f} cores"] if cores else []
    print("  " + ", ".join(parts), file=sys.stderr, flush=True)


def print_setup(text: str) -> None:
    """Print the progress of the setup as a line on standard error."""
    print(f"  {text}", file=sys.stderr, flush=True)


def _row(name: str, value: float) -> tuple[str, str, str]:
    for ending in sorted(UNITS, key=len, reverse=True):
        if name.endswith(ending):
            return name.removesuffix(ending).replace("_", " "), number(value), UNITS[ending]
    return name.replace("_", " "), number(value), ""
