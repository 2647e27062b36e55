"""A file of bench/history: the figures of one version of Warren on one machine on one day.

    measured_at, commit, command   when, of which commit, and by which command
    machine, conditions            what it was measured on, and how busy that was
    plan, versions                 how often each row was measured, and which brokers were compared
    figures                        row -> broker -> figure -> median; row -> "ratio" -> figure -> number
    commits                        row -> commit, of rows that were measured at a later one

A ratio is RabbitMQ's figure divided by Warren's, the median over the pairs.
"""

import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from brokers import RABBITMQ
from samples import WARREN, Samples

ROOT = Path(__file__).resolve().parent.parent
HISTORY = ROOT / "bench" / "history"
MEASURED = ("src", "setup.py", "requirements")
RATIO = "ratio"
GIBIBYTE = 1 << 30
DIGITS = 4
_SUMMARY = {"min": min, "median": statistics.median, "max": max}


@dataclass(kw_only=True)
class Measurement:
    """The contents of a file."""

    measured_at: str
    commit: str
    command: str
    machine: dict[str, str | int]
    conditions: dict[str, float]
    plan: dict[str, Any]
    versions: dict[str, str]
    figures: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Return the path: one file for each machine, version and day."""
        version = self.versions.get(WARREN, "none").partition(" ")[0]
        machine = re.sub(r"[^a-z0-9]+", "-", f"{self.machine['processor']}".lower()).strip("-")
        return HISTORY / f"{self.measured_at[:10]}-{version}-{machine}-{self.machine['cores']}-cores.json"

    def figure(self, row: str, broker: str, name: str) -> float | None:
        """Return a median, or a ratio; None if it was not measured."""
        return self.figures.get(row, {}).get(broker, {}).get(name)

    def save(self) -> Path:
        """Write the file; rows that were measured before on this day are kept, each with its commit."""
        before = load(self.path) if self.path.exists() else self
        if before.figures.keys() - self.figures.keys():
            rows = dict.fromkeys(before.figures, before.commit) | before.commits
            rows |= dict.fromkeys(self.figures, self.commit)
            self.commit = before.commit
            self.commits = {row: commit for row, commit in rows.items() if commit != self.commit}
            self.figures = before.figures | self.figures
            self.conditions = self.conditions | before.conditions
            self.versions = before.versions | self.versions
            self.plan = before.plan | self.plan
        HISTORY.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(asdict(self), indent=1) + "\n")
        return self.path


def load(path: Path) -> Measurement:
    """Read a file written by `save`."""
    return Measurement(**json.loads(path.read_text()))


def newest(rows: Set[str]) -> Measurement:
    """Return the last measured file that has all `rows`."""
    complete = [found for path in HISTORY.glob("*.json") if rows <= (found := load(path)).figures.keys()]
    return max(complete, key=lambda found: found.measured_at)


def measurement(
    found: Mapping[str, Samples],
    versions: Mapping[str, str],
    plan: Mapping[str, object],
    *,
    load_before: float,
    begun: datetime,
) -> Measurement:
    """Return the medians of a run; `load_before` is the load average before it, and `begun` when it began.

    A run that goes on beyond midnight belongs to the day on which it began.
    """
    loops = _values(found, "machine_loop_ms")
    syncs = _values(found, "machine_sync_us")
    conditions = {"load_average_before": round(load_before, 2)}
    for name, values in (("loop_ms", loops), ("sync_us", syncs)):
        if values:
            conditions |= {f"{name}_{which}": _short(at(values)) for which, at in _SUMMARY.items()}
    return Measurement(
        measured_at=begun.isoformat(timespec="seconds"),
        commit=_commit(),
        command=f"python bench/run.py {shlex.join(sys.argv[1:])}".rstrip(),
        machine=_machine(),
        conditions=conditions,
        plan=dict(plan),
        versions=dict(versions),
        figures={row: _figures(samples) for row, samples in found.items()},
    )


def _figures(samples: Samples) -> dict[str, dict[str, float]]:
    medians: dict[str, dict[str, float]] = {}
    for broker, runs in samples.by_broker.items():
        names = dict.fromkeys(name for figures in runs for name in figures if not name.startswith("machine_"))
        medians[broker] = {
            name: _short(median) for name in names if (median := samples.median(broker, name)) is not None
        }
    common = medians.get(RABBITMQ, {}).keys() & medians.get(WARREN, {}).keys()
    ratios = {name: _short(ratio) for name in sorted(common) if (ratio := samples.ratio(name)) is not None}
    return medians | ({RATIO: ratios} if ratios else {})


def _values(found: Mapping[str, Samples], name: str) -> list[float]:
    return [
        figures[name]
        for samples in found.values()
        for runs in samples.by_broker.values()
        for figures in runs
        if name in figures
    ]


def _short(value: float) -> float:
    """Round to the significant digits."""
    return float(f"{value:.{DIGITS}g}")


def _commit() -> str:
    """Return the commit that is checked out, with `-dirty` if the measured files differ from it."""
    commit, changed = _git("rev-parse", "--short", "HEAD"), _git("status", "--porcelain", "--", *MEASURED)
    return f"{commit}-dirty" if changed else commit or "export"


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT).stdout.strip()


def _machine() -> dict[str, str | int]:
    cpuinfo, release = Path("/proc/cpuinfo"), Path("/etc/os-release")
    model = re.search(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else None
    system = re.search(r'PRETTY_NAME="(.*)"', release.read_text()) if release.exists() else None
    return {
        "processor": " ".join(model[1].split()) if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIBIBYTE),
        "system": system[1] if system else platform.system(),
        "kernel": platform.release().partition("-")[0],
        "python": platform.python_version(),
    }
