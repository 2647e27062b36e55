"""The results of a suite: counted from the report of pytest, or from what a program prints."""

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.plan import WITH_CASES, Job

COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
# The beginning of a line that names a failed test, also of a program, and how much of its reason is shown.
FAILED, REASON_LENGTH_MAX = "FAILED ", 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed test: its name, the reason, and the command that runs it alone; none, if nothing can."""

    name: str
    reason: str
    alone: Job | None = None

    def shown(self) -> list[str]:
        """Return the lines about it."""
        where = f" ({self.alone.name})" if self.alone else ""
        lines = [f"{FAILED}{self.name}{where}: {self.reason}"]
        return [*lines, f"       {self.alone.shown()}"] if self.alone else lines


@dataclass
class SuiteResult:
    """The results of one suite; without a job it is not one that was run."""

    name: str
    job: Job | None = None
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    unstable: int = 0
    seeds: int = 0
    left_out: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    skip_reasons: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def skip(self, reason: str) -> None:
        """Count one skipped test."""
        self.skipped += 1
        self.skip_reasons[reason] += 1

    def fail(self, failure: Failure) -> None:
        """Count one failed test."""
        self.failed += 1
        self.failures.append(failure)


def count_report(result: SuiteResult, report: Path) -> None:
    """Add the results in the report of pytest, test by test."""
    for case in ElementTree.parse(report).iter("testcase"):
        skip = case.find("skipped")
        failures = [*case.findall("failure"), *case.findall("error")]
        result.seeds += int(_property(case, "seeds") or 0)
        if failures:
            reason = " ".join((failures[0].get("message") or "").split())[:REASON_LENGTH_MAX]
            name = _property(case, "node")
            alone = (
                result.job._replace(command=("python", "-m", "pytest", name)) if result.job and name else None
            )
            name = name or f"{case.get('classname')}.{case.get('name')}"
            result.fail(Failure(name=name, reason=reason, alone=alone))
        elif skip is not None:
            result.skip(skip.get("message") or "no reason given")
        else:
            result.passed += 1


def _property(case: ElementTree.Element, name: str) -> str:
    found = case.find(f"properties/property[@name='{name}']")
    return "" if found is None else found.get("value") or ""


def count_program(result: SuiteResult, status: int, lines: Sequence[str]) -> None:
    """Add what a program counts itself; without counts, its exit status counts as one test.

    It names a failed test in a line `FAILED name: reason`.
    """
    counts = [found for line in lines if (found := COUNTS.match(line))]
    if counts:
        result.passed, result.failed, result.skipped = map(int, counts[-1].groups())
    for line in lines:
        if line.startswith(FAILED):
            name, _, reason = line.removeprefix(FAILED).partition(": ")
            result.failures.append(
                Failure(name=name, reason=reason[:REASON_LENGTH_MAX], alone=_case(result.job, name))
            )
    if (status and not result.failed) or not counts:
        count_exit(result, status, lines)


def _case(job: Job | None, name: str) -> Job | None:
    """Return the command for one case of a program, if it can run one."""
    if job is None or job.suite not in WITH_CASES:
        return None
    return job._replace(command=(*job.command[:2], "--case", name))


def count_exit(result: SuiteResult, status: int, lines: Sequence[str]) -> None:
    """Count a process by its exit status, as one test."""
    if status == 0:
        result.passed += 1
        return
    last = lines[-1][:REASON_LENGTH_MAX] if lines else "it printed nothing"
    result.fail(Failure(name=result.name, reason=f"ended with status {status}: {last}"))
